"""Messages of a cluster tree in log space, both ways, with nothing divided out (compiled)."""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.program import CHILDREN, INPUTS, MESSAGE, SPAN
from inference.kernels.compiled import kernel
from inference.tasks.kernels.log_tables import load, multiply, send, workspace


@kernel
def log_messages(program, table_starts, log_values, room):
    """Log tables, messages to parents and messages from parents, one after another.

    A message is the product of all that lies on its sender's side, summed over all but the
    separator, also at states that the receiver's side gives potential zero.

    Args:
        room: how many more values the array gets at its end, unset.
    """
    steps = program.steps
    n = len(steps) - 1
    n_factors = len(table_starts) - 1
    n_messages = steps[n, MESSAGE]
    first_up = len(log_values)
    first_down = first_up + n_messages
    work = workspace(program)
    values = np.empty(first_down + n_messages + room, dtype=np.float64)
    for entry in range(first_up):
        values[entry] = log_values[entry]
    for entry in range(first_up, first_down + n_messages):
        values[entry] = 0.0
    for step in range(2 * n):
        upwards = step < n
        c = step if upwards else 2 * n - 1 - step
        first, children = steps[c, INPUTS], steps[c, CHILDREN]
        if not upwards and children == steps[c + 1, INPUTS]:
            continue
        up = load(program, c, first_down, work)
        work.used[up] = not upwards
        multiply(program, c, up + 1, values, work)
        if upwards:
            length = steps[c + 1, MESSAGE] - steps[c, MESSAGE]
            send(program, c, up, -n_messages, length, values, work)
            continue
        for k in range(children, steps[c + 1, INPUTS]):
            child = program.inputs[k, SPAN] - n_factors
            length = steps[child + 1, MESSAGE] - steps[child, MESSAGE]
            send(program, c, k - first, n_messages, length, values, work)
    return values
