"""The interaction graph of a factor graph: its edges join variables that share a factor (compiled).

Its induced width along an order determines the cost of elimination (Dechter 1999, "Bucket
elimination: a unifying framework for reasoning").
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import inlined_kernel, kernel


@kernel
def factors_by_variable(n_variables, scope_starts, scope_variables):
    """Return the factors of every variable.

    Args:
        n_variables: number of variables.
        scope_starts: int64 (n_factors + 1,), where the scope of each factor begins.
        scope_variables: int64 (n_slots,), the variables of the scopes, one scope after another.

    Returns:
        starts: int64 (n_variables + 1,), where the factors of each variable begin.
        factors: int64 (n_slots,), indices of factors, one variable after another, ascending within
            each.
    """
    starts = np.zeros(n_variables + 1, dtype=np.int64)
    for slot in range(len(scope_variables)):
        starts[scope_variables[slot] + 1] += 1
    for variable in range(n_variables):
        starts[variable + 1] += starts[variable]
    fill = np.empty(n_variables, dtype=np.int64)
    for variable in range(n_variables):
        fill[variable] = starts[variable]
    factors = np.empty(len(scope_variables), dtype=np.int64)
    for factor in range(len(scope_starts) - 1):
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            variable = scope_variables[slot]
            factors[fill[variable]] = factor
            fill[variable] += 1
    return starts, factors


@kernel
def interaction_graph(cardinalities, scope_starts, scope_variables):
    """Return starts and neighbors: each variable's neighbors, without repetition.

    `starts` is int64 (n_variables + 1,), `neighbors` int32, in the order of their first occurrence.

    Variables with a single state carry no information and have no neighbors.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        scope_starts, scope_variables: int64, of `GraphArrays`.
    """
    n = len(cardinalities)
    factor_starts, factors = factors_by_variable(n, scope_starts, scope_variables)
    mark = np.full(n, -1, dtype=np.int64)
    starts = np.zeros(n + 1, dtype=np.int64)
    neighbors = np.empty(0, dtype=np.int32)
    # The first pass counts, the second writes.
    for fill_pass in range(2):
        count = 0
        for variable in range(n):
            starts[variable] = count
            if cardinalities[variable] > 1:
                turn = variable + fill_pass * n
                mark[variable] = turn
                count = _add_neighbors(
                    cardinalities, scope_starts, scope_variables,
                    factors[factor_starts[variable] : factor_starts[variable + 1]],
                    mark, turn, neighbors, count,
                )  # fmt: skip
        starts[n] = count
        if fill_pass == 0:
            neighbors = np.empty(count, dtype=np.int32)
    return starts, neighbors


@inlined_kernel
def _add_neighbors(
    cardinalities, scope_starts, scope_variables, factors, mark, turn, neighbors, count
):
    """Count the neighbors of a variable on from `count`, and write them where there is room.

    Args:
        factors: the factors on the variable.
        mark: int64 (n_variables,), the last turn in which each variable was met; the variable
            itself is met in this one.
        turn: of this variable alone.
        neighbors: int32, written; of length 0 while neighbors are counted.
    """
    for factor in factors:
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            other = scope_variables[slot]
            if cardinalities[other] > 1 and mark[other] != turn:
                mark[other] = turn
                if len(neighbors) > 0:
                    neighbors[count] = other
                count += 1
    return count
