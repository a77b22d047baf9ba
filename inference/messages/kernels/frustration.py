"""Signs of pairs and of the cycles that they close (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel
from inference.kernels.interaction import factors_by_variable

_ROUNDING = 1e-12
"""A log odds ratio below this, relative to the table's entries, is that of independence."""


@kernel
def signs(graph):
    """Return, per factor of two binary variables, 1 if they attract, -1 if they repel, else 0."""
    n_factors = len(graph.scope_starts) - 1
    result = np.zeros(n_factors, dtype=np.int64)
    for factor in range(n_factors):
        at = graph.table_starts[factor]
        scale = 1.0
        for entry in range(at, at + 4):
            if graph.log_values[entry] > -np.inf:
                scale = max(scale, abs(graph.log_values[entry]))
        # At most one of the sums is -inf: two zeros in a row would rule out a state.
        agree = graph.log_values[at] + graph.log_values[at + 3]
        differ = graph.log_values[at + 1] + graph.log_values[at + 2]
        if agree - differ > _ROUNDING * scale:
            result[factor] = 1
        elif differ - agree > _ROUNDING * scale:
            result[factor] = -1
    return result


@kernel
def count_cycles(graph, sign):
    """(fundamental cycles, those with an odd number of negative signs among them).

    The spanning forest is breadth-first from the first variable of each component; factors of
    sign 0 join nothing.
    """
    n = len(graph.fixed)
    starts, factors = factors_by_variable(n, graph.scope_starts, graph.scope_variables)
    side = np.zeros(n, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    in_forest = np.zeros(len(sign), dtype=np.bool_)
    for root in range(n):
        if side[root] != 0:
            continue
        side[root] = 1
        queue[0] = root
        head = 0
        tail = 1
        while head < tail:
            v = queue[head]
            head += 1
            for entry in range(starts[v], starts[v + 1]):
                factor = factors[entry]
                at = graph.scope_starts[factor]
                u = graph.scope_variables[at]
                if u == v:
                    u = graph.scope_variables[at + 1]
                if sign[factor] != 0 and side[u] == 0:
                    side[u] = side[v] * sign[factor]
                    in_forest[factor] = True
                    queue[tail] = u
                    tail += 1
    cycles = 0
    frustrated = 0
    for factor in range(len(sign)):
        if sign[factor] == 0 or in_forest[factor]:
            continue
        at = graph.scope_starts[factor]
        product = side[graph.scope_variables[at]] * side[graph.scope_variables[at + 1]]
        cycles += 1
        frustrated += product != sign[factor]
    return cycles, frustrated
