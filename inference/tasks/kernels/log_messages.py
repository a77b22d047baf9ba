"""Messages of a cluster tree in log space, both ways, without division (compiled).

Each message to a child is the product of all other inputs, summed: the scheme without division of
Shenoy & Shafer 1990, "Axioms for probability and belief-function propagation", which is right also
where the child's own message is zero. With f the factors of cluster c, p its parent, s its
separator, and s_k the separator of its child k,

    up    m(c, p)(s)   = sum over all but s of prod_f f prod_k m(k, c)
    down  m(c, k)(s_k) = sum over all but s_k of prod_f f m(p, c) prod_(j != k) m(j, c)

On the way up nothing has to be left out, so that it is the walk of
`inference.exact.kernels.log_walk`.
"""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.log_walk import LogWalk, ascend_log
from inference.exact.kernels.program import CHILDREN, INPUTS, MESSAGE, SPAN
from inference.kernels.compiled import kernel
from inference.kernels.views import lent
from inference.tasks.kernels.log_tables import load, multiply, send, workspace


@kernel
def log_messages(program, table_starts, log_values, room):
    """Return the log tables, the messages to parents and those from parents, one after another.

    A message is the product of all that lies on its sender's side, summed over all but the
    separator, also at states that the receiver's side gives potential zero.

    Args:
        program: the `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
        log_values: float64 (n_entries,), natural logarithms of the potentials.
        room: number of further values at the end of the array, unset.
    """
    program = lent(program)
    steps = program.steps
    n = len(steps) - 1
    n_factors = len(table_starts) - 1
    n_messages = steps[n, MESSAGE]
    first_up = len(log_values)
    first_down = first_up + n_messages
    work = workspace(program)
    values = np.empty(first_down + n_messages + room, dtype=np.float64)
    ascend_log(
        program, table_starts, np.empty(0, dtype=np.int64), log_values, np.zeros(n, dtype=np.int64),
        False,
        LogWalk(values, work.sums, np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)),
    )  # fmt: skip
    for entry in range(first_down, first_down + n_messages):
        values[entry] = 0.0
    for c in range(n - 1, -1, -1):
        first, children = steps[c, INPUTS], steps[c, CHILDREN]
        if children == steps[c + 1, INPUTS]:
            continue
        # The product of all inputs and of the message from the parent; each message to a child is
        # that product with the child's own left out.
        up = load(program, c, first_down, work)
        multiply(program, c, up + 1, values, work)
        for k in range(children, steps[c + 1, INPUTS]):
            child = program.inputs[k, SPAN] - n_factors
            length = steps[child + 1, MESSAGE] - steps[child, MESSAGE]
            send(program, c, k - first, n_messages, length, values, work)
    return values
