"""Messages of a cluster tree in log space, both ways, with nothing divided out (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel
from inference.tasks.kernels.log_tables import load, multiply, send, workspace


@kernel
def log_messages(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, tree, room
):
    """Log tables, messages to parents and messages from parents, one after another.

    A message is the product of all that lies on its sender's side, summed over all but the
    separator, also at states that the receiver's side gives potential zero.

    Args:
        room: how many more values the array gets at its end, unset.
    """
    n = len(tree.parents)
    n_messages = tree.message_starts[n]
    first_up = len(log_values)
    first_down = first_up + n_messages
    work = workspace(cardinalities, tree)
    values = np.empty(first_down + n_messages + room, dtype=np.float64)
    values[:first_up] = log_values
    values[first_up : first_down + n_messages] = 0.0
    for step in range(2 * n):
        upwards = step < n
        c = step if upwards else 2 * n - 1 - step
        n_children = tree.child_starts[c + 1] - tree.child_starts[c]
        if not upwards and n_children == 0:
            continue
        up, outer, block = load(
            c, cardinalities, scope_starts, scope_variables, table_starts, tree,
            first_up, first_down, work,
        )  # fmt: skip
        work.used[up] = not upwards
        multiply(c, up + 1, outer, block, values, cardinalities, tree, work)
        if upwards:
            length = tree.message_starts[c + 1] - tree.message_starts[c]
            send(c, up, -n_messages, length, outer, block, values, cardinalities, tree, work)
            continue
        for k in range(n_children):
            child = tree.children[tree.child_starts[c] + k]
            length = tree.message_starts[child + 1] - tree.message_starts[child]
            slot = up - n_children + k
            send(c, slot, n_messages, length, outer, block, values, cardinalities, tree, work)
    return values
