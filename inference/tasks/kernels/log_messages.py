"""Messages of a cluster tree in log space, both ways, with nothing divided out (compiled)."""

from __future__ import annotations

import math

import numpy as np

from inference.exact.kernels.layout import advance
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


@kernel
def conditionals(
    cardinalities,
    scope_starts,
    scope_variables,
    table_starts,
    values,
    tree,
    states,
    below,
    n_targets,
):
    """Probability of each target's state given each state of each separator.

    It takes into account the side of the separator on which the target is, and nothing else.

    Args:
        values: what `log_messages` returns.
        states: int64 (n_variables,), the state of a target that is asked for, -1 for no target.
        below: the `Subtrees` of the targets, of weight 1 each.
        n_targets: number of targets, which stand in post-order.

    Returns:
        float64 (messages, n_targets).
    """
    n = len(tree.parents)
    n_messages = tree.message_starts[n]
    first_up = table_starts[len(table_starts) - 1]
    first_down = first_up + n_messages
    result = np.zeros((n_messages, n_targets), dtype=np.float64)
    row = np.empty(n_targets, dtype=np.float64)
    work = workspace(cardinalities, tree)
    for step in range(2 * n):
        upwards = step < n
        c = step if upwards else 2 * n - 1 - step
        children = tree.children[tree.child_starts[c] : tree.child_starts[c + 1]]
        own = below.firsts[c]
        end = own + below.sizes[c]
        if below.sizes[c] == 0 if upwards else len(children) == 0:
            continue
        up, outer, block = load(
            c, cardinalities, scope_starts, scope_variables, table_starts, tree,
            first_up, first_down, work,
        )  # fmt: skip
        work.used[up] = not upwards
        multiply(c, up + 1, outer, block, values, cardinalities, tree, work)
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        slot = up - len(children)
        work.digits[:outer] = 0
        for base in range(0, tree.table_starts[c + 1] - tree.table_starts[c], block):
            for j in range(block):
                zeros = work.zeros[base + j]
                if zeros > (0 if upwards else 1):
                    continue
                mine = work.positions[up] + work.offsets[up * block + j] - first_down
                if not upwards:
                    row[:own] = result[mine, :own]
                    row[end:] = result[mine, end:]
                filled = own
                for k in range(len(children)):
                    more = below.sizes[children[k]]
                    at = work.positions[slot + k] + work.offsets[(slot + k) * block + j] - first_up
                    for a in range(filled, filled + more):
                        row[a] = result[at, a]
                    filled += more
                inner = 1
                for axis in range(len(variables) - 1, tree.separator_sizes[c] - 1, -1):
                    count = cardinalities[variables[axis]]
                    if states[variables[axis]] >= 0:
                        row[filled] = ((base + j) // inner) % count == states[variables[axis]]
                        filled += 1
                    inner *= count
                if upwards:
                    weight = math.exp(work.sums[base + j] - values[first_up + mine])
                    for a in range(own, end):
                        result[mine, a] += weight * row[a]
                    continue
                for k in range(len(children)):
                    at = work.positions[slot + k] + work.offsets[(slot + k) * block + j]
                    total = work.sums[base + j]
                    if values[at] == -np.inf:
                        if zeros != 1:
                            continue
                    elif zeros == 1:
                        continue
                    else:
                        total -= values[at]
                    weight = math.exp(total - values[at + n_messages])
                    at -= first_up
                    first = below.firsts[children[k]]
                    for a in range(first):
                        result[at, a] += weight * row[a]
                    for a in range(first + below.sizes[children[k]], n_targets):
                        result[at, a] += weight * row[a]
            if outer > 0:
                advance(
                    work.digits, cardinalities, variables, outer, work.strides, work.positions,
                    up + 1,
                )  # fmt: skip
    return result
