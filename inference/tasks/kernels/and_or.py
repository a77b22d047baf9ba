"""Depth-first branch and bound over an AND/OR tree, bounded by mini-buckets (compiled).

Variables are assigned along a pseudo tree, here the bucket tree of an elimination order. Below an
assigned variable its subtrees share nothing that is free, so each is solved by itself (AND), state
by state of its own root (OR). What has been learned of a subtree, an upper bound, is kept by the
states of its context: those variables above it that its factors touch (Marinescu & Dechter 2009,
"AND/OR branch-and-bound search for combinatorial optimization in graphical models" and "Memory
intensive AND/OR search").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.cluster_tree import buckets_of
from inference.kernels.compiled import kernel
from inference.kernels.grouping import group
from inference.mini_buckets.kernels.proposal import message_index, potential

_ENTER = 0
_NEXT = 1
_CHILD = 2
_RETURN = 3


class PseudoTree(NamedTuple):
    """A pseudo tree over places in an elimination order, parents after their children.

    Attributes:
        parents: int64 (n,), the place above each; n, which stands above the roots, at a root.
        child_starts, children: int64, the places below each and below n, smallest subtree first.
        first: int64 (n + 1,), where each subtree begins in a walk from the root down.
        sizes: int64 (n + 1,), places in each subtree.
        walk: int64 (n,), the places in that walk.
        context_starts, contexts: int64, the variables above each place that its subtree touches.
        factor_starts, factors: int64, the factors whose lowest variable stands at each place.
        crossing_starts, crossing: int64, the mini-buckets of each subtree whose messages leave it;
            listed where the parent has several children.
        cache_starts: int64 (n + 1,), where what is learned of each subtree is kept.
    """

    parents: NDArray[np.int64]
    child_starts: NDArray[np.int64]
    children: NDArray[np.int64]
    first: NDArray[np.int64]
    sizes: NDArray[np.int64]
    walk: NDArray[np.int64]
    context_starts: NDArray[np.int64]
    contexts: NDArray[np.int64]
    factor_starts: NDArray[np.int64]
    factors: NDArray[np.int64]
    crossing_starts: NDArray[np.int64]
    crossing: NDArray[np.int64]
    cache_starts: NDArray[np.int64]


class SearchState(NamedTuple):
    """Where a search stands. Entries of a place describe its one active visit, if there is one.

    Attributes:
        place: int64 (2,), the place in hand (-1: the search is over) and what comes next there.
        states: int64 (n,), the states in hand.
        left: int64 (n + 1,), how many states of a place are left to try.
        queue: int64 (n, widest), those states, the best last.
        bounds: float64 (n, widest), upper bounds on the subtree with them.
        own, pure: float64 (n, widest), of every state, the log potential of the place's own
            factors, and what the mini-buckets alone say of the subtree.
        child: int64 (n + 1,), number of the child in hand.
        heuristic, ceiling: float64 (n,), what mini-buckets say of the subtree, and the least bound.
        threshold: float64 (n,), what the subtree must exceed to be of use.
        found: float64 (n + 1,), the best found in it.
        solved, open: float64 (n + 1,), of the state in hand: the sum of its factors and solved
            children, and the sum of the bounds of those not begun.
        solution_starts: int64 (n + 1,); solutions: int32, states of the best found in each subtree,
            in the order of the walk.
        cache: float64, upper bounds by context.
        kept: float64 (n,), what the best assignment makes of each subtree.
    """

    place: NDArray[np.int64]
    states: NDArray[np.int64]
    left: NDArray[np.int64]
    queue: NDArray[np.int64]
    bounds: NDArray[np.float64]
    own: NDArray[np.float64]
    pure: NDArray[np.float64]
    child: NDArray[np.int64]
    heuristic: NDArray[np.float64]
    ceiling: NDArray[np.float64]
    threshold: NDArray[np.float64]
    found: NDArray[np.float64]
    solved: NDArray[np.float64]
    open: NDArray[np.float64]
    solution_starts: NDArray[np.int64]
    solutions: NDArray[np.int32]
    cache: NDArray[np.float64]
    kept: NDArray[np.float64]


@kernel
def pseudo_tree(cardinalities, scope_starts, scope_variables, order, mini, cache_limit):
    """Pseudo tree of an elimination order, with room to learn.

    Args:
        mini: mini-buckets of the same order.
        cache_limit: most entries that are kept by context in all; small contexts come first.
    """
    n = len(cardinalities)
    owner, starts, places, above = buckets_of(cardinalities, scope_starts, scope_variables, order)
    parents = above.copy()
    sizes = np.ones(n + 1, dtype=np.int64)
    for place in range(n):
        if parents[place] < 0:
            parents[place] = n
        sizes[parents[place]] += sizes[place]
    child_starts, children = group(parents, n + 1)
    for place in range(n + 1):
        own = children[child_starts[place] : child_starts[place + 1]]
        own[:] = own[np.argsort(sizes[own], kind="mergesort")]
    # From the top down: the first child follows its parent, each next one the subtree before.
    first = np.zeros(n + 1, dtype=np.int64)
    first[n] = -1
    walk = np.empty(n, dtype=np.int64)
    for place in range(n, -1, -1):
        following = first[place] + 1
        if place < n:
            walk[first[place]] = place
        for entry in range(child_starts[place], child_starts[place + 1]):
            first[children[entry]] = following
            following += sizes[children[entry]]
    context_starts = np.zeros(n + 1, dtype=np.int64)
    log2_sizes = np.zeros(n, dtype=np.float64)
    for place in range(n):
        context_starts[place + 1] = context_starts[place] + starts[place + 1] - starts[place] - 1
    contexts = np.empty(context_starts[n], dtype=np.int64)
    for place in range(n):
        for k in range(context_starts[place + 1] - context_starts[place]):
            v = order[places[starts[place] + k]]
            contexts[context_starts[place] + k] = v
            log2_sizes[place] += np.log2(cardinalities[v])
    entries = np.zeros(n, dtype=np.int64)
    used = 0
    for place in np.argsort(log2_sizes, kind="mergesort"):
        if log2_sizes[place] > 40.0 or used + np.exp2(log2_sizes[place]) > cache_limit:
            break
        entries[place] = 1
        for at in range(context_starts[place], context_starts[place + 1]):
            entries[place] *= cardinalities[contexts[at]]
        used += entries[place]
    cache_starts = np.zeros(n + 1, dtype=np.int64)
    for place in range(n):
        cache_starts[place + 1] = cache_starts[place] + entries[place]
    factor_starts, factors = group(owner, n)
    crossing_starts = np.zeros(n + 1, dtype=np.int64)
    crossing = np.empty(0, dtype=np.int64)
    bucket = np.empty(len(mini.parents), dtype=np.int64)
    for place in range(n):
        bucket[mini.bucket_starts[place] : mini.bucket_starts[place + 1]] = place
    for fill_pass in range(2):
        count = np.zeros(n, dtype=np.int64)
        for node in range(len(bucket)):
            receiver = n if mini.parents[node] < 0 else bucket[mini.parents[node]]
            place = bucket[node]
            while place != receiver and place != n:
                up = parents[place]
                if child_starts[up + 1] - child_starts[up] > 1:
                    if fill_pass == 1:
                        crossing[crossing_starts[place] + count[place]] = node
                    count[place] += 1
                place = up
        if fill_pass == 0:
            for place in range(n):
                crossing_starts[place + 1] = crossing_starts[place] + count[place]
            crossing = np.empty(crossing_starts[n], dtype=np.int64)
    return PseudoTree(
        parents, child_starts, children, first, sizes, walk, context_starts, contexts,
        factor_starts, factors, crossing_starts, crossing, cache_starts,
    )  # fmt: skip


@kernel
def begin(cardinalities, found, pseudo):
    """A search that has not begun."""
    n = len(cardinalities)
    widest = 1
    for count in cardinalities:
        widest = max(widest, count)
    place = np.array([n, _CHILD])
    solution_starts = np.zeros(n + 1, dtype=np.int64)
    for p in range(n):
        solution_starts[p + 1] = solution_starts[p] + pseudo.sizes[p]
    progress = SearchState(
        place,
        np.zeros(n, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros((n, widest), dtype=np.int64),
        np.zeros((n, widest)),
        np.zeros((n, widest)),
        np.zeros((n, widest)),
        np.full(n + 1, -1),
        np.zeros(n),
        np.zeros(n),
        np.full(n, -np.inf),
        np.full(n + 1, -np.inf),
        np.zeros(n + 1),
        np.zeros(n + 1),
        solution_starts,
        np.zeros(solution_starts[n], dtype=np.int32),
        np.full(pseudo.cache_starts[n], np.inf),
        np.zeros(n),
    )
    progress.open[n] = _bound_children(n, found.bound, cardinalities, found, pseudo, progress)
    progress.child[n] = -1
    return progress


@kernel
def _cache_index(place, cardinalities, cache_starts, context_starts, contexts, states):
    """Entry of the cache for the states of a place's context; -1 if it has none."""
    if cache_starts[place + 1] == cache_starts[place]:
        return -1
    index = 0
    for at in range(context_starts[place], context_starts[place + 1]):
        v = contexts[at]
        index = index * cardinalities[v] + states[v]
    return cache_starts[place] + index


@kernel
def _has_plain_child(place, child_starts, children, cache_starts):
    """Whether there is one place below, of which nothing is kept: its bound is what is left."""
    start = child_starts[place]
    if child_starts[place + 1] != start + 1:
        return False
    child = children[start]
    return cache_starts[child + 1] == cache_starts[child]


@kernel
def _bound_children(place, together, cardinalities, found, pseudo, progress):
    """Bound the subtrees below a place from the states in hand; return the sum of the bounds.

    Args:
        together: what the mini-buckets say of all of them.
    """
    begin_, end = pseudo.child_starts[place], pseudo.child_starts[place + 1]
    total = 0.0
    for entry in range(begin_, end):
        child = pseudo.children[entry]
        value = together
        if end - begin_ > 1:
            value = 0.0
            for at in range(pseudo.crossing_starts[child], pseudo.crossing_starts[child + 1]):
                node = pseudo.crossing[at]
                index = message_index(node, cardinalities, found.tree, progress.states)
                value += found.messages[found.tree.message_starts[node] + index]
        progress.heuristic[child] = value
        index = _cache_index(
            child, cardinalities, pseudo.cache_starts, pseudo.context_starts, pseudo.contexts,
            progress.states,
        )  # fmt: skip
        if index >= 0:
            value = min(value, progress.cache[index])
        progress.ceiling[child] = value
        total += value
    return total


@kernel
def _factor_base(f, v, cardinalities, scope_starts, scope_variables, table_starts, states):
    """Entry of a factor's table at state 0 of a variable, and how far apart its states are."""
    base = 0
    stride = 0
    for slot in range(scope_starts[f], scope_starts[f + 1]):
        u = scope_variables[slot]
        base *= cardinalities[u]
        stride *= cardinalities[u]
        if u == v:
            stride = 1
        else:
            base += states[u]
    return table_starts[f] + base, stride


@kernel
def _value_parts(
    cardinalities, scope_starts, scope_variables, table_starts, tables, order, pseudo, states, kept
):
    """Write what an assignment makes of every subtree to `kept`."""
    n = len(cardinalities)
    kept[:] = 0.0
    for place in range(n):
        v = order[place]
        for entry in range(pseudo.factor_starts[place], pseudo.factor_starts[place + 1]):
            base, stride = _factor_base(
                pseudo.factors[entry], v, cardinalities, scope_starts, scope_variables,
                table_starts, states,
            )  # fmt: skip
            kept[place] += tables[base + states[v] * stride]
        if pseudo.parents[place] < n:
            kept[pseudo.parents[place]] += kept[place]


@kernel
def _raise_thresholds(n, limit, pseudo, progress, path):
    """Let what was found above cut what is in hand below."""
    length = 0
    place = progress.place[0]
    while place != n:
        path[length] = place
        length += 1
        place = pseudo.parents[place]
    for k in range(length - 1, -1, -1):
        place = path[k]
        up = pseudo.parents[place]
        need = limit
        if up != n:
            need = max(progress.threshold[up], progress.found[up])
        need -= progress.solved[up] + progress.open[up]
        progress.threshold[place] = max(progress.threshold[place], need)


@kernel
def _enter(
    p, cardinalities, scope_starts, scope_variables, table_starts, tables, order, found, pseudo,
    progress, best_states, fine, nodes,
):  # fmt: skip
    """Begin with a subtree: what the best assignment has there, and its states by their bounds."""
    mini, tree = found.mini, found.tree
    states = progress.states
    v = order[p]
    count = cardinalities[v]
    progress.found[p] = -np.inf
    if progress.kept[p] > progress.threshold[p]:
        agrees = True
        for at in range(pseudo.context_starts[p], pseudo.context_starts[p + 1]):
            if states[pseudo.contexts[at]] != best_states[pseudo.contexts[at]]:
                agrees = False
                break
        if agrees:
            progress.found[p] = progress.kept[p]
            start = progress.solution_starts[p]
            for k in range(pseudo.sizes[p]):
                other = order[pseudo.walk[pseudo.first[p] + k]]
                progress.solutions[start + k] = best_states[other]
    limit = max(progress.threshold[p], progress.found[p]) + fine
    pure = progress.pure[p]
    own = progress.own[p]
    pure[:count] = progress.heuristic[p]
    own[:count] = 0.0
    for node in range(mini.bucket_starts[p], mini.bucket_starts[p + 1]):
        index = message_index(node, cardinalities, tree, states)
        message = found.messages[tree.message_starts[node] + index]
        at = tree.table_starts[node] + index * count
        for state in range(count):
            value = found.tables[at + state]
            pure[state] = pure[state] + value - message if value > -np.inf else -np.inf
    for entry in range(pseudo.factor_starts[p], pseudo.factor_starts[p + 1]):
        base, stride = _factor_base(
            pseudo.factors[entry], v, cardinalities, scope_starts, scope_variables, table_starts,
            states,
        )  # fmt: skip
        for state in range(count):
            own[state] += tables[base + state * stride]
    leaf = pseudo.child_starts[p] == pseudo.child_starts[p + 1]
    plain = _has_plain_child(p, pseudo.child_starts, pseudo.children, pseudo.cache_starts)
    used = 0
    for state in range(count):
        value = own[state] if leaf else pure[state]
        if not value > limit:
            continue
        if not leaf and not plain:
            states[v] = state
            value = own[state] + _bound_children(
                p, pure[state] - own[state], cardinalities, found, pseudo, progress
            )
            if not value > limit:
                continue
        position = used
        while position > 0 and progress.bounds[p, position - 1] > value:
            progress.bounds[p, position] = progress.bounds[p, position - 1]
            progress.queue[p, position] = progress.queue[p, position - 1]
            position -= 1
        progress.bounds[p, position] = value
        progress.queue[p, position] = state
        used += 1
    progress.left[p] = used
    nodes[0] += 1


@kernel
def _accepted(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, best_states, best, trial
):
    """Make an assignment the best, if it is better."""
    value = potential(scope_starts, scope_variables, table_starts, cardinalities, log_values, trial)
    if not value > best[0]:
        return False
    best[0] = value
    best_states[:] = trial
    return True


@kernel
def _better(
    p, cardinalities, scope_starts, scope_variables, table_starts, log_values, order, pseudo,
    progress, best_states, best, trial,
):  # fmt: skip
    """Put what was found in a subtree into the best assignment, if it fits and is better."""
    for at in range(pseudo.context_starts[p], pseudo.context_starts[p + 1]):
        if progress.states[pseudo.contexts[at]] != best_states[pseudo.contexts[at]]:
            return False
    trial[:] = best_states
    start = progress.solution_starts[p]
    for k in range(pseudo.sizes[p]):
        trial[order[pseudo.walk[pseudo.first[p] + k]]] = progress.solutions[start + k]
    return _accepted(
        cardinalities, scope_starts, scope_variables, table_starts, log_values, best_states, best,
        trial,
    )  # fmt: skip


@kernel
def _put_together(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, order, pseudo,
    progress, best_states, best, trial,
):  # fmt: skip
    """Take what was found below every root, if it is better than the best."""
    n = len(cardinalities)
    for entry in range(pseudo.child_starts[n], pseudo.child_starts[n + 1]):
        root = pseudo.children[entry]
        start = progress.solution_starts[root]
        for k in range(pseudo.sizes[root]):
            trial[order[pseudo.walk[pseudo.first[root] + k]]] = progress.solutions[start + k]
    return _accepted(
        cardinalities, scope_starts, scope_variables, table_starts, log_values, best_states, best,
        trial,
    )  # fmt: skip


@kernel
def search_on(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, tables, order, found,
    pseudo, progress, best_states, best, slack, most_nodes,
):  # fmt: skip
    """Go on with a search for the assignment of largest potential.

    The best assignment, wherever it comes from, cuts from its next call on; where it agrees with
    the context of a subtree, what is better there is put into it at once.

    Args:
        log_values, tables: float64, the log tables, as they are and reparametrised.
        found: mini-buckets of the reparametrised tables.
        best_states: int64 (n,), the best assignment so far; renewed.
        best: float64 (1,), its log potential; renewed.
        slack: how far below the best the result may stay.
        most_nodes: after how many subtrees this returns.

    Returns:
        improved: how often a better assignment was found.
        tried: how many subtrees were begun.
    """
    n = len(cardinalities)
    # Half of the slack is for what is not looked for, half for what bounds lose on their way up.
    fine = 0.5 * slack / (n + 1)
    improved = 0
    nodes = np.zeros(1, dtype=np.int64)
    path = np.empty(n, dtype=np.int64)
    trial = np.empty(n, dtype=np.int64)
    if progress.place[0] >= 0:
        _value_parts(
            cardinalities, scope_starts, scope_variables, table_starts, tables, order, pseudo,
            best_states, progress.kept,
        )  # fmt: skip
        _raise_thresholds(n, best[0] + 0.5 * slack, pseudo, progress, path)
    while progress.place[0] >= 0:
        p, phase = progress.place[0], progress.place[1]
        limit = best[0] + 0.5 * slack
        if p < n:
            limit = max(progress.threshold[p], progress.found[p])
        if phase == _ENTER:
            if nodes[0] >= most_nodes:
                break
            _enter(
                p, cardinalities, scope_starts, scope_variables, table_starts, tables, order,
                found, pseudo, progress, best_states, fine, nodes,
            )  # fmt: skip
            progress.place[1] = _NEXT
        elif phase == _NEXT:
            if progress.left[p] == 0:
                progress.place[1] = _RETURN
                continue
            progress.left[p] -= 1
            last = progress.left[p]
            if not progress.bounds[p, last] > limit + fine:
                progress.left[p] = 0
                continue
            state = progress.queue[p, last]
            progress.states[order[p]] = state
            progress.solved[p] = progress.own[p, state]
            together = progress.pure[p, state] - progress.own[p, state]
            if _has_plain_child(p, pseudo.child_starts, pseudo.children, pseudo.cache_starts):
                child = pseudo.children[pseudo.child_starts[p]]
                progress.heuristic[child] = together
                progress.ceiling[child] = together
                progress.open[p] = together
            else:
                progress.open[p] = _bound_children(
                    p, together, cardinalities, found, pseudo, progress
                )
            progress.child[p] = -1
            if progress.solved[p] + progress.open[p] > limit + fine:
                progress.place[1] = _CHILD
        elif phase == _CHILD:
            progress.child[p] += 1
            entry = pseudo.child_starts[p] + progress.child[p]
            if entry < pseudo.child_starts[p + 1]:
                child = pseudo.children[entry]
                progress.open[p] -= progress.ceiling[child]
                if entry == pseudo.child_starts[p + 1] - 1:
                    progress.open[p] = 0.0
                threshold = limit - progress.solved[p] - progress.open[p]
                progress.threshold[child] = threshold
                if progress.ceiling[child] > threshold + fine:
                    progress.place[0] = child
                    progress.place[1] = _ENTER
                elif p == n:
                    progress.place[0] = -1
                else:
                    progress.place[1] = _NEXT
                continue
            if p == n:
                # Parts were put in when they were found, but where the whole stayed impossible.
                improved += _put_together(
                    cardinalities, scope_starts, scope_variables, table_starts, log_values, order,
                    pseudo, progress, best_states, best, trial,
                )  # fmt: skip
                progress.place[0] = -1
                continue
            progress.place[1] = _NEXT
            if not progress.solved[p] > limit:
                continue
            progress.found[p] = progress.solved[p]
            start = progress.solution_starts[p]
            progress.solutions[start] = progress.states[order[p]]
            for entry in range(pseudo.child_starts[p], pseudo.child_starts[p + 1]):
                child = pseudo.children[entry]
                source = progress.solution_starts[child]
                target = start + pseudo.first[child] - pseudo.first[p]
                for k in range(pseudo.sizes[child]):
                    progress.solutions[target + k] = progress.solutions[source + k]
            if progress.found[p] > progress.kept[p] + fine and _better(
                p, cardinalities, scope_starts, scope_variables, table_starts, log_values, order,
                pseudo, progress, best_states, best, trial,
            ):  # fmt: skip
                improved += 1
                _value_parts(
                    cardinalities, scope_starts, scope_variables, table_starts, tables, order,
                    pseudo, best_states, progress.kept,
                )  # fmt: skip
                _raise_thresholds(n, best[0] + 0.5 * slack, pseudo, progress, path)
        else:
            index = _cache_index(
                p, cardinalities, pseudo.cache_starts, pseudo.context_starts, pseudo.contexts,
                progress.states,
            )  # fmt: skip
            if index >= 0:
                learned = limit + fine * pseudo.sizes[p]
                progress.cache[index] = min(progress.cache[index], learned)
            up = pseudo.parents[p]
            progress.place[0] = up
            if progress.found[p] > progress.threshold[p]:
                progress.solved[up] += progress.found[p]
                progress.place[1] = _CHILD
            elif up == n:
                progress.place[0] = -1
            else:
                progress.place[1] = _NEXT
    return improved, nodes[0]


@kernel
def open_bound(pseudo, progress, best):
    """Upper bound on what a search that stopped has not looked into, or its best."""
    n = len(pseudo.parents)
    place = progress.place[0]
    if place < 0:
        return best
    if place == n:
        return max(best, progress.solved[n] + progress.open[n])
    bound = progress.ceiling[place]
    up = pseudo.parents[place]
    while up != n:
        bound += progress.solved[up] + progress.open[up]
        bound = max(bound, progress.threshold[up], progress.found[up])
        if progress.left[up] > 0:
            bound = max(bound, progress.bounds[up, progress.left[up] - 1])
        up = pseudo.parents[up]
    return max(best, bound + progress.solved[n] + progress.open[n])


@kernel
def greedy(cardinalities, order, found, states):
    """Assign variables against the order, each its best state by its mini-buckets.

    Args:
        states: int64 (n,), filled.
    """
    mini, tree = found.mini, found.tree
    for place in range(len(order) - 1, -1, -1):
        v = order[place]
        count = cardinalities[v]
        largest = -np.inf
        chosen = 0
        for state in range(count):
            value = 0.0
            for node in range(mini.bucket_starts[place], mini.bucket_starts[place + 1]):
                index = message_index(node, cardinalities, tree, states)
                value += found.tables[tree.table_starts[node] + index * count + state]
            if value > largest:
                largest = value
                chosen = state
        states[v] = chosen
