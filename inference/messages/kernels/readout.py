"""Marginals and the Bethe log partition function, read off the messages (compiled).

Let b(x) be the product of a variable's table and the messages to it, b(f) the product of a factor's
table and the messages of its variables, and m(x, f) m(f, x) the product of both messages along a
slot. Then

    log Z = sum_x log sum b(x) + sum_f log sum b(f) - sum_(x in f) log sum m(x, f) m(f, x)

It is minus the Bethe free energy at a fixed point of the messages (Yedidia, Freeman & Weiss 2005,
"Constructing free-energy approximations and generalized belief propagation algorithms").
"""

from __future__ import annotations

import math

import numpy as np

from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.exponential import exponentials
from inference.kernels.tables import next_entry
from inference.kernels.views import lent, read_only
from inference.messages.kernels.state import LINEAR_FLOOR, incoming, room_for_factor


@inlined_kernel
def _normalize(log_beliefs, zeros, out):
    """Write normalized probabilities to `out`; return the log of their sum, -inf if impossible."""
    largest = -np.inf
    for i in range(len(out)):
        if zeros[i] == 0:
            largest = max(largest, log_beliefs[i])
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for i in range(len(out)):
        out[i] = math.exp(log_beliefs[i] - largest) if zeros[i] == 0 else 0.0
        total += out[i]
    for i in range(len(out)):
        out[i] /= total
    return largest + math.log(total)


@inner_kernel
def read_marginals(graph, messages):
    """Return the marginals, and the sum of the log normalizers of the variables.

    The sum is -inf if some variable has no state left.
    """
    graph, messages = lent((graph, messages))
    marginals = np.empty(len(graph.unary), dtype=np.float64)
    total = 0.0
    for v in range(len(graph.fixed)):
        start, stop = graph.state_starts[v], graph.state_starts[v + 1]
        total += _normalize(
            messages.log_beliefs[start:stop], messages.zeros[start:stop], marginals[start:stop]
        )
    return marginals, total


@kernel
def read_out(cardinalities, graph, messages):
    """Return the marginals and the Bethe log Z, which is -inf if a variable has no state left.

    The equation above has no entropy, so that no logarithm of zero is needed.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        graph: the `Reduced` graph.
        messages: its `Messages`, natural logarithms with the largest 0, of weight 1.

    Returns:
        marginals: float64 (n_states,), probabilities, one variable after another.
        log_z: natural logarithm of Bethe's partition function.
    """
    graph, messages = lent((graph, messages))
    marginals, log_z = read_marginals(graph, messages)
    if log_z == -np.inf:
        return marginals, -np.inf
    log_z += graph.constant
    log_in, digits = room_for_factor(graph, messages)
    for factor in range(len(graph.scope_starts) - 1):
        start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
        first = messages.slot_starts[start]
        for slot in range(start, stop):
            v = graph.scope_variables[slot]
            at = messages.slot_starts[slot] - first
            count = cardinalities[v]
            if not incoming(slot, graph.state_starts[v], count, messages, log_in[at : at + count]):
                return marginals, -np.inf
            # Less log sum over x of m(x, f) m(f, x), relative to its largest term.
            largest = -np.inf
            for i in range(count):
                message = messages.log_messages[messages.slot_starts[slot] + i]
                largest = max(largest, log_in[at + i] + message)
            total = 0.0
            for i in range(count):
                message = messages.log_messages[messages.slot_starts[slot] + i]
                total += math.exp(log_in[at + i] + message - largest)
            log_z -= largest + math.log(total)
        # Plus log sum b(f), from the messages that `incoming` left in `log_in`.
        local = _log_sum(factor, cardinalities, graph, messages, log_in, digits)
        if local == -np.inf:
            return marginals, -np.inf
        log_z += local
    return marginals, log_z


@inlined_kernel
def _log_sum_of_pair(table, log_rows, log_columns):
    """Log sum of `_log_sum`, row by row; -inf also where a sum may have lost terms."""
    largest = -np.inf
    for value in table:
        largest = max(largest, value)
    if largest == -np.inf:
        return -np.inf
    row = np.empty(len(log_columns), dtype=np.float64)
    total = 0.0
    for i in range(len(log_rows)):
        line = table[i * len(row) :][: len(row)]
        for j in range(np.uintp(len(row))):
            row[j] = line[j] + log_columns[j]
        # Terms are relative to the largest entry of the table: messages are at most 1.
        exponentials(row, largest - log_rows[i], row)
        for part in row:
            total += part
    return largest + math.log(total) if total > LINEAR_FLOOR else -np.inf


@inlined_kernel
def _log_sum(factor, cardinalities, graph, messages, log_in, digits):
    """Log of the sum of a factor's table times its incoming messages."""
    start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
    first = messages.slot_starts[start]
    if stop - start == 2:
        middle = messages.slot_starts[start + 1] - first
        end = messages.slot_starts[stop] - first
        table = graph.log_values[graph.table_starts[factor] : graph.table_starts[factor + 1]]
        local = _log_sum_of_pair(table, log_in[:middle], log_in[middle:end])
        if local > -np.inf:
            return local
    # Any number of variables, or terms too small for the fast sum: find the largest term, then sum
    # relative to it.
    scope = read_only(graph.scope_variables[start:stop])
    largest = -np.inf
    total = 0.0
    for summing in range(2):
        digits[: stop - start] = 0
        for entry in range(graph.table_starts[factor], graph.table_starts[factor + 1]):
            value = graph.log_values[entry]
            for slot in range(start, stop):
                value += log_in[messages.slot_starts[slot] - first + digits[slot - start]]
            if summing == 0:
                largest = max(largest, value)
            elif value > -np.inf:
                total += math.exp(value - largest)
            next_entry(digits, cardinalities, scope)
        if largest == -np.inf:
            return largest
    return largest + math.log(total)
