"""Joint distributions of all pairs of a set of variables (compiled)."""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.layout import advance, prepare, workspace_sizes
from inference.kernels.compiled import kernel


@kernel
def pair_states(
    cardinalities, scope_starts, scope_variables, table_starts, tree, tables, weights, below, pairs
):
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
    axes, inputs, size = workspace_sizes(cardinalities, tree)
    strides = np.zeros((inputs, axes), dtype=np.int64)
    offsets = np.empty(size, dtype=np.int32)
    kinds = np.empty(inputs, dtype=np.int64)
    positions = np.empty(inputs, dtype=np.int64)
    digits = np.empty(axes, dtype=np.int64)
    axis_of = np.zeros(len(cardinalities), dtype=np.int64)
    for c in below.order:
        n_inputs, outer, block = prepare(
            c, False, cardinalities, scope_starts, scope_variables, table_starts, tree,
            0, axis_of, strides, offsets, kinds, positions,
        )  # fmt: skip
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        start = tree.table_starts[c]
        length = tree.message_starts[c + 1] - tree.message_starts[c]
        group = (tree.table_starts[c + 1] - start) // length
        totals = np.zeros(length, dtype=np.float64)
        for i in range(length):
            for at in range(start + i * group, start + (i + 1) * group):
                totals[i] += tables[at]
        width = below.sizes[c]
        top = below.tops[c]
        first = below.firsts[c]
        stack[top : top + length * width] = 0.0
        digits[:outer] = 0
        for base in range(start, tree.table_starts[c + 1], block):
            for j in range(block):
                belief = tables[base + j]
                if belief == 0.0:
                    continue
                filled = 0
                for k in range(n_inputs):
                    child = tree.children[tree.child_starts[c] + k]
                    more = below.sizes[child]
                    if more == 0:
                        continue
                    source = positions[k] + offsets[k * block + j] - tree.message_starts[child]
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
            if outer > 0:
                advance(digits, cardinalities, variables, outer, strides, positions, n_inputs)
        for x in range(length * width):
            stack[below.places[c] + x] = stack[top + x]
