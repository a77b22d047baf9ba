"""Particles that are moved from a forest's distribution to that of a whole graph (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import inner_kernel, kernel
from inference.kernels.random_numbers import uniform
from inference.kernels.views import read_only
from inference.sampling.kernels.chain import draw_blocks, find_places, room_for_draws

_LONGEST_STEP = 0.02
"""Of an inverse temperature: what is small enough for fewer steps takes no time."""

_HARDEST = 1e9
"""A zero that costs so much and stands yet will not fall."""


@kernel
def move_particles(
    cardinalities, scope_starts, scope_variables, table_starts, factor_starts, factors, blocks,
    log_values, slopes, zeros, sweeps, states, random, energies, weights, sums, stop,
):  # fmt: skip
    """Draw every block of every particle in turn, and add up what tempering multiplies.

    Where it is stopped, what it changes is left half done, and of no use.

    Args:
        log_values: float64 (n_entries,), the tables under which the draws are made.
        slopes: float64 (n_entries,), logarithms that temperatures multiply, 0 in other tables.
        zeros: float64 (n_entries,), 1 for an entry whose zero is approached by degrees, else 0.
        sweeps: how often; with 0, nothing is drawn.
        states: int64 (n_particles, n_variables), moved along.
        random: uint64 (1,), state of the random numbers.
        energies: float64 (n_particles, 2), filled with the sums of `slopes` and of `zeros` over
            the entries that each particle selects.
        weights: float64 (n_particles,), weights of the particles in `sums`.
        sums: float64 (n_states,), to which the conditional probabilities of every draw are added;
            of length 0, none are.
        stop: int64 (1,), looked up before every particle.
    """
    room = room_for_draws(cardinalities, scope_starts, scope_variables, blocks)
    n_factors = len(scope_starts) - 1
    places = np.empty(n_factors, dtype=np.int64)
    summed = len(sums) > 0
    for particle in range(len(states)):
        if stop[0] != 0:
            return
        particle_states = states[particle]
        find_places(scope_starts, scope_variables, table_starts, room, particle_states, places)
        for _ in range(sweeps):
            draw_blocks(
                cardinalities, scope_starts, scope_variables, factor_starts, factors, log_values,
                blocks, room, True, places, particle_states, random,
                weights[particle] if summed else 1.0, summed, sums,
            )  # fmt: skip
        energies[particle, 0] = 0.0
        energies[particle, 1] = 0.0
        for f in range(n_factors):
            energies[particle, 0] += slopes[places[f]]
            energies[particle, 1] += zeros[places[f]]


@kernel
def next_inverse_temperature(inverse, energies, weights, share):
    """Farthest inverse temperature at which the particles keep a share of their effective number.

    That is the conditional effective sample size of Zhou, Johansen & Aston 2016, "Toward automatic
    model comparison", equation 3.8, and the search is a bisection.

    Args:
        energies: as `move_particles` fills them.
        weights: float64 (n_particles,), nonnegative.
    """
    # Particles that all stand alike say nothing of what they have not seen: steps have a limit.
    harder = 1.0 + 2.0 * hardness(inverse)
    farthest = min(inverse + _LONGEST_STEP, harder / (1.0 + harder))
    if inverse > 1.0 - _LONGEST_STEP and _kept(inverse, 1.0, energies, weights) >= share:
        return 1.0
    if harder > _HARDEST:
        return 1.0
    if _kept(inverse, farthest, energies, weights) >= share:
        return farthest
    low, high = inverse, farthest
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _kept(inverse, middle, energies, weights) >= share:
            low = middle
        else:
            high = middle
    # A step so small that doubles cannot tell it from none would never end.
    return max(low, inverse + 1e-9 * (1.0 - inverse) + 1e-15)


@inner_kernel
def hardness(inverse):
    """What a zero costs at an inverse temperature: nothing at 0, infinitely much at 1."""
    return inverse / (1.0 - inverse) if inverse < 1.0 else np.inf


@inner_kernel
def log_increment(before, after, energy, zeros):
    """How the log potential of a particle grows from one inverse temperature to another."""
    increment = (after - before) * energy
    if zeros > 0.0:
        increment -= zeros * (hardness(after) - hardness(before))
    return increment


@kernel
def _kept(before, after, energies, weights):
    largest = -np.inf
    for particle in range(len(energies)):
        if weights[particle] > 0.0:
            value = log_increment(before, after, energies[particle, 0], energies[particle, 1])
            largest = max(largest, value)
    if largest == -np.inf:
        return 0.0
    total = first = second = 0.0
    for particle in range(len(energies)):
        if weights[particle] > 0.0:
            value = log_increment(before, after, energies[particle, 0], energies[particle, 1])
            factor = np.exp(value - largest)
            total += weights[particle]
            first += weights[particle] * factor
            second += weights[particle] * factor * factor
    return first * first / (second * total)


@kernel
def anneal(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, factor_starts, factors,
    blocks, fixed, slopes, zeros, steps, resample, sweeps, states, random, energies, log_weights,
    log_z, stop,
):  # fmt: skip
    """Take particles through inverse temperatures: reweigh, draw anew by weight, move; in turn.

    Args:
        log_values: float64 (n_entries,), the log tables of the graph.
        fixed, slopes, zeros: float64 (n_entries,), of the path.
        steps: float64, inverse temperatures; the particles stand at the first.
        resample: share of effective particles below which they are drawn anew.
        log_weights: float64 (n_particles,), moved along.
        log_z: float64 (1,), to which the mean weight is added when particles are drawn anew.
        stop: int64 (1,), looked up before every particle, as in `move_particles`.
    """
    count, n = states.shape
    tempered = np.empty(len(fixed), dtype=np.float64)
    none = np.empty(0, dtype=np.float64)
    chosen = np.empty(states.shape, dtype=np.int64)
    for step in range(1, len(steps)):
        before, after = steps[step - 1], steps[step]
        largest = -np.inf
        best = 0
        for particle in range(count):
            log_weights[particle] += log_increment(
                before, after, energies[particle, 0], energies[particle, 1]
            )
            if log_weights[particle] > largest:
                largest = log_weights[particle]
                best = particle
        if largest == -np.inf:
            return
        total = squares = 0.0
        for particle in range(count):
            weight = np.exp(log_weights[particle] - largest)
            total += weight
            squares += weight * weight
        if total * total < resample * count * squares:
            log_z[0] += largest + np.log(total / count)
            # Systematic: one random number, and evenly spaced places from it on.
            shift = uniform(random)
            passed = 0.0
            source = -1
            for particle in range(count):
                while passed <= (particle + shift) / count * total and source < count - 1:
                    source += 1
                    passed += np.exp(log_weights[source] - largest)
                # Rounding must not lead to one without weight at the end of the row.
                taken = source if log_weights[source] > -np.inf else best
                for v in range(n):
                    chosen[particle, v] = states[taken, v]
            for particle in range(count):
                log_weights[particle] = 0.0
                for v in range(n):
                    states[particle, v] = chosen[particle, v]
        else:
            for particle in range(count):
                # Where tables are zero nothing can be drawn.
                if log_weights[particle] == -np.inf:
                    for v in range(n):
                        states[particle, v] = states[best, v]
        if after >= 1.0:
            for entry in range(len(fixed)):
                tempered[entry] = log_values[entry]
        else:
            cost = hardness(after)
            for entry in range(len(fixed)):
                tempered[entry] = fixed[entry] + after * slopes[entry] - cost * zeros[entry]
        move_particles(
            cardinalities, scope_starts, scope_variables, table_starts, factor_starts, factors,
            blocks, read_only(tempered), slopes, zeros, sweeps, states, random, energies, none,
            none, stop,
        )  # fmt: skip
        if stop[0] != 0:
            return
