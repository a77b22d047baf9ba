"""Rows of numbers that pass up a calibrated cluster tree, one per state of a separator (compiled).

A row has the requested quantity of the targets at and below a cluster, given that state. An entry
of a table joins the rows of its children, which are independent given the entry, with the cluster's
own targets; its row is distributed over its separator by the entry's probability given the
separator. Rows are probabilities and need no scaling. With s a state of the separator, r one of the
variables eliminated and s_k what child k sees of both,

    row(s) = sum_r P(r | s) (own(s, r) * row_1(s_1) * ... * row_m(s_m))

where * convolves the distributions of independent counts (Barlow & Heidtmann 1984, "Computing
k-out-of-n system reliability") or sets probabilities side by side; the children are independent
given (s, r) by the running intersection property (Lauritzen & Spiegelhalter 1988, "Local
computations with probabilities on graphical structures and their application to expert systems").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.program import (
    BLOCK,
    GROUP,
    TreeProgram,
    room_for_rows,
    rows_of_children,
)
from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.views import lent
from inference.tasks.kernels.subtrees import Subtrees

COUNT = 0
"""The distribution of the number of targets in their counted states: rows are convolved."""

PAIRS = 1
"""The probabilities of the targets' states: rows are set side by side. Any two targets meet in the
lowest cluster above both."""


class RowWalk(NamedTuple):
    """A calibrated cluster tree, its targets, and the stack of rows.

    Attributes:
        cardinalities: int64 (n_variables,).
        tree: the `ClusterTree`.
        program: its `TreeProgram`.
        tables: float64, beliefs of the clusters, as `propagate` leaves them.
        targets: int64 (n_variables,), for COUNT the state of a variable that is counted, -1 for
            none; for PAIRS the number of states of a target, 0 for other variables.
        below: the `Subtrees` of the targets, for COUNT of weight 1 each with 1 extra, for PAIRS of
            as many as they have states, with no extra.
    """

    cardinalities: NDArray[np.int64]
    tree: ClusterTree
    program: TreeProgram
    tables: NDArray[np.float64]
    targets: NDArray[np.int64]
    below: Subtrees


@kernel
def pass_rows(operation, walk, result):
    """Pass rows from the leaves to the roots, and write the counts or pairs to `result`.

    Args:
        operation: COUNT or PAIRS.
        walk: the `RowWalk`.
        result: float64 zeros, for COUNT (1, m + 1), m the number of targets: the probability of
            each count. For PAIRS (n, n), n the sum of the weights: the probability of two states
            together, the target that comes first in post-order giving the row.
    """
    walk = lent(walk)
    tree, program, below, tables = walk.tree, walk.program, walk.below, walk.tables
    longest = result.shape[1]
    stack = np.empty(np.int64(below.room), dtype=np.float64)
    other = np.empty(longest, dtype=np.float64)
    scratch = (room_for_rows(program), np.empty(longest, dtype=np.float64), other)
    extra = 1 if operation == COUNT else 0
    reached = 0
    if operation == COUNT:
        result[0, 0] = 1.0
    for c in below.order:
        group = program.steps[c, GROUP]
        start = tree.table_starts[c]
        length = tree.message_starts[c + 1] - tree.message_starts[c]
        # P(s), up to a scale: the table summed over the variables that are eliminated.
        totals = np.zeros(length, dtype=np.float64)
        for i in range(length):
            for at in range(start + i * group, start + (i + 1) * group):
                totals[i] += tables[at]
        width = below.sizes[c] + extra
        top = below.tops[c]
        stack[top : top + length * width] = 0.0
        _join_rows(operation, walk, c, totals, stack, scratch, result)
        # The rows of the children are not needed any more: its own take their place.
        for x in range(length * width):
            stack[below.places[c] + x] = stack[top + x]
        # Components are independent: their counts are convolved.
        if operation == COUNT and tree.parents[c] < 0:
            _convolve(result[0], reached + 1, stack, below.places[c], width, other)
            reached += width - 1
            for x in range(reached + 1):
                result[0, x] = other[x]


@inner_kernel
def _join_rows(operation, walk, c, totals, stack, scratch, result):
    """Add the contributions of its children and targets to the rows of cluster `c`, entry by entry.

    Args:
        totals: float64, the sum of the table for each state of the separator.
        stack: float64, the rows: those of the children are read, those of `c` added to at its top.
        scratch: room for `rows_of_children`, and for two distributions.
    """
    walk, totals, stack, scratch, result = lent((walk, totals, stack, scratch, result))
    rows, row, other = scratch
    tree, program, below = walk.tree, walk.program, walk.below
    block, group = program.steps[c, BLOCK], program.steps[c, GROUP]
    width = below.sizes[c] + (1 if operation == COUNT else 0)
    start, top = tree.table_starts[c], below.tops[c]
    for base in range(start, tree.table_starts[c + 1], block):
        rows_of_children(program, c, (base - start) // block, rows)
        for j in range(block):
            belief = walk.tables[base + j]
            if belief == 0.0:
                continue
            entry = base + j - start
            out = top + entry // group * width
            row[0] = 1.0
            if operation == COUNT:
                filled, swapped = _convolve_children(walk, c, rows[:, j], stack, row, other)
                if swapped:
                    row, other = other, row
                # A target in its counted state moves the distribution up by one.
                out += _counted(walk, c, entry)
            else:
                filled = _set_side_by_side(walk, c, entry, belief, rows[:, j], stack, row, result)
            # P(r | s) times the row of the entry.
            share = belief / totals[entry // group]
            for x in range(filled):
                stack[out + x] += row[x] * share


@inlined_kernel
def _convolve_children(walk, c, rows, stack, row, other):
    """Convolve the distributions that the children of cluster `c` have in an entry of its table.

    Args:
        rows: int64, the message entry of each child that the entry meets.
        row: float64, 1 at first; `other` scratch.

    Returns:
        number of entries of the distribution, and whether it is in `other` rather than in `row`.
    """
    tree, below = walk.tree, walk.below
    filled, swapped = 1, False
    for k in range(tree.child_starts[c + 1] - tree.child_starts[c]):
        child = tree.children[tree.child_starts[c] + k]
        more = below.sizes[child]
        if more == 0:
            continue
        source = below.places[child] + (rows[k] - tree.message_starts[child]) * (more + 1)
        if swapped:
            _convolve(other, filled, stack, source, more + 1, row)
        else:
            _convolve(row, filled, stack, source, more + 1, other)
        swapped = not swapped
        filled += more
    return filled, swapped


@inlined_kernel
def _counted(walk, c, entry):
    """Number of targets eliminated in cluster `c` that are in their counted state in an entry."""
    tree = walk.tree
    counted = 0
    inner = 1
    for at in range(tree.starts[c + 1] - 1, tree.starts[c] + tree.separator_sizes[c] - 1, -1):
        variable = tree.variables[at]
        count = walk.cardinalities[variable]
        counted += entry // inner % count == walk.targets[variable]
        inner *= count
    return counted


@inlined_kernel
def _set_side_by_side(walk, c, entry, belief, rows, stack, row, result):
    """Concatenate the rows below an entry of a table, and add the pairs that they form.

    Args:
        rows: as of `_convolve_children`.
        row: float64, written.

    Returns:
        number of entries of `row`.
    """
    tree, below = walk.tree, walk.below
    first = below.firsts[c]
    filled = 0
    for k in range(tree.child_starts[c + 1] - tree.child_starts[c]):
        child = tree.children[tree.child_starts[c] + k]
        more = below.sizes[child]
        if more == 0:
            continue
        source = below.places[child] + (rows[k] - tree.message_starts[child]) * more
        for y in range(more):
            row[filled + y] = stack[source + y]
        # Targets below two children meet here: P(entry) times both probabilities.
        for x in range(filled):
            share = belief * row[x]
            for y in range(filled, filled + more):
                result[first + x, first + y] += share * row[y]
        filled += more
    inner = 1
    for at in range(tree.starts[c + 1] - 1, tree.starts[c] + tree.separator_sizes[c] - 1, -1):
        variable = tree.variables[at]
        count, target = walk.cardinalities[variable], walk.targets[variable]
        if target > 0:
            state = entry // inner % count
            # In an entry of the table a target of the cluster has one state for certain.
            row[filled : filled + count] = 0.0
            row[filled + state] = 1.0
            for x in range(filled):
                result[first + x, first + filled + state] += belief * row[x]
            filled += count
        inner *= count
    return filled


@kernel
def _convolve(first, length, values, begin, width, sums):
    """Write the distribution of the sum of two independent numbers, whose own are given.

    Args:
        first: float64, of which `length` entries are the first's.
        values: float64, of which `width` entries from `begin` on are the other's.
        sums: float64, out.
    """
    sums[: length + width - 1] = 0.0
    for x in range(length):
        for y in range(width):
            sums[x + y] += first[x] * values[begin + y]
