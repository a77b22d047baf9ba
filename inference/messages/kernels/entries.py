"""The possible states and entries of a reduced graph, numbered without gaps (compiled).

Libraries that know no zeros get a model of what is left when every zero is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import kernel


class Entries(NamedTuple):
    """What is possible in a reduced graph; a "slot" is one place of one scope.

    Attributes:
        states: int64, positions in `unary` of the possible states of variables that are not fixed.
        state_variables: int64, their variables.
        message_starts: int64 (n_slots + 1,), where each slot's part of a message begins.
        message_states: int64, the number in `states` of each entry of a message.
        entry_starts: int64 (n_factors + 1,), where the entries of each factor begin.
        entries: int64, positions in `log_values` of the possible entries.
        entry_messages: int64 (n_entries, widest scope), the entry of the message of each slot of
            the factor that belongs to the entry; the number of all such entries where the scope
            is smaller.
    """

    states: NDArray[np.int64]
    state_variables: NDArray[np.int64]
    message_starts: NDArray[np.int64]
    message_states: NDArray[np.int64]
    entry_starts: NDArray[np.int64]
    entries: NDArray[np.int64]
    entry_messages: NDArray[np.int64]


@kernel
def possible_entries(cardinalities, graph):
    """Possible states, message entries and table entries of a reduced graph.

    Every state that is numbered has a possible entry in each factor of its variable, and every
    entry that is numbered has possible states alone.
    """
    n = len(cardinalities)
    number = np.full(len(graph.unary), -1, dtype=np.int64)
    states = np.empty(len(graph.unary), dtype=np.int64)
    state_variables = np.empty(len(graph.unary), dtype=np.int64)
    n_states = 0
    for v in range(n):
        if graph.fixed[v] >= 0:
            continue
        for state in range(graph.state_starts[v], graph.state_starts[v + 1]):
            if graph.unary[state] > -np.inf:
                number[state] = n_states
                states[n_states] = state
                state_variables[n_states] = v
                n_states += 1
    n_factors = len(graph.scope_starts) - 1
    n_slots = len(graph.scope_variables)
    widest = 1
    message_starts = np.zeros(n_slots + 1, dtype=np.int64)
    room = 0
    for factor in range(n_factors):
        start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
        widest = max(widest, stop - start)
        for slot in range(start, stop):
            v = graph.scope_variables[slot]
            count = 0
            for state in range(graph.state_starts[v], graph.state_starts[v + 1]):
                count += number[state] >= 0
            message_starts[slot + 1] = message_starts[slot] + count
            room += cardinalities[v]
    n_messages = message_starts[n_slots]
    message_states = np.empty(n_messages, dtype=np.int64)
    entry_starts = np.zeros(n_factors + 1, dtype=np.int64)
    entries = np.empty(len(graph.log_values), dtype=np.int64)
    entry_messages = np.full((len(graph.log_values), widest), n_messages)
    # Which entry of its slot's message belongs to each state of the slots of one factor.
    place = np.empty(max(room, 1), dtype=np.int64)
    places = np.empty(widest, dtype=np.int64)
    digits = np.empty(widest, dtype=np.int64)
    n_entries = 0
    for factor in range(n_factors):
        start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
        at = 0
        for slot in range(start, stop):
            v = graph.scope_variables[slot]
            places[slot - start] = at
            count = message_starts[slot]
            for state in range(graph.state_starts[v], graph.state_starts[v + 1]):
                place[at] = -1
                if number[state] >= 0:
                    message_states[count] = number[state]
                    place[at] = count
                    count += 1
                at += 1
        digits[: stop - start] = 0
        for entry in range(graph.table_starts[factor], graph.table_starts[factor + 1]):
            possible = graph.log_values[entry] > -np.inf
            for axis in range(stop - start):
                possible &= place[places[axis] + digits[axis]] >= 0
            if possible:
                entries[n_entries] = entry
                for axis in range(stop - start):
                    entry_messages[n_entries, axis] = place[places[axis] + digits[axis]]
                n_entries += 1
            for axis in range(stop - start - 1, -1, -1):
                digits[axis] += 1
                if digits[axis] < cardinalities[graph.scope_variables[start + axis]]:
                    break
                digits[axis] = 0
        entry_starts[factor + 1] = n_entries
    return Entries(
        states[:n_states].copy(),
        state_variables[:n_states].copy(),
        message_starts,
        message_states,
        entry_starts,
        entries[:n_entries].copy(),
        entry_messages[:n_entries].copy(),
    )


@kernel
def table_sources(cardinalities, scope_starts, scope_variables, table_starts, graph):
    """Which given entries each number of a reduced graph is the sum of.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts: the given graph.
        graph: what `reduce_graph` made of it.

    Returns:
        targets: int64, positions in `log_values`, followed by `unary`, followed by `constant`.
        sources: int64, the position in the given log tables of a term of each.
    """
    n_factors = len(scope_starts) - 1
    n_values = len(graph.log_values)
    count = 0
    widest = 1
    for factor in range(n_factors):
        widest = max(widest, scope_starts[factor + 1] - scope_starts[factor])
        home = graph.homes[factor]
        if home >= 0:
            count += graph.table_starts[home + 1] - graph.table_starts[home]
            widest = max(widest, graph.scope_starts[home + 1] - graph.scope_starts[home])
        else:
            count += table_starts[factor + 1] - table_starts[factor]
    targets = np.empty(count, dtype=np.int64)
    sources = np.empty(count, dtype=np.int64)
    strides = np.zeros(len(cardinalities), dtype=np.int64)
    digits = np.empty(widest, dtype=np.int64)
    count = 0
    for factor in range(n_factors):
        at = table_starts[factor]
        stride = 1
        free = -1
        for slot in range(scope_starts[factor + 1] - 1, scope_starts[factor] - 1, -1):
            v = scope_variables[slot]
            if graph.fixed[v] < 0:
                strides[v] = stride
                free = v
            else:
                at += stride * graph.fixed[v]
            stride *= cardinalities[v]
        home = graph.homes[factor]
        if home >= 0:
            scope = graph.scope_variables[graph.scope_starts[home] : graph.scope_starts[home + 1]]
            digits[: len(scope)] = 0
            for entry in range(graph.table_starts[home], graph.table_starts[home + 1]):
                targets[count] = entry
                sources[count] = at
                count += 1
                for axis in range(len(scope) - 1, -1, -1):
                    v = scope[axis]
                    digits[axis] += 1
                    at += strides[v]
                    if digits[axis] < cardinalities[v]:
                        break
                    digits[axis] = 0
                    at -= strides[v] * cardinalities[v]
        elif free >= 0:
            for i in range(cardinalities[free]):
                targets[count] = n_values + graph.state_starts[free] + i
                sources[count] = at + i * strides[free]
                count += 1
        else:
            targets[count] = n_values + len(graph.unary)
            sources[count] = at
            count += 1
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            strides[scope_variables[slot]] = 0
    return targets[:count], sources[:count]
