"""Chains of block Gibbs sampling, and their parallel tempering (compiled).

Copies of a chain run at inverse temperatures from 1 down to 0, where nothing but zeros holds them,
and exchange their places by turns: a chain that cannot leave a mode at 1 gets away where tables are
flat, and comes back elsewhere (Geyer 1991, "Markov chain Monte Carlo maximum likelihood"). With f
the potential at 1, the exchange of x at the inverse temperature b and y at b' is accepted with

    probability = min(1, exp((b - b') (log f(y) - log f(x))))

Exchanges alternate between even and odd pairs, which takes copies up and down without turning back
at random, and temperatures are chosen so that all pairs exchange equally often (Syed,
Bouchard-Cote, Deligiannidis & Doucet 2022, "Non-reversible parallel tempering").
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import kernel
from inference.kernels.random_numbers import uniform
from inference.kernels.views import lent, read_only
from inference.sampling.kernels.chain import Chain, draw_blocks, find_places, room_for_draws

_LEAST_RATE = 1e-3
"""Rate of refused exchanges that is assumed at least, so that temperatures stay apart."""


@kernel
def spread_evenly(inverse, refused):
    """Return inverse temperatures between which exchanges are refused equally often.

    Args:
        inverse: float64 (n_levels,), from 1 to 0.
        refused: float64 (n_levels - 1,), how often exchanges between neighbors were refused.
    """
    levels = len(inverse)
    barrier = np.zeros(levels, dtype=np.float64)
    for level in range(1, levels):
        # The communication barrier: rates of refusal add up along the levels.
        barrier[level] = barrier[level - 1] + max(refused[level - 1], _LEAST_RATE)
    result = inverse.copy()
    below = 1
    for level in range(1, levels - 1):
        # Levels at equal shares of the barrier, by linear interpolation.
        wanted = barrier[levels - 1] * level / (levels - 1)
        while barrier[below] < wanted:
            below += 1
        share = (wanted - barrier[below - 1]) / (barrier[below] - barrier[below - 1])
        result[level] = inverse[below - 1] + share * (inverse[below] - inverse[below - 1])
    return result


@kernel
def _scale(log_values, inverse, tables):
    """Write the tables of every level; zeros stay zeros."""
    for level in range(len(inverse)):
        for entry in range(len(log_values)):
            value = log_values[entry]
            tables[level, entry] = inverse[level] * value if value > -np.inf else -np.inf


class ChainDraws(NamedTuple):
    """Draws of a chain, and exchanges of temperatures between its copies.

    Attributes:
        states: (draws, n_variables), the states after every sweep after the burn-in.
        sums: float64 (n_batches, n_states), zeros at first; the sums, over the draws of every
            batch, of the conditional probabilities from which the draws were made. Batches are
            consecutive and as equal in length as they can be.
        accepted: float64 (n_levels - 1,), the mean probability of an exchange between neighbors,
            after the burn-in.
    """

    states: NDArray[Any]
    sums: NDArray[np.float64]
    accepted: NDArray[np.float64]


@kernel
def run_chain(graph, log_values, inverse, states, random, burn_in, drawn):
    """Run copies of one chain that exchange temperatures, or one alone; draw from the one at 1.

    In a sweep every copy draws every block in turn, and neighbors exchange their temperatures.
    During the first half of the burn-in the temperatures are adapted from time to time. Those of a
    chain alone rise from almost 0 to 1 meanwhile: it sees the whole space before it settles in a
    part of it (Kirkpatrick, Gelatt & Vecchi 1983, "Optimization by simulated annealing").

    Args:
        graph: the `BlockedGraph`, whose blocks cover all variables; they are two or more, unless
            there is one level.
        log_values: float64 (n_entries,), natural logarithms of its potentials.
        inverse: float64 (n_levels,), inverse temperatures from 1 to 0; updated.
        states: int64 (n_levels, n_variables), assignments of positive potential; updated.
        random: uint64 (1,), state of the random numbers.
        burn_in: sweeps before the first draw.
        drawn: the `ChainDraws`, filled.

    Returns:
        Number of times, after the burn-in, that a copy returned to 1 after a visit to 0.
    """
    graph = lent(graph)
    n = len(graph.cardinalities)
    n_factors = len(graph.scope_starts) - 1
    n_levels = len(inverse)
    sums, none = drawn.sums, np.empty(0, dtype=np.float64)
    room = room_for_draws(graph)
    places = np.empty((n_levels, n_factors), dtype=np.int64)
    for copy in range(n_levels):
        find_places(graph, room, Chain(states[copy], places[copy], random))
    tables = np.empty((n_levels, len(log_values)), dtype=np.float64)
    n_batches = len(sums)
    draws = len(drawn.states)
    copy_at = np.arange(n_levels)
    potentials = np.zeros(n_levels, dtype=np.float64)
    refused = np.zeros(n_levels - 1, dtype=np.float64)
    tries = np.zeros(n_levels - 1, dtype=np.float64)
    came_from_zero = np.zeros(n_levels, dtype=np.bool_)
    round_trips = 0
    # One block of all variables depends on no other: its messages stay.
    fixed = len(graph.blocks.starts) == 2
    first_sweep = 0 if fixed else -burn_in
    alone = n_levels == 1
    # Rounds double in length, and the last ends with half of the burn-in.
    round_end = 0 if alone else burn_in // 16
    if alone and first_sweep < 0:
        inverse[0] = 0.0
    _scale(log_values, inverse, tables)
    for sweep in range(first_sweep, draws):
        if alone and inverse[0] < 1.0:
            inverse[0] = min(1.0, (sweep - first_sweep + 1) * (2.0 / max(burn_in, 2)))
            _scale(log_values, inverse, tables)
        for level in range(n_levels):
            copy = copy_at[level]
            counted = sweep >= 0 and level == 0
            draw_blocks(
                graph, read_only(tables[level]), room, not fixed or sweep == 0,
                Chain(states[copy], places[copy], random), 1.0,
                sums[sweep * n_batches // draws] if counted else none,
            )  # fmt: skip
            if not alone:
                potentials[level] = 0.0
                for f in range(n_factors):
                    potentials[level] += log_values[places[copy, f]]
        if sweep >= 0:
            current = states[copy_at[0]]
            for v in range(n):
                drawn.states[sweep, v] = current[v]
        if sweep == 0:
            refused[:] = 0.0
            tries[:] = 0.0
            came_from_zero[:] = False
        for level in range((sweep + burn_in) % 2, n_levels - 1, 2):
            # Metropolis: the exchange of x at b and y at b' is accepted with the probability min(1,
            # exp((b - b') (log f(y) - log f(x)))).
            gain = inverse[level] - inverse[level + 1]
            gain *= potentials[level + 1] - potentials[level]
            tries[level] += 1.0
            if gain < 0.0:
                # The probability of a refusal varies less than the count of refusals.
                refused[level] += 1.0 - math.exp(gain)
                if uniform(random) >= math.exp(gain):
                    continue
            upper, lower = copy_at[level], copy_at[level + 1]
            copy_at[level], copy_at[level + 1] = lower, upper
            potentials[level], potentials[level + 1] = potentials[level + 1], potentials[level]
        # A round trip ends at 1 with a copy that has been at 0 since it was at 1 last.
        came_from_zero[copy_at[n_levels - 1]] = True
        if came_from_zero[copy_at[0]]:
            came_from_zero[copy_at[0]] = False
            round_trips += sweep >= 0
        if 0 < round_end == sweep + 1 + burn_in and 2 * round_end <= burn_in:
            for level in range(n_levels - 1):
                refused[level] /= max(tries[level], 1.0)
            fresh = spread_evenly(inverse, refused)
            for level in range(n_levels):
                inverse[level] = fresh[level]
            _scale(log_values, inverse, tables)
            refused[:] = 0.0
            tries[:] = 0.0
            round_end *= 2
    for level in range(n_levels - 1):
        drawn.accepted[level] = 1.0 - refused[level] / max(tries[level], 1.0)
    return round_trips
