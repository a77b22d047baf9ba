"""Joint distributions of all pairs of a set of variables (compiled)."""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.program import BLOCK, GROUP, room_for_rows, rows_of_children
from inference.kernels.compiled import kernel


@kernel
def pair_states(cardinalities, tree, program, tables, weights, below, pairs):
    """Add up the joint probabilities of every two targets of one tree.

    Each separator state has a row: the probabilities of the states of the targets at and below
    its cluster given that state. Two targets meet in the lowest cluster that is above both, where
    they are independent given the state of the cluster.

    Args:
        tables: beliefs of the clusters, as `propagate` leaves them.
        weights: int64 (n_variables,), number of states of a target, 0 for other variables.
        below: the `Subtrees` of these weights, with no extra.
        pairs: float64 (n, n) zeros, n the sum of the weights: probability of two states together,
            the target that comes first in post-order giving the row; written.
    """
    stack = np.empty(np.int64(below.room), dtype=np.float64)
    row = np.empty(len(pairs), dtype=np.float64)
    rows = room_for_rows(program)
    for c in below.order:
        block, group = program.steps[c, BLOCK], program.steps[c, GROUP]
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        start = tree.table_starts[c]
        length = tree.message_starts[c + 1] - tree.message_starts[c]
        totals = np.zeros(length, dtype=np.float64)
        for i in range(length):
            for at in range(start + i * group, start + (i + 1) * group):
                totals[i] += tables[at]
        width = below.sizes[c]
        top = below.tops[c]
        first = below.firsts[c]
        stack[top : top + length * width] = 0.0
        children = tree.children[tree.child_starts[c] : tree.child_starts[c + 1]]
        for base in range(start, tree.table_starts[c + 1], block):
            rows_of_children(program, c, (base - start) // block, rows)
            for j in range(block):
                belief = tables[base + j]
                if belief == 0.0:
                    continue
                filled = 0
                for k in range(len(children)):
                    child = children[k]
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
                            pairs[first + x, first + y] += share * row[y]
                    filled += more
                inner = 1
                for axis in range(len(variables) - 1, tree.separator_sizes[c] - 1, -1):
                    count = cardinalities[variables[axis]]
                    if weights[variables[axis]] > 0:
                        row[filled : filled + count] = 0.0
                        here = filled + ((base + j - start) // inner) % count
                        row[here] = 1.0
                        for x in range(filled):
                            pairs[first + x, first + here] += belief * row[x]
                        filled += count
                    inner *= count
                i = (base + j - start) // group
                for x in range(filled):
                    stack[top + i * width + x] += row[x] * (belief / totals[i])
        for x in range(length * width):
            stack[below.places[c] + x] = stack[top + x]
