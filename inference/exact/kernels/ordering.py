"""Elimination orders: leaves first, then greedy with seeded restarts, component by component.

Leaves (and isolated variables) are eliminated first in linear time: that is always optimal and
solves forests outright. What remains is ordered greedily on rows of bits. Two criteria take turns
over the restarts: fewest fill edges, and smallest resulting table; the order of the smallest total
table size wins. The search ends by its effort, counted in steps of about a nanosecond, and not by
the clock, so that the order is the same on every run; no memory limit plays a part.
"""

from __future__ import annotations

import math

import numpy as np

from inference.exact.kernels.sparse_ordering import minimum_degree_order
from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.random_numbers import next_word

MIN_FILL = 0
MIN_WEIGHT = 1

_WORD = 64

_LARGEST_MATRIX = 16_384
"""Components of more variables are ordered without a bit matrix, which would pass 32 MB here."""


@inlined_kernel
def _population_count(word):
    # Numba has no intrinsic for it; LLVM turns this idiom into one instruction.
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined_kernel
def _members(rows, vertex, out):
    """Write the neighbours of `vertex` to `out`, ascending; return how many there are."""
    count = 0
    for w in range(rows.shape[1]):
        word = rows[vertex, w]
        while word != np.uint64(0):
            low = word & (~word + np.uint64(1))
            out[count] = w * _WORD + _population_count(low - np.uint64(1))
            count += 1
            word ^= low
    return count


@inlined_kernel
def _fill_edges(rows, vertex, members):
    """(Number of neighbour pairs of `vertex` that are not joined, its degree)."""
    degree = _members(rows, vertex, members)
    joined = 0
    for i in range(degree):
        other = members[i]
        for w in range(rows.shape[1]):
            joined += _population_count(rows[other, w] & rows[vertex, w])
    return (degree * (degree - 1) - joined) // 2, degree


@inlined_kernel
def _log2_table(rows, vertex, log2_card, members):
    """Log2 of the size of the table that eliminating `vertex` makes."""
    total = log2_card[vertex]
    for i in range(_members(rows, vertex, members)):
        total += log2_card[members[i]]
    return total


@kernel
def _greedy(given_rows, log2_card, criterion, seed, bound, effort):
    """Eliminate every vertex greedily; return (order, total table size, effort).

    Stops early, with an infinite total, when the total passes `bound`. Once the effort is spent,
    the cheaper criterion goes on.
    """
    n = len(log2_card)
    rows = given_rows.copy()
    words = rows.shape[1]
    members = np.empty(n, dtype=np.int64)
    second = np.empty(n, dtype=np.int64)
    order = np.empty(n, dtype=np.int64)
    alive = np.ones(n, dtype=np.bool_)
    stale = np.zeros(n, dtype=np.bool_)
    touched = np.empty(n, dtype=np.int64)
    score = np.empty(n, dtype=np.float64)
    random = np.array([seed], dtype=np.uint64)
    total = 0.0
    spent = 2.0 * n * words
    for v in range(n):
        if criterion == MIN_FILL:
            score[v], degree = _fill_edges(rows, v, members)
            spent += degree * words
        else:
            score[v] = _log2_table(rows, v, log2_card, members)
    for step in range(n):
        best = -1
        ties = 0
        for v in range(n):
            if not alive[v]:
                continue
            if best < 0 or score[v] < score[best]:
                best = v
                ties = 1
            elif score[v] == score[best] and seed != 0:
                ties += 1
                if next_word(random) % np.uint64(ties) == np.uint64(0):
                    best = v
        size = _log2_table(rows, best, log2_card, members)
        total += math.exp2(size)
        order[step] = best
        alive[best] = False
        spent += 5.0 * n + words
        if total > bound:
            return order, np.inf, spent
        degree = _members(rows, best, members)
        if degree == n - step - 1:
            # Its neighbours are all that is left, and a clique: the widest variables go first.
            rest = members[:degree][np.argsort(-log2_card[members[:degree]], kind="mergesort")]
            for i in range(degree):
                order[step + 1 + i] = rest[i]
                size -= log2_card[best] if i == 0 else log2_card[rest[i - 1]]
                total += math.exp2(size)
            return order, total if total <= bound else np.inf, spent
        if spent > effort and criterion == MIN_FILL:
            criterion = MIN_WEIGHT
            for v in range(n):
                if alive[v]:
                    score[v] = _log2_table(rows, v, log2_card, second)
        adds_edges = criterion == MIN_WEIGHT or score[best] > 0
        count = 0
        for i in range(degree):
            u = members[i]
            rows[u, best // _WORD] &= ~(np.uint64(1) << np.uint64(best % _WORD))
            if adds_edges:
                for w in range(words):
                    rows[u, w] |= rows[best, w]
                rows[u, u // _WORD] &= ~(np.uint64(1) << np.uint64(u % _WORD))
                rows[u, best // _WORD] &= ~(np.uint64(1) << np.uint64(best % _WORD))
            stale[u] = True
            touched[count] = u
            count += 1
        if criterion == MIN_FILL and adds_edges:
            # A fill edge between two neighbours of x changes the fill of x as well.
            for i in range(degree):
                for j in range(_members(rows, members[i], second)):
                    u = second[j]
                    if not stale[u]:
                        stale[u] = True
                        touched[count] = u
                        count += 1
        for i in range(count):
            u = touched[i]
            stale[u] = False
            if criterion == MIN_FILL:
                score[u], others = _fill_edges(rows, u, second)
                spent += (others + 6) * words
            else:
                score[u] = _log2_table(rows, u, log2_card, second)
                spent += 4 * words
    return order, total, spent


@kernel
def _order_component(vertices, starts, neighbours, local, cardinalities, seed, restarts, effort):
    """(Best order found of one connected component, as indices of variables, effort spent)."""
    n = len(vertices)
    if n > _LARGEST_MATRIX:
        return minimum_degree_order(vertices, starts, neighbours, local, effort)
    words = (n + _WORD - 1) // _WORD
    rows = np.zeros((n, words), dtype=np.uint64)
    log2_card = np.empty(n, dtype=np.float64)
    for i in range(n):
        v = vertices[i]
        log2_card[i] = math.log2(cardinalities[v])
        for entry in range(starts[v], starts[v + 1]):
            j = local[neighbours[entry]]
            if j >= 0:
                rows[i, j // _WORD] |= np.uint64(1) << np.uint64(j % _WORD)
    best, total, spent = _greedy(rows, log2_card, MIN_FILL, np.uint64(0), np.inf, effort)
    for attempt in range(1, restarts + 1):
        # A further search costs about n * words * 64 steps: worth it only where tables cost more.
        if total < 8.0 * attempt * n * words * _WORD or spent > effort:
            break
        criterion = MIN_WEIGHT if attempt % 4 == 1 else MIN_FILL
        mixed = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(attempt)
        order, other, more = _greedy(rows, log2_card, criterion, mixed, total, effort - spent)
        spent += more
        if other < total:
            best, total = order, other
    return vertices[best], spent


@kernel
def elimination_order(cardinalities, starts, neighbours, seed, restarts, effort):
    """Elimination order of all variables.

    Args:
        cardinalities: int64 (n,), numbers of states.
        starts, neighbours: the interaction graph.
        seed: seed of the restarts; ties of the first search go to the earliest variable.
        restarts: how many further searches may be made; fewer are made where tables are so small
            that searching would cost more than it saves.
        effort: steps of about a nanosecond after which no further search begins, and the one under
            way goes on by the cheaper criterion.
    """
    n = len(cardinalities)
    order = np.empty(n, dtype=np.int64)
    degree = np.empty(n, dtype=np.int64)
    alive = np.ones(n, dtype=np.bool_)
    queued = 0
    for v in range(n):
        degree[v] = starts[v + 1] - starts[v]
        if degree[v] <= 1:
            order[queued] = v
            queued += 1
    done = 0
    while done < queued:
        v = order[done]
        done += 1
        alive[v] = False
        if degree[v] == 0:
            continue
        for entry in range(starts[v], starts[v + 1]):
            u = neighbours[entry]
            if alive[u]:
                degree[u] -= 1
                if degree[u] == 1:
                    order[queued] = u
                    queued += 1
                break
    local = np.full(n, -1, dtype=np.int64)
    vertices = np.empty(n - queued, dtype=np.int64)
    for root in range(n):
        if not alive[root] or local[root] >= 0:
            continue
        size = 1
        vertices[0] = root
        local[root] = 0
        head = 0
        while head < size:
            v = vertices[head]
            head += 1
            for entry in range(starts[v], starts[v + 1]):
                u = neighbours[entry]
                if alive[u] and local[u] < 0:
                    local[u] = size
                    vertices[size] = u
                    size += 1
        found, spent = _order_component(
            vertices[:size], starts, neighbours, local, cardinalities, seed, restarts, effort
        )
        effort -= spent
        for i in range(size):
            order[queued] = found[i]
            queued += 1
    return order
