"""The messages of belief propagation, and the update of one factor's messages (compiled).

With m(f, x) the message of factor f to variable x, and m(x, f) the message of x to f,

    m(x, f) = prod_{g != f on x} m(g, x)     m(f, x) = sum over all but x of f prod_{y != x} m(y, f)

(Kschischang, Frey & Loeliger 2001, "Factor graphs and the sum-product algorithm", equations 5 and
6). With weights w_f the first has the powers m(g, x)^{w_g} / m(f, x)^{1 - w_f}, and the second
f^{1 / w_f} (Wainwright, Jaakkola & Willsky 2005, "A new class of upper bounds on the log partition
function").

A message from a factor to a variable is kept as logarithms, shifted so that the largest is 0; each
variable keeps the weighted sum of its incoming messages. A variable's message to a factor is that
sum minus the factor's own message: infinite terms are counted separately, so zeros never meet in a
subtraction. Weights are 1 in belief propagation and probabilities of factors in its tree-reweighted
form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel, reassociating_kernel
from inference.kernels.exponential import exponentials
from inference.kernels.tables import next_entry
from inference.kernels.views import lent, read_only

LINEAR_FLOOR = 1e-250
"""Below this a sum of products may have lost terms to underflow; it is redone in log space."""

_ZERO_CHANGE = 1e3
"""Residual of an entry that becomes zero: larger than a change between finite entries should be."""


class Messages(NamedTuple):
    """The state of belief propagation; a "slot" is one place of one scope.

    Attributes:
        weights: float64 (n_factors,), in (0, 1].
        slot_starts: int64 (n_slots + 1,), where the messages of every slot begin.
        log_messages: float64, messages to variables, largest 0.
        log_beliefs: float64, per state of every variable: its unary table and the weighted log
            messages, finite terms only.
        zeros: int64, per state of every variable: how many terms are log 0.
    """

    weights: NDArray[np.float64]
    slot_starts: NDArray[np.int64]
    log_messages: NDArray[np.float64]
    log_beliefs: NDArray[np.float64]
    zeros: NDArray[np.int64]


class MessageWorkspace(NamedTuple):
    """Further arrays that the updates of a graph's messages need.

    Attributes:
        owners: int64 (n_slots,), the factor of every slot.
        potentials, log_potentials: float64, tables to the power 1 / weight, divided by their
            largest entry, and the logarithms.
        fresh: float64, messages that will replace others, laid out like `log_messages`.
        log_in, linear_in, digits: scratch for one factor.
    """

    owners: NDArray[np.int64]
    potentials: NDArray[np.float64]
    log_potentials: NDArray[np.float64]
    fresh: NDArray[np.float64]
    log_in: NDArray[np.float64]
    linear_in: NDArray[np.float64]
    digits: NDArray[np.int64]


@kernel
def initial_messages(cardinalities, graph, weights):
    """Uniform messages, log 1 = 0, of a reduced graph.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        graph: the `Reduced` graph.
        weights: float64 (n_factors,), in (0, 1], of the factors of `graph`.
    """
    n_slots = len(graph.scope_variables)
    slot_starts = np.zeros(n_slots + 1, dtype=np.int64)
    for slot in range(n_slots):
        slot_starts[slot + 1] = slot_starts[slot] + cardinalities[graph.scope_variables[slot]]
    messages = Messages(
        weights,
        slot_starts,
        np.zeros(slot_starts[n_slots], dtype=np.float64),
        np.empty(len(graph.unary), dtype=np.float64),
        np.empty(len(graph.unary), dtype=np.int64),
    )
    refresh_beliefs(graph, messages)
    return messages


@inner_kernel
def room_for_factor(graph, messages):
    """Scratch for one factor: float64, a number for each state of its variables; int64, digits."""
    widest = 1
    states = 1
    for factor in range(len(graph.scope_starts) - 1):
        start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
        widest = max(widest, stop - start)
        states = max(states, messages.slot_starts[stop] - messages.slot_starts[start])
    return np.empty(states, dtype=np.float64), np.empty(widest, dtype=np.int64)


@inner_kernel
def workspace(graph, messages):
    """Workspace of a reduced graph."""
    owners = np.empty(len(graph.scope_variables), dtype=np.int64)
    log_potentials = graph.log_values.copy()
    for factor in range(len(messages.weights)):
        for slot in range(graph.scope_starts[factor], graph.scope_starts[factor + 1]):
            owners[slot] = factor
        # f^(1 / w), with its largest entry 1; the shift cancels when messages are normalized.
        table = log_potentials[graph.table_starts[factor] : graph.table_starts[factor + 1]]
        largest = -np.inf
        for value in table:
            largest = max(largest, value)
        for i in range(len(table)):
            table[i] = (table[i] - largest) / messages.weights[factor]
    potentials = np.empty(len(log_potentials), dtype=np.float64)
    exponentials(log_potentials, 0.0, potentials)
    log_in, digits = room_for_factor(graph, messages)
    return MessageWorkspace(
        owners,
        potentials,
        log_potentials,
        np.zeros(len(messages.log_messages), dtype=np.float64),
        log_in,
        np.empty(len(log_in), dtype=np.float64),
        digits,
    )


@inner_kernel
def incoming(slot, start, count, messages, out):
    """Write the log message of a variable to the factor of `slot` to `out`, largest 0.

    This is equation 5: the log belief minus the factor's own message. With weights it is
    log b(x) - log m(f, x), since the belief has w_f log m(f, x), and w_f - 1 is to be left.

    Args:
        slot: the slot of the variable in the factor.
        start, count: start and number of the states of the variable.
        messages: the `Messages`, only read.
        out: float64 (count,), written.

    Returns:
        whether any state is possible.
    """
    messages, out = lent((messages, out))
    message = messages.slot_starts[slot]
    largest = -np.inf
    for i in range(count):
        log_message = messages.log_messages[message + i]
        infinite = messages.zeros[start + i]
        value = messages.log_beliefs[start + i]
        # Zeros are counted apart: the factor's own zero is taken back, and none is subtracted.
        if log_message == -np.inf:
            infinite -= 1
        else:
            value -= log_message
        out[i] = -np.inf if infinite > 0 else value
        largest = max(largest, out[i])
    if largest == -np.inf:
        return False
    for i in range(count):
        out[i] -= largest
    return True


@inner_kernel
def fresh_message(target, cardinalities, graph, messages, work):
    """Write the message of a slot's factor to its variable to `work.fresh` (log, largest 0).

    This is equation 6, computed without logarithms if the range of doubles suffices.

    Args:
        target: the slot.
        cardinalities: int64 (n_variables,), numbers of states.
        graph: the `Reduced` graph.
        messages: its `Messages`, natural logarithms with the largest 0; only read.
        work: the `MessageWorkspace`; `fresh` from `slot_starts[target]` on, and scratch, are
            written.

    Returns:
        whether the message leaves a state possible.
    """
    graph, messages, work = lent((graph, messages, work))
    factor = work.owners[target]
    start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
    first = messages.slot_starts[start]
    for slot in range(start, stop):
        if slot == target:
            continue
        v = graph.scope_variables[slot]
        at = messages.slot_starts[slot] - first
        count = cardinalities[v]
        # Equation 5 for every other variable of the scope.
        if not incoming(slot, graph.state_starts[v], count, messages, work.log_in[at : at + count]):
            return False
        for i in range(at, at + count):
            work.linear_in[i] = math.exp(work.log_in[i])
    out, end = messages.slot_starts[target], messages.slot_starts[target + 1]
    work.fresh[out:end] = 0.0
    # Equation 6 for a pair is a product of a matrix and a vector.
    if stop - start == 2:
        other = start if target > start else start + 1
        at = messages.slot_starts[other] - first
        _sum_pair(
            work.potentials[graph.table_starts[factor] : graph.table_starts[factor + 1]],
            work.linear_in[at : at + cardinalities[graph.scope_variables[other]]],
            target == start,
            work.fresh[out:end],
        )
    else:
        _sum_table(target, factor, cardinalities, graph, messages, work)
    lowest = np.inf
    largest = 0.0
    for i in range(out, end):
        lowest = min(lowest, work.fresh[i])
        largest = max(largest, work.fresh[i])
    # Terms below the smallest double would be lost silently.
    if lowest < LINEAR_FLOOR:
        return _fresh_log_message(target, cardinalities, graph, messages, work)
    shift = math.log(largest)
    for i in range(out, end):
        work.fresh[i] = math.log(work.fresh[i]) - shift
    return True


@inlined_kernel
def _sum_table(target, factor, cardinalities, graph, messages, work):
    """Add to `work.fresh` the sums of a factor's table times the messages of the other slots."""
    start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
    first, out = messages.slot_starts[start], messages.slot_starts[target]
    scope = read_only(graph.scope_variables[start:stop])
    work.digits[: stop - start] = 0
    for entry in range(graph.table_starts[factor], graph.table_starts[factor + 1]):
        # f times the messages of all other slots, added to the state of the target.
        product = work.potentials[entry]
        if product > 0.0:
            for slot in range(start, stop):
                if slot != target:
                    at = messages.slot_starts[slot] - first + work.digits[slot - start]
                    product *= work.linear_in[at]
            work.fresh[out + work.digits[target - start]] += product
        next_entry(work.digits, cardinalities, scope)


@reassociating_kernel
def _sum_pair(table, message, to_rows, out):
    """Add to `out` the sums of a table of two variables times the message of one of them."""
    table, message, out = lent((table, message, out))
    if to_rows:
        # Rows of the table belong to the target: out = table message.
        for i in range(len(out)):
            line = table[i * len(message) :][: len(message)]
            total = 0.0
            for j in range(np.uintp(len(message))):
                total += line[j] * message[j]
            out[i] = total
    else:
        # Columns belong to the target: out = transposed table message, row by row, as it lies.
        for i in range(len(message)):
            weight = message[i]
            if weight > 0.0:
                line = table[i * len(out) :][: len(out)]
                for j in range(np.uintp(len(out))):
                    out[j] += weight * line[j]


@inlined_kernel
def _fresh_log_message(target, cardinalities, graph, messages, work):
    """Write the message of a slot's factor to `work.fresh` in log space; false: none is possible.

    The first round finds the largest term of each state, the second sums the terms relative to it.
    """
    factor = work.owners[target]
    start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
    first = messages.slot_starts[start]
    out, end = messages.slot_starts[target], messages.slot_starts[target + 1]
    scope = read_only(graph.scope_variables[start:stop])
    largest = np.full(end - out, -np.inf)
    for summing in range(2):
        work.fresh[out:end] = 0.0
        work.digits[: stop - start] = 0
        for entry in range(graph.table_starts[factor], graph.table_starts[factor + 1]):
            total = work.log_potentials[entry]
            for slot in range(start, stop):
                if slot != target:
                    at = messages.slot_starts[slot] - first + work.digits[slot - start]
                    total += work.log_in[at]
            state = work.digits[target - start]
            # Relative to its own largest term no sum can vanish.
            if summing == 0:
                largest[state] = max(largest[state], total)
            elif total > -np.inf:
                work.fresh[out + state] += math.exp(total - largest[state])
            next_entry(work.digits, cardinalities, scope)
    best = -np.inf
    for state in range(end - out):
        total = work.fresh[out + state]
        work.fresh[out + state] = largest[state] + math.log(total) if total > 0.0 else -np.inf
        best = max(best, work.fresh[out + state])
    if best == -np.inf:
        return False
    for i in range(out, end):
        work.fresh[i] -= best
    return True


@inner_kernel
def replace_message(slot, damping, graph, messages, work):
    """Move one slot's message toward the fresh one, and the variable's belief with it.

    Damping applies to logarithms. A new zero is used without damping, since it is certain.

    Returns:
        the distance of the message from the new one, without damping: the range of the
        differences of their logarithms (the dynamic range of Ihler, Fisher & Willsky 2005). A
        difference of potentials would hide changes of improbable states, which other factors may
        make probable.
    """
    graph, messages, work = lent((graph, messages, work))
    start, stop = messages.slot_starts[slot], messages.slot_starts[slot + 1]
    belief = graph.state_starts[graph.scope_variables[slot]]
    weight = messages.weights[work.owners[slot]]
    fresh = work.fresh
    shift = -np.inf
    # The residual does not depend on the scale of either message.
    lowest = np.inf
    highest = -np.inf
    residual = 0.0
    for i in range(start, stop):
        new, old = fresh[i], messages.log_messages[i]
        if new > -np.inf and old > -np.inf:
            lowest = min(lowest, new - old)
            highest = max(highest, new - old)
            if damping > 0.0:
                fresh[i] = (1.0 - damping) * new + damping * old
        # One of the two is zero: no difference of logarithms exists.
        elif new != old:
            residual = _ZERO_CHANGE
        shift = max(shift, fresh[i])
    residual = max(residual, highest - lowest)
    if residual == 0.0:
        return 0.0
    # The belief changes by the weight times the change of the log message; zeros are counted.
    for i in range(start, stop):
        new = fresh[i] - shift
        old = messages.log_messages[i]
        state = belief + i - start
        if old == -np.inf:
            messages.zeros[state] -= 1
        else:
            messages.log_beliefs[state] -= weight * old
        if new == -np.inf:
            messages.zeros[state] += 1
        else:
            messages.log_beliefs[state] += weight * new
        messages.log_messages[i] = new
    return residual


@kernel
def refresh_beliefs(graph, messages):
    """Sum the beliefs again, to remove the rounding errors of many replacements."""
    graph, messages = lent((graph, messages))
    for i in range(len(graph.unary)):
        impossible = graph.unary[i] == -np.inf
        messages.zeros[i] = impossible
        messages.log_beliefs[i] = 0.0 if impossible else graph.unary[i]
    for factor in range(len(graph.scope_starts) - 1):
        weight = messages.weights[factor]
        for slot in range(graph.scope_starts[factor], graph.scope_starts[factor + 1]):
            belief = graph.state_starts[graph.scope_variables[slot]]
            start = messages.slot_starts[slot]
            for i in range(messages.slot_starts[slot + 1] - start):
                value = messages.log_messages[start + i]
                if value == -np.inf:
                    messages.zeros[belief + i] += 1
                else:
                    messages.log_beliefs[belief + i] += weight * value
