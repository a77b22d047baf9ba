"""A Markov chain that draws one forest of variables after another, given the rest (compiled).

A forest is drawn exactly: log sums go from its leaves to its roots, and states are drawn from the
roots to the leaves (Hamze & de Freitas 2004, "From fields to trees"; on a chain, the forward
filtering and backward sampling of Carter & Kohn 1994, "On Gibbs sampling for state space models").
With v a variable, l its links, y_l the states of the children of l, and f the tables with all
variables outside the block fixed,

    up(v) = prod_single f(v) prod_l sum_(y_l) f_l(v, y_l) prod_(u in l) up(u)
    P(y_l | v) proportional to f_l(v, y_l) prod_(u in l) up(u)

`upward` has log up(v), `conditionals` P(y_l | v), and `beliefs` P(v) given the fixed variables.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.random_numbers import uniform
from inference.kernels.support.consistency import state_offsets
from inference.kernels.tables import next_entry
from inference.kernels.views import lent, read_only
from inference.sampling.kernels.blocks import Blocks


@kernel
def slot_strides(cardinalities, scope_starts, scope_variables):
    """Distance in its factor's table of neighboring states of every slot, int64 (n_slots,).

    Args:
        cardinalities, scope_starts, scope_variables: arrays as in `GraphArrays`.

    Returns:
        distances in entries, in the order of `scope_variables`.
    """
    strides = np.empty(len(scope_variables), dtype=np.int64)
    for f in range(len(scope_starts) - 1):
        stride = 1
        for slot in range(scope_starts[f + 1] - 1, scope_starts[f] - 1, -1):
            strides[slot] = stride
            stride *= cardinalities[scope_variables[slot]]
    return strides


class BlockedGraph(NamedTuple):
    """A graph's structure, and the forests of its variables that are drawn in turn.

    Attributes:
        cardinalities: int64 (n_variables,), numbers of states.
        scope_starts, scope_variables: int64, the scopes of the factors.
        table_starts: int64 (n_factors + 1,), where the table of every factor begins.
        factor_starts, factors: int64, the factors at every variable.
        blocks: the forests.
    """

    cardinalities: NDArray[np.int64]
    scope_starts: NDArray[np.int64]
    scope_variables: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    factor_starts: NDArray[np.int64]
    factors: NDArray[np.int64]
    blocks: Blocks


class Chain(NamedTuple):
    """State of a chain; every array is updated in place.

    Attributes:
        states: int64 (n_variables,), an assignment of positive potential.
        places: int64 (n_factors,), the entry of every factor that the states select.
        random: uint64 (1,), state of the random numbers.
    """

    states: NDArray[np.int64]
    places: NDArray[np.int64]
    random: NDArray[np.uint64]


class Draws(NamedTuple):
    """Places of draws in a graph's arrays, and room for the draws of its blocks.

    Attributes:
        state_starts: int64 (n_variables + 1,), where the states of every variable begin.
        owners, strides: int64 (n_slots,), the factor of every slot, and how far apart in its table
            neighboring states of the slot are.
        upward: float64 (n_states,), for every state of a variable the log sum over the variables
            below it in its block.
        beliefs: float64 (n_states,), the marginals of a block's variables given all others.
        conditionals: float64, for every link of a block the probabilities of its children's states
            given its parent's.
        digits: int64, scratch, one entry per child of a link.
    """

    state_starts: NDArray[np.int64]
    owners: NDArray[np.int64]
    strides: NDArray[np.int64]
    upward: NDArray[np.float64]
    beliefs: NDArray[np.float64]
    conditionals: NDArray[np.float64]
    digits: NDArray[np.int64]


@inner_kernel
def room_for_draws(graph):
    """Room for the draws of the blocks of a `BlockedGraph`."""
    cardinalities, scope_starts, scope_variables = graph[:3]
    blocks = graph.blocks
    state_starts = state_offsets(cardinalities)
    n_states = state_starts[len(cardinalities)]
    owners = np.empty(len(scope_variables), dtype=np.int64)
    for f in range(len(scope_starts) - 1):
        for slot in range(scope_starts[f], scope_starts[f + 1]):
            owners[slot] = f
    most = 1
    for link in range(len(blocks.factors)):
        most = max(most, blocks.child_stops[link] - blocks.child_starts[link])
    return Draws(
        state_starts,
        owners,
        slot_strides(cardinalities, scope_starts, scope_variables),
        np.empty(n_states, dtype=np.float64),
        np.empty(n_states, dtype=np.float64),
        np.empty(blocks.table_starts[len(blocks.factors)], dtype=np.float64),
        np.empty(most, dtype=np.int64),
    )


@inner_kernel
def find_places(graph, room, chain):
    """Write the entry of every factor that the states of a chain select to its places."""
    graph, strides, chain = lent((graph, room.strides, chain))
    scope_starts, scope_variables, table_starts = graph[1:4]
    states, places = chain.states, chain.places
    for f in range(len(scope_starts) - 1):
        places[f] = table_starts[f]
        for slot in range(scope_starts[f], scope_starts[f + 1]):
            places[f] += states[scope_variables[slot]] * strides[slot]


@inner_kernel
def draw_blocks(graph, log_values, room, anew, chain, weight, sums):
    """Draw every block in turn, given the rest.

    Args:
        graph: the `BlockedGraph`.
        log_values: float64 (n_entries,), natural logarithms of its potentials.
        room: of the same blocks.
        anew: whether to compute the sums of the blocks again; if not, the room has them.
        chain: the `Chain`, updated.
        weight: factor of each probability that is added to `sums`.
        sums: float64 (n_states,), to which the probabilities from which states are drawn are added;
            of length 0, none are.
    """
    graph, room, chain = lent((graph, room, chain))
    blocks, state_starts, beliefs = graph.blocks, room.state_starts, room.beliefs
    summed = len(sums) > 0
    for b in range(len(blocks.starts) - 1):
        if anew:
            _collect(b, graph, log_values, room, chain)
            _distribute(b, graph, room, summed)
        _draw(b, graph, room, chain)
        if summed:
            # Sums of P(v | rest) in place of counts of draws: Rao-Blackwellized marginals (Gelfand
            # & Smith 1990).
            for m in range(blocks.starts[b], blocks.starts[b + 1]):
                v = blocks.variables[m]
                for at in range(state_starts[v], state_starts[v + 1]):
                    sums[at] += weight * beliefs[at]


@inlined_kernel
def _sent_by_children(first, last, blocks, room):
    """Return the log sum of children in their states `digits`, and the offset of these states.

    Args:
        first, last: the members that are the children of one link.
    """
    value = 0.0
    offset = 0
    for child in range(first, last):
        digit = room.digits[child - first]
        offset += digit * room.strides[blocks.own_slots[child]]
        value += room.upward[room.state_starts[blocks.variables[child]] + digit]
    return value, offset


@inlined_kernel
def _add_to_children(first, last, probability, blocks, room):
    """Add a probability to the beliefs of children in their states `digits`."""
    for child in range(first, last):
        u = blocks.variables[child]
        room.beliefs[room.state_starts[u] + room.digits[child - first]] += probability


@inlined_kernel
def _normalize(values, start, stop, largest):
    """Turn logarithms into probabilities; return the sum that exp(value - largest) had."""
    total = 0.0
    for i in range(start, stop):
        values[i] = math.exp(values[i] - largest)
        total += values[i]
    for i in range(start, stop):
        values[i] /= total
    return total


@kernel
def _collect(b, graph, log_values, room, chain):
    """Sum a block from its leaves to its roots: write `upward` and `conditionals` of the room."""
    graph, log_values, room, chain = lent((graph, log_values, room, chain))
    cardinalities, blocks = graph.cardinalities, graph.blocks
    states, places = chain.states, chain.places
    owners, strides, state_starts = room.owners, room.strides, room.state_starts
    upward, conditionals, digits = room.upward, room.conditionals, room.digits
    for m in range(blocks.starts[b + 1] - 1, blocks.starts[b] - 1, -1):
        v = blocks.variables[m]
        out = state_starts[v]
        count = cardinalities[v]
        upward[out : out + count] = 0.0
        # Factors whose other variables are all fixed: the entry for state 0, and a stride.
        for entry in range(blocks.single_starts[m], blocks.single_starts[m + 1]):
            slot = blocks.single_slots[entry]
            base = places[owners[slot]] - states[v] * strides[slot]
            for state in range(count):
                upward[out + state] += log_values[base + state * strides[slot]]
        for link in range(blocks.link_starts[m], blocks.link_starts[m + 1]):
            slot = blocks.parent_slots[link]
            first, last = blocks.child_starts[link], blocks.child_stops[link]
            children = read_only(blocks.variables[first:last])
            # The entry of the link's factor where the block's variables have state 0.
            base = places[blocks.factors[link]] - states[v] * strides[slot]
            for child in range(first, last):
                base -= states[blocks.variables[child]] * strides[blocks.own_slots[child]]
            at = blocks.table_starts[link]
            size = (blocks.table_starts[link + 1] - at) // count
            for state in range(count):
                largest = -np.inf
                # All joint states y of the link's children, the last fastest.
                digits[: last - first] = 0
                for i in range(size):
                    value, offset = _sent_by_children(first, last, blocks, room)
                    value += log_values[base + state * strides[slot] + offset]
                    conditionals[at + i] = value
                    largest = max(largest, value)
                    next_entry(digits, cardinalities, children)
                # The sum goes up to v; its terms, divided by it, are P(y | v).
                if largest > -np.inf:
                    total = _normalize(conditionals, at, at + size, largest)
                    upward[out + state] += largest + math.log(total)
                else:
                    conditionals[at : at + size] = 0.0
                    upward[out + state] = -np.inf
                at += size


@kernel
def _distribute(b, graph, room, everywhere):
    """Write to `beliefs` the marginals of a block's variables given all others.

    A draw takes those of the roots alone: `everywhere` says whether the others are wanted.
    """
    graph, room = lent((graph, room))
    cardinalities, blocks = graph.cardinalities, graph.blocks
    state_starts, upward, beliefs = room.state_starts, room.upward, room.beliefs
    conditionals, digits = room.conditionals, room.digits
    for m in range(blocks.starts[b], blocks.starts[b + 1]):
        v = blocks.variables[m]
        out = state_starts[v]
        count = cardinalities[v]
        if not everywhere and blocks.own_slots[m] >= 0:
            continue
        # The belief of a root is its own upward sum, normalized.
        if blocks.own_slots[m] < 0:
            largest = -np.inf
            for at in range(out, out + count):
                largest = max(largest, upward[at])
            for at in range(out, out + count):
                beliefs[at] = math.exp(upward[at] - largest)
        # Beliefs of children are sums of rounded terms: normalized anew, errors do not build up.
        total = 0.0
        for at in range(out, out + count):
            total += beliefs[at]
        for at in range(out, out + count):
            beliefs[at] /= total
        if not everywhere:
            continue
        for link in range(blocks.link_starts[m], blocks.link_starts[m + 1]):
            first, last = blocks.child_starts[link], blocks.child_stops[link]
            children = read_only(blocks.variables[first:last])
            for child in range(first, last):
                u = blocks.variables[child]
                beliefs[state_starts[u] : state_starts[u + 1]] = 0.0
            at = blocks.table_starts[link]
            size = (blocks.table_starts[link + 1] - at) // count
            for state in range(count):
                # P(u) = sum over v and y of P(v) P(y | v).
                digits[: last - first] = 0
                for i in range(at, at + size):
                    probability = beliefs[out + state] * conditionals[i]
                    _add_to_children(first, last, probability, blocks, room)
                    next_entry(digits, cardinalities, children)
                at += size


@kernel
def _draw(b, graph, room, chain):
    """Draw the states of a block from its roots to its leaves."""
    graph, room, chain = lent((graph, room, chain))
    cardinalities, blocks = graph.cardinalities, graph.blocks
    scope_starts, scope_variables = graph.scope_starts, graph.scope_variables
    factor_starts, factors = graph.factor_starts, graph.factors
    states, random = chain.states, chain.random
    state_starts, strides = room.state_starts, room.strides
    beliefs, conditionals = room.beliefs, room.conditionals
    for m in range(blocks.starts[b], blocks.starts[b + 1]):
        v = blocks.variables[m]
        if blocks.own_slots[m] < 0:
            start = state_starts[v]
            fresh = _draw_from(beliefs, start, state_starts[v + 1], random) - start
            _move(v, fresh, scope_starts, scope_variables, factor_starts, factors, strides, chain)
        for link in range(blocks.link_starts[m], blocks.link_starts[m + 1]):
            at = blocks.table_starts[link]
            size = (blocks.table_starts[link + 1] - at) // cardinalities[v]
            # The row of the state that v has drawn.
            at += states[v] * size
            joint = _draw_from(conditionals, at, at + size, random) - at
            # The joint state is a number in mixed radix, the last child its last digit.
            for child in range(blocks.child_stops[link] - 1, blocks.child_starts[link] - 1, -1):
                u = blocks.variables[child]
                state = joint % cardinalities[u]
                _move(
                    u, state, scope_starts, scope_variables, factor_starts, factors, strides, chain
                )
                joint //= cardinalities[u]


@kernel
def _draw_from(probabilities, start, stop, random):
    """Index between `start` and `stop` with the given probabilities, never of zero."""
    probabilities, random = lent((probabilities, random))
    remaining = uniform(random)
    last = start
    for at in range(start, stop):
        if probabilities[at] > 0.0:
            last = at
            remaining -= probabilities[at]
            if remaining < 0.0:
                break
    return last


@kernel
def _move(variable, state, scope_starts, scope_variables, factor_starts, factors, strides, chain):
    """Set the state of a variable, and update the places of its factors.

    It is called for every draw, so that it is given no more of the graph than it needs.
    """
    scope_starts, scope_variables, factor_starts, factors, strides, chain = lent(
        (scope_starts, scope_variables, factor_starts, factors, strides, chain)
    )
    states, places = chain.states, chain.places
    # Entries of all factors on the variable move by stride times change; no other one does.
    change = state - states[variable]
    if change == 0:
        return
    states[variable] = state
    for entry in range(factor_starts[variable], factor_starts[variable + 1]):
        f = factors[entry]
        for slot in range(scope_starts[f], scope_starts[f + 1]):
            if scope_variables[slot] == variable:
                places[f] += change * strides[slot]
