"""Local search for an assignment of large potential (compiled)."""

from __future__ import annotations

import math

import numpy as np

from inference.kernels.compiled import kernel
from inference.kernels.random_numbers import below, uniform
from inference.sampling.kernels.chain import slot_strides

_ZERO = -1e4
"""In place of a logarithm of 0: the search may pass through such states."""


@kernel
def local_search(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, factor_starts, factors,
    best_states, best, random, moves,
):  # fmt: skip
    """Anneal from the best assignment, one variable at a time, and keep what is better.

    Args:
        best_states: int64 (n_variables,), the best assignment so far; renewed.
        best: float64 (1,), its log potential; renewed.
        random: uint64 (1,), state of the random numbers.
        moves: how many variables are looked at, by temperatures that fall from a random one to 0.
    """
    n = len(cardinalities)
    n_factors = len(scope_starts) - 1
    strides = slot_strides(cardinalities, scope_starts, scope_variables)
    places = table_starts[:-1].copy()
    states = best_states.copy()
    widest = 1
    for count in cardinalities:
        widest = max(widest, count)
    gains = np.empty(widest, dtype=np.float64)
    for f in range(n_factors):
        for slot in range(scope_starts[f], scope_starts[f + 1]):
            places[f] += states[scope_variables[slot]] * strides[slot]
    hot = math.exp(6.0 * uniform(random) - 4.0)
    last = max(moves // 2, moves - 4 * n)
    for move in range(moves):
        temperature = hot * (1.0 - move / last) if move < last else 0.0
        v = below(random, n) if move < last else move % n
        count = cardinalities[v]
        gains[:count] = 0.0
        for entry in range(factor_starts[v], factor_starts[v + 1]):
            f = factors[entry]
            for slot in range(scope_starts[f], scope_starts[f + 1]):
                if scope_variables[slot] == v:
                    base = places[f] - states[v] * strides[slot]
                    for state in range(count):
                        gains[state] += max(log_values[base + state * strides[slot]], _ZERO)
                    break
        chosen = states[v]
        if temperature > 0.0:
            # The largest of values with Gumbel noise is a draw by their exponentials.
            largest = -np.inf
            for state in range(count):
                noise = -math.log(-math.log(uniform(random) * 0.999999 + 5e-7))
                if gains[state] + temperature * noise > largest:
                    largest = gains[state] + temperature * noise
                    chosen = state
        else:
            for state in range(count):
                if gains[state] > gains[chosen]:
                    chosen = state
        change = chosen - states[v]
        if change == 0:
            continue
        states[v] = chosen
        for entry in range(factor_starts[v], factor_starts[v + 1]):
            f = factors[entry]
            for slot in range(scope_starts[f], scope_starts[f + 1]):
                if scope_variables[slot] == v:
                    places[f] += change * strides[slot]
    total = 0.0
    for f in range(n_factors):
        total += log_values[places[f]]
    if total > best[0]:
        best[0] = total
        best_states[:] = states
