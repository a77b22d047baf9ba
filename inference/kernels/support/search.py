"""Search for an assignment of positive potential (compiled).

Backtracking that keeps arc consistency (Sabin & Freuder 1994, "Contradicting conventional wisdom in
constraint satisfaction"): a variable is given one of its states at random, what becomes impossible
is dropped, and where nothing remains the state is refuted. The first run takes variables as they
come, which suffices on forests; later runs restart with a larger allowance and take the variable
with the smallest ratio of states to the weight of its factors, a weight being the number of
contradictions that the factor caused (Boussemart et al. 2004, "Boosting systematic search by
weighting constraints").
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.random_numbers import below, shuffle
from inference.kernels.support.consistency import drop, restore, settle
from inference.kernels.views import lent

FOUND = 0
CONTRADICTION = 1
GAVE_UP = 2

_FIRST_ALLOWANCE = 100
"""Contradictions in the first run, after which the search restarts with half as many again."""


@kernel
def hard_components(scope_starts, scope_variables, domains):
    """Return starts and variables: groups of variables that factors with zeros connect.

    Groups leave out variables with a single remaining state, and variables without a factor that
    contains a zero.

    Args:
        scope_starts, scope_variables: arrays as in `GraphArrays`.
        domains: the `Domains`.

    Returns:
        starts: int64 (n_groups + 1,), where each group begins in `variables`.
        variables: int64, indices of variables, one group after another.
    """
    domains = lent(domains)
    n = len(domains.left)
    starts = np.zeros(n + 1, dtype=np.int64)
    variables = np.empty(n, dtype=np.int64)
    reached = np.zeros(n, dtype=np.bool_)
    groups = 0
    tail = 0
    for root in range(n):
        if reached[root] or domains.left[root] < 2:
            continue
        reached[root] = True
        variables[tail] = root
        head = tail
        tail += 1
        # Breadth first, along factors with zeros.
        while head < tail:
            v = variables[head]
            head += 1
            for entry in range(domains.factor_starts[v], domains.factor_starts[v + 1]):
                f = domains.factors[entry]
                if domains.hard[f]:
                    scope = scope_variables[scope_starts[f] : scope_starts[f + 1]]
                    tail = _reach(scope, domains.left, reached, variables, tail)
        # A variable alone has no factor with a zero to other open ones: each state left is
        # possible.
        if tail - starts[groups] > 1:
            groups += 1
            starts[groups] = tail
        else:
            tail = starts[groups]
    return starts[: groups + 1], variables[:tail]


@inner_kernel
def _reach(scope, left, reached, variables, tail):
    """Append the variables of a scope with several states left; return the new end."""
    for u in scope:
        if not reached[u] and left[u] > 1:
            reached[u] = True
            variables[tail] = u
            tail += 1
    return tail


@kernel
def find_assignment(graph, domains, random, max_work):
    """Drop states until every variable has one left and the potential is positive.

    Args:
        graph: its `GraphArrays`.
        domains: the result of `settle`; the answer is in its `alive`.
        random: uint64 (1,), state of the random numbers.
        max_work: maximum number of table entries to examine.

    Returns:
        FOUND, CONTRADICTION (there is no such assignment) or GAVE_UP.
    """
    graph, domains = lent((graph, domains))
    starts, variables = hard_components(graph.scope_starts, graph.scope_variables, domains)
    weights = np.ones(len(graph.scope_starts) - 1, dtype=np.int64)
    end = domains.work[0] + max_work
    for group in range(len(starts) - 1):
        # Groups share no factor with a zero, so that each is searched by itself.
        members = variables[starts[group] : starts[group + 1]].copy()
        allowance = _FIRST_ALLOWANCE
        code = GAVE_UP
        # Everything dropped from here on belongs to this group, and is taken back at a restart.
        root = domains.dropped[0]
        in_order = True
        while code == GAVE_UP:
            if domains.work[0] > end:
                return GAVE_UP
            code = _run(graph, domains, random, members, weights, in_order, allowance, end)
            if code == CONTRADICTION:
                return CONTRADICTION
            if code == GAVE_UP:
                restore(domains, root)
                shuffle(random, members)
                allowance += allowance // 2
                in_order = False
    for v in range(len(graph.cardinalities)):
        if domains.left[v] > 1:
            # No zero restricts these any more.
            keep_one(domains, v, below(random, domains.left[v]))
    return FOUND


@inner_kernel
def keep_one(domains, variable, rank):
    """Drop every remaining state of a variable except the state of rank `rank`."""
    start, stop = domains.state_starts[variable], domains.state_starts[variable + 1]
    seen = 0
    kept = -1
    for state in range(stop - start):
        if domains.alive[start + state]:
            if seen == rank:
                kept = state
            else:
                drop(domains, variable, state)
            seen += 1
    return kept


@kernel
def _run(graph, domains, random, members, weights, in_order, allowance, end):
    """Search one group; a run ends without an answer after `allowance` contradictions."""
    graph, domains = lent((graph, domains))
    size = len(members)
    chosen = np.empty(size, dtype=np.int64)
    states = np.empty(size, dtype=np.int64)
    marks = np.empty(size, dtype=np.int64)
    places = np.zeros(size + 1, dtype=np.int64)
    depth = 0
    contradictions = 0
    while True:
        v = -1
        if in_order:
            position = places[depth]
            while position < size and domains.left[members[position]] == 1:
                position += 1
            places[depth] = position
            if position < size:
                v = members[position]
        else:
            v = _most_constrained(members, domains, weights)
        if v < 0:
            return FOUND
        # A decision: one state at random is kept, and the others are dropped.
        chosen[depth] = v
        marks[depth] = domains.dropped[0]
        states[depth] = keep_one(domains, v, below(random, domains.left[v]))
        places[depth + 1] = places[depth]
        depth += 1
        culprit = settle(graph, domains, v)
        # A contradiction refutes the last decision: its state is dropped, which may be a
        # contradiction too, one decision earlier.
        while culprit >= 0:
            weights[culprit] += 1
            contradictions += 1
            # Nothing was decided: there is no assignment.
            if depth == 0:
                return CONTRADICTION
            if contradictions > allowance or domains.work[0] > end:
                return GAVE_UP
            depth -= 1
            restore(domains, marks[depth])
            v = chosen[depth]
            drop(domains, v, states[depth])
            culprit = settle(graph, domains, v)


@inlined_kernel
def _most_constrained(members, domains, weights):
    """Open variable with the smallest ratio of states to the weight of its factors; -1: none.

    This is dom/wdeg (Boussemart, Hemery, Lecoutre & Sais 2004).

    Args:
        members: int64, the variables of a group.
        weights: int64 (n_factors,), 1 more than the contradictions that each factor caused.
    """
    best = -1
    least = np.inf
    for v in members:
        if domains.left[v] == 1:
            continue
        weight = 0
        for entry in range(domains.factor_starts[v], domains.factor_starts[v + 1]):
            f = domains.factors[entry]
            if domains.hard[f]:
                weight += weights[f]
        # Few states, and factors that often failed: the smallest ratio fails soonest.
        ratio = domains.left[v] / weight
        if ratio < least:
            least = ratio
            best = v
    return best
