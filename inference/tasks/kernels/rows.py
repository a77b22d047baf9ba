"""Rows of numbers that pass up a calibrated cluster tree, one per state of a separator (compiled).

A row says what is asked of the targets at and below a cluster, given that state. An entry of a
table joins the rows of its children, which are independent given the entry, with the cluster's own
targets; its row is shared out to its separator by the entry's probability given that. Rows are
probabilities, so that nothing needs to be scaled.
"""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.program import BLOCK, GROUP, room_for_rows, rows_of_children
from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.views import lent

COUNT = 0
"""The distribution of the number of targets in their counted states: rows are convolved."""

PAIRS = 1
"""The probabilities of the targets' states: rows are set side by side. Any two targets meet in the
lowest cluster above both."""


@kernel
def pass_rows(operation, cardinalities, tree, program, tables, targets, below, result):
    """Pass rows from the leaves to the roots, and write to `result` what they come to.

    Args:
        operation: COUNT or PAIRS.
        tables: beliefs of the clusters, as `propagate` leaves them.
        targets: int64 (n_variables,), for COUNT the state of a variable that is counted, -1 for
            none; for PAIRS the number of states of a target, 0 for other variables.
        below: their `Subtrees`, for COUNT of weight 1 each with 1 extra, for PAIRS of as many as
            they have states, with no extra.
        result: float64 zeros, for COUNT (1, m + 1), m the number of targets: the probability of
            each count. For PAIRS (n, n), n the sum of the weights: the probability of two states
            together, the target that comes first in post-order giving the row.
    """
    tree, program, below = lent((tree, program, below))
    longest = result.shape[1]
    stack = np.empty(np.int64(below.room), dtype=np.float64)
    row = np.empty(longest, dtype=np.float64)
    other = np.empty(longest, dtype=np.float64)
    rows = room_for_rows(program)
    extra = 1 if operation == COUNT else 0
    reached = 0
    if operation == COUNT:
        result[0, 0] = 1.0
    for c in below.order:
        group = program.steps[c, GROUP]
        start = tree.table_starts[c]
        length = tree.message_starts[c + 1] - tree.message_starts[c]
        totals = np.zeros(length, dtype=np.float64)
        for i in range(length):
            for at in range(start + i * group, start + (i + 1) * group):
                totals[i] += tables[at]
        width = below.sizes[c] + extra
        top = below.tops[c]
        stack[top : top + length * width] = 0.0
        if operation == COUNT:
            _count_cluster(
                cardinalities, tree, program, tables, targets, below, c, rows, totals, stack, row,
                other,
            )  # fmt: skip
        else:
            _pair_cluster(
                cardinalities, tree, program, tables, targets, below, c, rows, totals, stack, row,
                result,
            )  # fmt: skip
        for x in range(length * width):
            stack[below.places[c] + x] = stack[top + x]
        if operation == COUNT and tree.parents[c] < 0:
            _convolve(result[0], reached + 1, stack, below.places[c], width, other)
            reached += width - 1
            for x in range(reached + 1):
                result[0, x] = other[x]


@inner_kernel
def _count_cluster(
    cardinalities, tree, program, tables, targets, below, c, rows, totals, stack, row, other
):
    """Add to the rows of cluster `c` the distributions of the count in each entry of its table.

    Args:
        rows: scratch of `rows_of_children`; row, other: float64, scratch for distributions.
        totals: float64, the sum of the table for each state of the separator.
    """
    cardinalities, tree, program, tables, targets, below, rows, totals, stack = lent(
        (cardinalities, tree, program, tables, targets, below, rows, totals, stack)
    )
    block, group = program.steps[c, BLOCK], program.steps[c, GROUP]
    start, width, top = tree.table_starts[c], below.sizes[c] + 1, below.tops[c]
    first_child = tree.child_starts[c]
    n_children = tree.child_starts[c + 1] - first_child
    for base in range(start, tree.table_starts[c + 1], block):
        rows_of_children(program, c, (base - start) // block, rows)
        for j in range(block):
            belief = tables[base + j]
            if belief == 0.0:
                continue
            i = (base + j - start) // group
            row[0] = 1.0
            filled = 1
            for k in range(n_children):
                child = tree.children[first_child + k]
                more = below.sizes[child]
                if more == 0:
                    continue
                source = rows[k, j] - tree.message_starts[child]
                source = below.places[child] + source * (more + 1)
                _convolve(row, filled, stack, source, more + 1, other)
                row, other = other, row
                filled += more
            out = top + i * width
            inner = 1
            for at in range(
                tree.starts[c + 1] - 1, tree.starts[c] + tree.separator_sizes[c] - 1, -1
            ):
                variable = tree.variables[at]
                count = cardinalities[variable]
                # A target in its counted state moves the distribution up by one.
                out += (base + j - start) // inner % count == targets[variable]
                inner *= count
            share = belief / totals[i]
            for x in range(filled):
                stack[out + x] += row[x] * share


@inner_kernel
def _pair_cluster(
    cardinalities, tree, program, tables, targets, below, c, rows, totals, stack, row, result
):
    """Add to the rows of cluster `c`, and to `result` the pairs that meet in it.

    Args:
        rows, totals, row: as of `_count_cluster`.
    """
    block, group = program.steps[c, BLOCK], program.steps[c, GROUP]
    start, width, top = tree.table_starts[c], below.sizes[c], below.tops[c]
    for base in range(start, tree.table_starts[c + 1], block):
        rows_of_children(program, c, (base - start) // block, rows)
        for j in range(block):
            belief = tables[base + j]
            if belief == 0.0:
                continue
            i = (base + j - start) // group
            row[0] = 1.0
            filled = _pair_entry(
                cardinalities, tree, below, rows, targets, c, j, base + j - start, belief,
                stack, row, result,
            )  # fmt: skip
            share = belief / totals[i]
            out = top + i * width
            for x in range(filled):
                stack[out + x] += row[x] * share


@inlined_kernel
def _pair_entry(cardinalities, tree, below, rows, targets, c, j, entry, belief, stack, row, result):
    """Set the rows below an entry of a table side by side, and add what pairs they make.

    Returns:
        number of entries of `row`.
    """
    first = below.firsts[c]
    filled = 0
    first_child = tree.child_starts[c]
    for k in range(tree.child_starts[c + 1] - first_child):
        child = tree.children[first_child + k]
        more = below.sizes[child]
        if more == 0:
            continue
        source = rows[k, j] - tree.message_starts[child]
        source = below.places[child] + source * more
        for y in range(more):
            row[filled + y] = stack[source + y]
        for x in range(filled):
            share = belief * row[x]
            for y in range(filled, filled + more):
                result[first + x, first + y] += share * row[y]
        filled += more
    inner = 1
    for at in range(tree.starts[c + 1] - 1, tree.starts[c] + tree.separator_sizes[c] - 1, -1):
        count, target = cardinalities[tree.variables[at]], targets[tree.variables[at]]
        if target > 0:
            state = entry // inner % count
            row[filled : filled + count] = 0.0
            row[filled + state] = 1.0
            for x in range(filled):
                result[first + x, first + filled + state] += belief * row[x]
            filled += count
        inner *= count
    return filled


@kernel
def _convolve(first, length, values, begin, width, sums):
    """Write the distribution of the sum of two numbers, whose own are given."""
    sums[: length + width - 1] = 0.0
    for x in range(length):
        for y in range(width):
            sums[x + y] += first[x] * values[begin + y]
