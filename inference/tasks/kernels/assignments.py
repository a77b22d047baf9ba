"""Assignments that a walk down a cluster tree makes: samples, or the most probable (compiled)."""

from __future__ import annotations

from inference.kernels.compiled import kernel
from inference.kernels.views import lent


@kernel
def assign(cardinalities, tree, tables, uniforms, choices, states):
    """Give the variables of each cluster states, roots first, for each row of `states`.

    Args:
        tables: to draw, the beliefs of the clusters, as `propagate` leaves them.
        uniforms: float64 (n, n_clusters), to draw: independent and uniform on [0, 1).
        choices: int32, what `ascend_log` writes; -1 for clusters that sum, whose variables get no
            state. Of length 0 to draw.
        states: int32 (n, n_variables), written.
    """
    tree = lent(tree)
    has_choices = len(choices) > 0
    for i in range(len(states)):
        for c in range(len(tree.parents) - 1, -1, -1):
            first = tree.starts[c] + tree.separator_sizes[c]
            message = tree.message_starts[c]
            if has_choices and choices[message] < 0:
                continue
            row = 0
            for entry in range(tree.starts[c], first):
                variable = tree.variables[entry]
                row = row * cardinalities[variable] + states[i, variable]
            chosen = 0
            if has_choices:
                chosen = choices[message + row]
            else:
                group = (tree.table_starts[c + 1] - tree.table_starts[c]) // (
                    tree.message_starts[c + 1] - message
                )
                start = tree.table_starts[c] + row * group
                total = 0.0
                for at in range(start, start + group):
                    total += tables[at]
                threshold = uniforms[i, c] * total
                # An entry of zero never raises the sum above the threshold, so it is never drawn;
                # the last positive one is drawn if rounding has carried the threshold to the total.
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
