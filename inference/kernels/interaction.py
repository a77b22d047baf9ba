"""The interaction graph of a factor graph: who shares a factor with whom (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel


@kernel
def factors_by_variable(n_variables, scope_starts, scope_variables):
    """(starts, factors): for every variable the factors whose scope holds it."""
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
    """(starts, neighbours): each variable's neighbours, without repetition.

    Variables with a single state carry no information and have no neighbours.
    """
    n = len(cardinalities)
    factor_starts, factors = factors_by_variable(n, scope_starts, scope_variables)
    mark = np.full(n, -1, dtype=np.int64)
    starts = np.zeros(n + 1, dtype=np.int64)
    neighbours = np.empty(0, dtype=np.int32)
    for fill_pass in range(2):
        count = 0
        for variable in range(n):
            starts[variable] = count
            mark[variable] = variable + fill_pass * n
            if cardinalities[variable] == 1:
                continue
            for entry in range(factor_starts[variable], factor_starts[variable + 1]):
                factor = factors[entry]
                for slot in range(scope_starts[factor], scope_starts[factor + 1]):
                    other = scope_variables[slot]
                    if cardinalities[other] > 1 and mark[other] != variable + fill_pass * n:
                        mark[other] = variable + fill_pass * n
                        if fill_pass == 1:
                            neighbours[count] = other
                        count += 1
        starts[n] = count
        if fill_pass == 0:
            neighbours = np.empty(count, dtype=np.int32)
    return starts, neighbours
