"""The distribution of the number of variables in a given state (compiled)."""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.program import BLOCK, GROUP, room_for_rows, rows_of_children
from inference.kernels.compiled import kernel


@kernel
def count_states(cardinalities, tree, program, tables, counted, below):
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
    rows = room_for_rows(program)
    for c in below.order:
        block, group = program.steps[c, BLOCK], program.steps[c, GROUP]
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        start = tree.table_starts[c]
        length = tree.message_starts[c + 1] - tree.message_starts[c]
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
        children = tree.children[tree.child_starts[c] : tree.child_starts[c + 1]]
        for base in range(start, tree.table_starts[c + 1], block):
            rows_of_children(program, c, (base - start) // block, rows)
            for j in range(block):
                belief = tables[base + j]
                if belief == 0.0:
                    continue
                i = (base + j - start) // group
                first[0] = belief / totals[i]
                degree = 0
                for k in range(len(children)):
                    child = children[k]
                    more = below.sizes[child]
                    if more == 0:
                        continue
                    row = rows[k, j] - tree.message_starts[child]
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
        for x in range(length * width):
            stack[below.places[c] + x] = stack[top + x]
        if tree.parents[c] < 0:
            second[: reached + width] = 0.0
            for x in range(reached + 1):
                for y in range(width):
                    second[x + y] += result[x] * stack[y]
            reached += width - 1
            for x in range(reached + 1):
                result[x] = second[x]
    return result
