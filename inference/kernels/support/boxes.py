"""Boxes of states without a zero, and the graph restricted to some of the states (compiled).

A product distribution has a finite bound on log Z only if its support, a box, meets no zero: the
expected log potential of section 5.3 of Wainwright & Jordan 2008, "Graphical models, exponential
families, and variational inference", is -inf otherwise. How boxes are grown is of no paper.
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.support.consistency import state_offsets, variable_of
from inference.kernels.tables import next_entry
from inference.kernels.views import lent


@kernel
def grow_box(graph, factor_starts, factors, considered, order, box):
    """Add states to a box, a set of states per variable, as long as it holds no zero.

    Args:
        graph: its `GraphArrays`.
        factor_starts, factors: the factors at every variable.
        considered: bool (n_factors,), the factors whose zeros count.
        order: int64, states (numbered through all variables) in the order they are tried.
        box: bool, one entry per state; a box without a zero of the factors considered, which
            grows until no state can be added.
    """
    graph = lent(graph)
    scope_starts = graph.scope_starts
    state_starts = state_offsets(graph.cardinalities)
    arity = 1
    for f in range(len(scope_starts) - 1):
        arity = max(arity, scope_starts[f + 1] - scope_starts[f])
    # The states of a scope, for one factor after another.
    digits = np.empty(arity, dtype=np.int64)
    for at in order:
        if box[at]:
            continue
        v = variable_of(state_starts, at)
        # A state may join if no zero of a factor on its variable has all other states in the box.
        free = True
        for entry in range(factor_starts[v], factor_starts[v + 1]):
            f = factors[entry]
            if considered[f] and _meets_zero(
                graph, f, v, at - state_starts[v], state_starts, box, digits
            ):
                free = False
                break
        if free:
            box[at] = True


@inlined_kernel
def _meets_zero(graph, f, variable, state, state_starts, box, digits):
    """Return whether a zero of a factor has `variable` in `state` and the others in the box."""
    cardinalities, scope_starts, scope_variables, table_starts, log_values = graph
    start, stop = scope_starts[f], scope_starts[f + 1]
    scope = scope_variables[start:stop]
    digits[: stop - start] = 0
    for entry in range(table_starts[f], table_starts[f + 1]):
        if log_values[entry] == -np.inf:
            inside = True
            for slot in range(start, stop):
                v = scope_variables[slot]
                digit = digits[slot - start]
                # The state that would join, together with what is in the box already.
                inside = digit == state if v == variable else box[state_starts[v] + digit]
                if not inside:
                    break
            if inside:
                return True
        next_entry(digits, cardinalities, scope)
    return False


@kernel
def restrict(graph, alive):
    """Factor graph on some of the states, without the variables that have one left.

    Args:
        graph: its `GraphArrays`.
        alive: bool, one entry per state; every variable has a state left.

    Returns:
        free: int64, the variables that have two or more states left, which are those of the
            new graph, in order.
        constant: the sum of the log values of factors that have no free variable.
        kept: int64, the factors that have one, which are those of the new graph, in order.
        cardinalities, scope_starts, scope_variables, table_starts, log_values: the new graph.
    """
    cardinalities, scope_starts, scope_variables, table_starts, log_values = lent(graph)
    n = len(cardinalities)
    n_factors = len(scope_starts) - 1
    state_starts = state_offsets(cardinalities)
    # 1. Numbers of the variables that keep a choice.
    new_number = np.full(n, -1, dtype=np.int64)
    counts = np.zeros(n, dtype=np.int64)
    free = np.empty(n, dtype=np.int64)
    n_free = 0
    for v in range(n):
        for at in range(state_starts[v], state_starts[v + 1]):
            if alive[at]:
                counts[v] += 1
        if counts[v] > 1:
            new_number[v] = n_free
            free[n_free] = v
            n_free += 1
    # 2. Entries whose states are all left, in their order, so that tables stay in row-major order.
    new_scope_starts = np.zeros(n_factors + 1, dtype=np.int64)
    new_scope_variables = np.empty(len(scope_variables), dtype=np.int64)
    new_table_starts = np.zeros(n_factors + 1, dtype=np.int64)
    kept = np.empty(n_factors, dtype=np.int64)
    new_log_values = np.empty(len(log_values), dtype=np.float64)
    arity = 1
    for f in range(n_factors):
        arity = max(arity, scope_starts[f + 1] - scope_starts[f])
    digits = np.empty(arity, dtype=np.int64)
    constant = 0.0
    n_kept = 0
    slots = 0
    entries = 0
    for f in range(n_factors):
        start, stop = scope_starts[f], scope_starts[f + 1]
        scope = scope_variables[start:stop]
        first = entries
        digits[: stop - start] = 0
        for entry in range(table_starts[f], table_starts[f + 1]):
            inside = True
            for slot in range(start, stop):
                if not alive[state_starts[scope_variables[slot]] + digits[slot - start]]:
                    inside = False
                    break
            if inside:
                new_log_values[entries] = log_values[entry]
                entries += 1
            next_entry(digits, cardinalities, scope)
        before = slots
        for slot in range(start, stop):
            if new_number[scope_variables[slot]] >= 0:
                new_scope_variables[slots] = new_number[scope_variables[slot]]
                slots += 1
        # No free variable: the single entry that is left is a constant.
        if slots == before:
            constant += new_log_values[first]
            entries = first
        else:
            kept[n_kept] = f
            n_kept += 1
            new_scope_starts[n_kept] = slots
            new_table_starts[n_kept] = entries
    states_left = np.empty(n_free, dtype=np.int64)
    for i in range(n_free):
        states_left[i] = counts[free[i]]
    return (
        free[:n_free],
        constant,
        kept[:n_kept],
        states_left,
        new_scope_starts[: n_kept + 1],
        new_scope_variables[:slots],
        new_table_starts[: n_kept + 1],
        new_log_values[:entries],
    )
