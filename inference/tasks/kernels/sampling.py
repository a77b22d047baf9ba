"""Samples from a calibrated cluster tree, from the roots downwards (compiled)."""

from __future__ import annotations

from inference.kernels.compiled import kernel


@kernel
def draw(cardinalities, tree, tables, uniforms, states):
    """Draw one assignment for each row of `uniforms`.

    Args:
        tables: beliefs of the clusters, as `propagate` leaves them.
        uniforms: float64 (n, n_clusters), independent and uniform on [0, 1).
        states: int32 (n, n_variables), written.
    """
    for i in range(len(uniforms)):
        for c in range(len(tree.parents) - 1, -1, -1):
            first = tree.starts[c] + tree.separator_sizes[c]
            row = 0
            for entry in range(tree.starts[c], first):
                variable = tree.variables[entry]
                row = row * cardinalities[variable] + states[i, variable]
            length = tree.message_starts[c + 1] - tree.message_starts[c]
            group = (tree.table_starts[c + 1] - tree.table_starts[c]) // length
            start = tree.table_starts[c] + row * group
            total = 0.0
            for at in range(start, start + group):
                total += tables[at]
            threshold = uniforms[i, c] * total
            # An entry of zero never raises the sum above the threshold, so it is never drawn; the
            # last positive one is drawn if rounding has carried the threshold to the total.
            chosen = 0
            reached = 0.0
            for k in range(group):
                if tables[start + k] > 0.0:
                    chosen = k
                    reached += tables[start + k]
                    if reached > threshold:
                        break
            for entry in range(tree.starts[c + 1] - 1, first - 1, -1):
                variable = tree.variables[entry]
                states[i, variable] = chosen % cardinalities[variable]
                chosen //= cardinalities[variable]
