"""The distribution of the number of variables in a given state (compiled)."""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.layout import advance, prepare, workspace_sizes
from inference.kernels.compiled import kernel


@kernel
def count_states(
    cardinalities, scope_starts, scope_variables, table_starts, tree, tables, counted, below
):
    """Probability of each number of variables in their counted states.

    Each separator state has a row: the distribution of the count at and below its cluster given
    that state. Rows are probabilities, so that nothing needs to be scaled.

    Args:
        tables: beliefs of the clusters, as `propagate` leaves them.
        counted: int64 (n_variables,), the state of a variable that is counted, -1 for none.
        below: the `Subtrees` of the counted variables, of weight 1 each, with 1 extra.
    """
    n_counted = 0
    for state in counted:
        n_counted += state >= 0
    result = np.zeros(n_counted + 1, dtype=np.float64)
    result[0] = 1.0
    reached = 0
    first = np.empty(n_counted + 1, dtype=np.float64)
    second = np.empty(n_counted + 1, dtype=np.float64)
    stack = np.empty(np.int64(below.room), dtype=np.float64)
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
        shifts = np.zeros(group, dtype=np.int64)
        inner = 1
        for axis in range(len(variables) - 1, tree.separator_sizes[c] - 1, -1):
            count = cardinalities[variables[axis]]
            for r in range(group):
                shifts[r] += (r // inner) % count == counted[variables[axis]]
            inner *= count
        totals = np.zeros(length, dtype=np.float64)
        for i in range(length):
            for at in range(start + i * group, start + (i + 1) * group):
                totals[i] += tables[at]
        width = below.sizes[c] + 1
        top = below.tops[c]
        stack[top : top + length * width] = 0.0
        digits[:outer] = 0
        for base in range(start, tree.table_starts[c + 1], block):
            for j in range(block):
                belief = tables[base + j]
                if belief == 0.0:
                    continue
                i = (base + j - start) // group
                first[0] = belief / totals[i]
                degree = 0
                for k in range(n_inputs):
                    child = tree.children[tree.child_starts[c] + k]
                    more = below.sizes[child]
                    if more == 0:
                        continue
                    row = positions[k] + offsets[k * block + j] - tree.message_starts[child]
                    row = below.places[child] + row * (more + 1)
                    second[: degree + more + 1] = 0.0
                    for x in range(degree + 1):
                        for y in range(more + 1):
                            second[x + y] += first[x] * stack[row + y]
                    first, second = second, first
                    degree += more
                out = top + i * width + shifts[(base + j - start) % group]
                for x in range(degree + 1):
                    stack[out + x] += first[x]
            if outer > 0:
                advance(digits, cardinalities, variables, outer, strides, positions, n_inputs)
        for x in range(length * width):
            stack[below.places[c] + x] = stack[top + x]
        if tree.parents[c] < 0:
            second[: reached + width] = 0.0
            for x in range(reached + 1):
                for y in range(width):
                    second[x + y] += result[x] * stack[y]
            reached += width - 1
            result[: reached + 1] = second[: reached + 1]
    return result
