"""Elimination in log space where each variable is summed out or maximised (compiled)."""

from __future__ import annotations

import math

import numpy as np

from inference.kernels.compiled import inlined_kernel, kernel
from inference.tasks.kernels.log_tables import load, multiply, workspace


@inlined_kernel
def _eliminates(tree, c):
    return tree.separator_sizes[c] < tree.starts[c + 1] - tree.starts[c]


@kernel
def maximise(cardinalities, table_starts, log_values, tree, program, maximised):
    """Sum some variables out, maximise over the others, and trace the maximum back.

    Ties go to the lowest state, variable by variable, from the one eliminated last.

    Args:
        tree: clusters that eliminate at most one variable each, the summed ones first.
        program: that of the tree.
        maximised: bool (n_variables,).

    Returns:
        value: logarithm of the largest sum; -inf if every assignment has potential zero.
        states: int64 (n_variables,), the states of the maximised variables, -1 for the others.
    """
    n_buckets = len(tree.parents)
    first_up = len(log_values)
    n_messages = tree.message_starts[n_buckets]
    values = np.empty(first_up + n_messages, dtype=np.float64)
    for entry in range(first_up):
        values[entry] = log_values[entry]
    best = np.zeros(n_messages, dtype=np.int32)
    work = workspace(program)
    value = 0.0
    for factor in tree.constant_factors:
        value += log_values[table_starts[factor]]
    for c in range(n_buckets):
        n_inputs = load(program, c, 0, work)
        multiply(program, c, n_inputs, values, work)
        variable = tree.variables[tree.starts[c + 1] - 1]
        # A join eliminates nothing: each entry is a message of its own.
        count = cardinalities[variable] if _eliminates(tree, c) else 1
        for i in range(tree.message_starts[c + 1] - tree.message_starts[c]):
            largest = -np.inf
            for state in range(count):
                at = i * count + state
                if work.zeros[at] == 0 and work.sums[at] > largest:
                    largest = work.sums[at]
                    best[tree.message_starts[c] + i] = state
            if not maximised[variable] and largest > -np.inf:
                total = 0.0
                for at in range(i * count, (i + 1) * count):
                    if work.zeros[at] == 0:
                        total += math.exp(work.sums[at] - largest)
                largest += math.log(total)
            values[first_up + tree.message_starts[c] + i] = largest
        if tree.parents[c] < 0:
            value += values[first_up + tree.message_starts[c]]
    states = np.full(len(cardinalities), -1, dtype=np.int64)
    for c in range(n_buckets - 1, -1, -1):
        variable = tree.variables[tree.starts[c + 1] - 1]
        if not _eliminates(tree, c) or not maximised[variable]:
            continue
        row = 0
        for entry in range(tree.starts[c], tree.starts[c + 1] - 1):
            other = tree.variables[entry]
            row = row * cardinalities[other] + states[other]
        states[variable] = best[tree.message_starts[c] + row]
    return value, states
