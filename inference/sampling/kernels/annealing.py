"""Particles that are moved from a forest's distribution to a whole graph's (compiled).

Annealed importance sampling (Neal 2001, "Annealed importance sampling", sections 2 and 3): each
particle's weight is multiplied by the ratio of its potentials at two temperatures, and then it is
moved by block Gibbs sampling under the second. With f_b(x) = exp(fixed + b slope - h(b) zeros), the
potential of an assignment at the inverse temperature b, and h(b) = b / (1 - b),

    w = prod_t f_(b_t)(x_(t-1)) / f_(b_(t-1))(x_(t-1))        E[w] = Z(1) / Z(b_0)

Weights and potentials are natural logarithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inner_kernel, kernel
from inference.kernels.random_numbers import uniform
from inference.kernels.views import read_only
from inference.sampling.kernels.chain import (
    BlockedGraph,
    Chain,
    draw_blocks,
    find_places,
    room_for_draws,
)

_LONGEST_STEP = 0.02
"""Of an inverse temperature: what is small enough for fewer steps takes no time."""

_HARDEST = 1e9
"""Cost of a zero above which particles that still have it will not lose it."""


class TemperedGraph(NamedTuple):
    """A graph, its blocks, and how each entry of its tables depends on the inverse temperature b.

    The log potential of an entry is `fixed` + b `slopes` - b / (1 - b) `zeros` for b < 1, and its
    entry of `log_values` at b = 1.

    Attributes:
        blocked: its structure, and the forests of variables that are drawn in turn.
        log_values: float64 (n_entries,), natural logarithms, the last variable of a scope fastest.
        fixed: float64 (n_entries,), -inf for a zero that holds at every temperature, else 0.
        slopes: float64 (n_entries,), natural logarithms that the inverse temperature multiplies.
        zeros: float64 (n_entries,), 1 for an entry whose zero is approached by degrees, else 0.
    """

    blocked: BlockedGraph
    log_values: NDArray[np.float64]
    fixed: NDArray[np.float64]
    slopes: NDArray[np.float64]
    zeros: NDArray[np.float64]


class ParticleArrays(NamedTuple):
    """Particles at one inverse temperature; every array is updated in place.

    Attributes:
        states: int64 (n_particles, n_variables).
        random: uint64 (1,), state of the random numbers.
        energies: float64 (n_particles, 2), the sums of `slopes` and of `zeros` over the entries
            that each particle selects.
        log_weights: float64 (n_particles,), natural logarithms.
        log_z: float64 (1,), sum of the logarithms of the mean weights at which the particles were
            drawn anew.
    """

    states: NDArray[np.int64]
    random: NDArray[np.uint64]
    energies: NDArray[np.float64]
    log_weights: NDArray[np.float64]
    log_z: NDArray[np.float64]


@kernel
def move_particles(graph, log_values, particles, sweeps, weights, sums, stop):
    """Draw every block of every particle in turn, and sum slopes and zeros of its entries.

    Each draw leaves the distribution of the tables unchanged: it is the transition T of annealed
    importance sampling (Neal 2001, "Annealed importance sampling"). If it is stopped, the arrays
    that it changes are unusable.

    Args:
        graph: a `TemperedGraph`.
        log_values: float64 (n_entries,), the tables under which the draws are made.
        particles: `ParticleArrays`, whose states, energies and random numbers are updated.
        sweeps: number of passes over all blocks; if 0, nothing is drawn.
        weights: float64 (n_particles,), weights of the particles in `sums`.
        sums: float64 (n_states,), to which the conditional probabilities of every draw are added;
            of length 0, none are.
        stop: int64 (1,), looked up before every particle.
    """
    room = room_for_draws(graph.blocked)
    n_factors = len(graph.blocked.scope_starts) - 1
    places = np.empty(n_factors, dtype=np.int64)
    for particle in range(len(particles.states)):
        if stop[0] != 0:
            return
        # Entries are sought anew for each particle, so that one array serves all.
        chain = Chain(particles.states[particle], places, particles.random)
        find_places(graph.blocked, room, chain)
        weight = weights[particle] if len(sums) > 0 else 1.0
        for _ in range(sweeps):
            draw_blocks(graph.blocked, log_values, room, True, chain, weight, sums)
        # What log f_b is made of, by which the next weights are found without the tables.
        slope = zeros = 0.0
        for f in range(n_factors):
            slope += graph.slopes[places[f]]
            zeros += graph.zeros[places[f]]
        particles.energies[particle, 0] = slope
        particles.energies[particle, 1] = zeros


@kernel
def next_inverse_temperature(inverse, energies, weights, share):
    """Return the farthest inverse temperature that keeps a share of the effective particles.

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
    # Larger steps keep a smaller share. Sixty halvings reach the precision of doubles.
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
    """Cost of a zero at an inverse temperature, in nats: none at 0, infinite at 1."""
    return inverse / (1.0 - inverse) if inverse < 1.0 else np.inf


@inner_kernel
def log_increment(before, after, energy, zeros):
    """Growth of a particle's log potential from one inverse temperature to another."""
    # log f_after - log f_before; a particle without zeros pays none of their cost.
    increment = (after - before) * energy
    if zeros > 0.0:
        increment -= zeros * (hardness(after) - hardness(before))
    return increment


@kernel
def _kept(before, after, energies, weights):
    """Share of the effective number of particles that a step of temperature keeps, in [0, 1].

    With v the factors by which the weights w change, it is (sum w v)^2 / (sum w sum w v^2): the
    conditional effective sample size (Zhou, Johansen & Aston 2016, "Toward automatic model
    comparison: an adaptive sequential Monte Carlo approach").

    Args:
        before, after: the temperatures.
        energies: float64 (n_particles, 2), as `log_increment` takes them.
        weights: float64 (n_particles,), not normalized.
    """
    # Factors v are relative to the largest, which cancels in the ratio.
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


@inner_kernel
def _reweigh(before, after, particles):
    """Multiply the weights by the ratio of potentials at two temperatures (Neal 2001).

    Returns:
        best: a particle of the largest weight.
        largest: the logarithm of that weight; -inf if no particle has a positive one.
    """
    largest = -np.inf
    best = 0
    energies, log_weights = particles.energies, particles.log_weights
    for particle in range(len(log_weights)):
        log_weights[particle] += log_increment(
            before, after, energies[particle, 0], energies[particle, 1]
        )
        if log_weights[particle] > largest:
            largest = log_weights[particle]
            best = particle
    return best, largest


@inner_kernel
def _resample(particles, best, largest, total, chosen):
    """Draw the particles anew by weight, and give all of them the weight 1.

    Systematic resampling (Kitagawa 1996, "Monte Carlo filter and smoother"): one random number, and
    evenly spaced places from it on.

    Args:
        best, largest: what `_reweigh` returns.
        total: sum of the weights, in units of the largest.
        chosen: int64 (n_particles, n_variables), scratch.
    """
    states, log_weights = particles.states, particles.log_weights
    count, n = states.shape
    # Places (particle + shift) / count of the total weight, for all particles.
    shift = uniform(particles.random)
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


@inner_kernel
def _replace_lost(particles, best):
    """Put a particle of positive weight in the place of each that has none.

    Its weight stays 0; where tables are zero nothing could be drawn.
    """
    for particle in range(len(particles.states)):
        if particles.log_weights[particle] == -np.inf:
            for v in range(particles.states.shape[1]):
                particles.states[particle, v] = particles.states[best, v]


@inner_kernel
def _temper(graph, inverse, tempered):
    """Write the log tables at an inverse temperature to `tempered`, float64 (n_entries,)."""
    # At 1 the cost of a zero is infinite, and its product with none is not a number.
    if inverse >= 1.0:
        for entry in range(len(tempered)):
            tempered[entry] = graph.log_values[entry]
    else:
        cost = hardness(inverse)
        for entry in range(len(tempered)):
            tempered[entry] = (
                graph.fixed[entry] + inverse * graph.slopes[entry] - cost * graph.zeros[entry]
            )


@kernel
def anneal(graph, particles, steps, resample, sweeps, stop):
    """Move particles through inverse temperatures: reweigh, resample by weight, and move, in turn.

    Annealed importance sampling (Neal 2001) whose particles are drawn anew where their weights
    degenerate (Del Moral, Doucet & Jasra 2006, "Sequential Monte Carlo samplers").

    Args:
        graph: a `TemperedGraph`.
        particles: `ParticleArrays`, updated.
        steps: float64, inverse temperatures; the particles are at the first.
        resample: share of effective particles below which they are resampled.
        sweeps: number of passes over all blocks at each temperature.
        stop: int64 (1,), looked up before every particle, as in `move_particles`.
    """
    count = len(particles.states)
    tempered = np.empty(len(graph.fixed), dtype=np.float64)
    none = np.empty(0, dtype=np.float64)
    chosen = np.empty(particles.states.shape, dtype=np.int64)
    for step in range(1, len(steps)):
        best, largest = _reweigh(steps[step - 1], steps[step], particles)
        if largest == -np.inf:
            return
        total = squares = 0.0
        for particle in range(count):
            weight = np.exp(particles.log_weights[particle] - largest)
            total += weight
            squares += weight * weight
        # The effective number of particles is total^2 / squares (Kong, Liu & Wong 1994).
        if total * total < resample * count * squares:
            # The mean weight is the estimate of the ratio of partition functions so far (Del Moral,
            # Doucet & Jasra 2006): it is kept, and the weights begin anew.
            particles.log_z[0] += largest + np.log(total / count)
            _resample(particles, best, largest, total, chosen)
        else:
            _replace_lost(particles, best)
        _temper(graph, steps[step], tempered)
        move_particles(graph, read_only(tempered), particles, sweeps, none, none, stop)
        if stop[0] != 0:
            return
