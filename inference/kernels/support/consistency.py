"""Arc consistency: states that no assignment of positive potential can have (compiled).

A state of a variable is dropped if some factor gives zero to every combination of remaining states
that contains it (generalized arc consistency, Mackworth 1977, "On reading sketch maps"). Dropped
states are impossible; remaining states may be impossible too, except on forests of factors. The
queue of factors whose variables have lost states follows algorithm AC-3 (Mackworth 1977,
"Consistency in networks of relations"), for factors of any size. States are numbered through all
variables, in their order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.interaction import factors_by_variable
from inference.kernels.tables import next_entry
from inference.kernels.views import lent


class Domains(NamedTuple):
    """The remaining states of every variable, and the data needed to drop more of them.

    Attributes:
        state_starts: int64 (n_variables + 1,), where the states of every variable begin.
        alive: bool, whether a state is left.
        left: int64 (n_variables,), number of states left.
        hard: bool (n_factors,), whether a factor has a zero.
        factor_starts, factors: the factors at every variable.
        trail: int64, states in the order in which they were dropped.
        dropped: int64 (1,), number of entries of `trail` in use.
        queue: int64 (n_factors,), ring of factors to be examined.
        queued: bool (n_factors,), whether a factor is in the ring.
        supported: bool, scratch, one entry per state of the variables of a scope.
        digits: int64, scratch, one per variable of a scope.
        work: int64 (1,), number of table entries examined so far.
    """

    state_starts: NDArray[np.int64]
    alive: NDArray[np.bool_]
    left: NDArray[np.int64]
    hard: NDArray[np.bool_]
    factor_starts: NDArray[np.int64]
    factors: NDArray[np.int64]
    trail: NDArray[np.int64]
    dropped: NDArray[np.int64]
    queue: NDArray[np.int64]
    queued: NDArray[np.bool_]
    supported: NDArray[np.bool_]
    digits: NDArray[np.int64]
    work: NDArray[np.int64]


@inner_kernel
def state_offsets(cardinalities):
    """Return the start of each variable's states, and their total: int64 (n_variables + 1,).

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
    """
    starts = np.zeros(len(cardinalities) + 1, dtype=np.int64)
    for v in range(len(cardinalities)):
        starts[v + 1] = starts[v] + cardinalities[v]
    return starts


@inner_kernel
def variable_of(state_starts, at):
    """Return the variable of a state.

    Args:
        state_starts: int64 (n_variables + 1,), where the states of every variable begin.
        at: number of the state, through all variables.
    """
    low, high = 0, len(state_starts) - 1
    while high - low > 1:
        # Bisection: state_starts[low] <= at < state_starts[high].
        middle = (low + high) // 2
        if state_starts[middle] <= at:
            low = middle
        else:
            high = middle
    return low


@kernel
def all_states(graph):
    """Domains in which every state of a graph, `GraphArrays`, is left."""
    cardinalities, scope_starts, scope_variables, table_starts, log_values = lent(graph)
    n_factors = len(scope_starts) - 1
    state_starts = state_offsets(cardinalities)
    n_states = state_starts[len(cardinalities)]
    hard = np.zeros(n_factors, dtype=np.bool_)
    arity = 1
    states = 1
    for f in range(n_factors):
        for entry in range(table_starts[f], table_starts[f + 1]):
            # Only a factor with a zero can exclude a state.
            if log_values[entry] == -np.inf:
                hard[f] = True
                break
        total = 0
        for slot in range(scope_starts[f], scope_starts[f + 1]):
            total += cardinalities[scope_variables[slot]]
        arity = max(arity, scope_starts[f + 1] - scope_starts[f])
        states = max(states, total)
    factor_starts, factors = factors_by_variable(len(cardinalities), scope_starts, scope_variables)
    return Domains(
        state_starts,
        np.ones(n_states, dtype=np.bool_),
        cardinalities.copy(),
        hard,
        factor_starts,
        factors,
        np.empty(n_states, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.empty(max(n_factors, 1), dtype=np.int64),
        np.zeros(n_factors, dtype=np.bool_),
        np.empty(states, dtype=np.bool_),
        np.empty(arity, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@inner_kernel
def drop(domains, variable, state):
    """Drop a state that is left."""
    at = domains.state_starts[variable] + state
    domains.alive[at] = False
    domains.left[variable] -= 1
    domains.trail[domains.dropped[0]] = at
    domains.dropped[0] += 1


@inner_kernel
def restore(domains, mark):
    """Undo every drop after the first `mark` drops."""
    domains = lent(domains)
    # The trail says what was dropped since; the order of taking it back does not matter.
    for i in range(mark, domains.dropped[0]):
        at = domains.trail[i]
        domains.alive[at] = True
        domains.left[variable_of(domains.state_starts, at)] += 1
    domains.dropped[0] = mark


@kernel
def settle(graph, domains, first):
    """Drop states until every factor supports all remaining ones.

    Args:
        graph: its `GraphArrays`.
        first: the variable whose states were dropped last, or -1 to begin with every factor.

    Returns:
        -1, or the factor that leaves a variable without a state.
    """
    graph, domains = lent((graph, domains))
    cardinalities, scope_starts, scope_variables = graph[:3]
    n_factors = len(scope_starts) - 1
    head = 0
    count = 0
    # At first every factor with a zero, later those on the variable that has lost states.
    if first < 0:
        for f in range(n_factors):
            if domains.hard[f]:
                domains.queue[count] = f
                domains.queued[f] = True
                count += 1
    else:
        count = _enqueue(domains, first, -1, head, count)
    while count > 0:
        f = domains.queue[head]
        head = (head + 1) % n_factors
        count -= 1
        domains.queued[f] = False
        _find_support(f, graph, domains)
        at = 0
        for slot in range(scope_starts[f], scope_starts[f + 1]):
            v = scope_variables[slot]
            before = domains.left[v]
            # Revise: states of v that no possible entry of the factor has.
            for state in range(cardinalities[v]):
                if domains.alive[domains.state_starts[v] + state] and not domains.supported[at]:
                    drop(domains, v, state)
                at += 1
            if domains.left[v] == 0:
                # A contradiction: the queue is emptied for the next call.
                while count > 0:
                    domains.queued[domains.queue[head]] = False
                    head = (head + 1) % n_factors
                    count -= 1
                return f
            if domains.left[v] < before:
                # Other factors on v may lose their support in turn.
                count = _enqueue(domains, v, f, head, count)
        # A factor without variables cannot exclude states: if it is zero, nothing is possible.
        nullary = scope_starts[f] == scope_starts[f + 1]
        if nullary and graph.log_values[graph.table_starts[f]] == -np.inf:
            return f
    return -1


@kernel
def _enqueue(domains, variable, but, head, count):
    """Add the factors with zeros on a variable, all but one, to the queue; return its new length.

    Args:
        but: the factor that is left out.
        head, count: where the queue, a ring, begins, and how many factors it holds.
    """
    domains = lent(domains)
    size = len(domains.queue)
    for entry in range(domains.factor_starts[variable], domains.factor_starts[variable + 1]):
        f = domains.factors[entry]
        if domains.hard[f] and not domains.queued[f] and f != but:
            domains.queue[(head + count) % size] = f
            domains.queued[f] = True
            count += 1
    return count


@inlined_kernel
def _find_support(f, graph, domains):
    """Mark in `domains.supported` the states that occur in a possible entry of a factor."""
    cardinalities, scope_starts, scope_variables, table_starts, log_values = graph
    start, stop = scope_starts[f], scope_starts[f + 1]
    scope = scope_variables[start:stop]
    arity = stop - start
    digits = domains.digits
    digits[:arity] = 0
    total = 0
    for slot in range(start, stop):
        total += cardinalities[scope_variables[slot]]
    domains.supported[:total] = False
    domains.work[0] += table_starts[f + 1] - table_starts[f]
    for entry in range(table_starts[f], table_starts[f + 1]):
        if log_values[entry] > -np.inf:
            # An entry supports its states if all of them are left.
            possible = True
            for axis in range(arity):
                at = domains.state_starts[scope_variables[start + axis]] + digits[axis]
                if not domains.alive[at]:
                    possible = False
                    break
            if possible:
                at = 0
                for axis in range(arity):
                    domains.supported[at + digits[axis]] = True
                    at += cardinalities[scope_variables[start + axis]]
        next_entry(digits, cardinalities, scope)
