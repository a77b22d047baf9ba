"""Elimination orders: leaves first, then greedy with seeded restarts, component by component.

Leaves (and isolated variables) are eliminated first in linear time: that is always optimal and
solves forests outright. The remaining variables are ordered greedily on rows of bits. Two criteria
alternate over the restarts: fewest fill edges, and smallest resulting table (Kjaerulff 1990,
"Triangulation of graphs: algorithms giving small total state space"). With N(v) the neighbors that
v has when it is eliminated, E(v) the edges among them and n_u the number of states of u,

    fill(v) = |N(v)| (|N(v)| - 1) / 2 - |E(v)|    table(v) = n_v prod_(u in N(v)) n_u
    total   = sum_v table(v)

Ties are broken at random, and the order of the smallest total wins in each component (Kask,
Gelfand, Otten & Dechter 2011, "Pushing the power of stochastic greedy ordering schemes for
inference in graphical models"). The search ends after an effort counted in steps of about a
nanosecond, not by the clock, so that the order is the same on every run; memory limits have no
effect.
"""

from __future__ import annotations

import math

import numpy as np

from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.grouping import append_unmarked
from inference.kernels.random_numbers import next_word
from inference.kernels.views import population_count

MIN_FILL = 0
MIN_WEIGHT = 1

_WORD = 64

_LARGEST_MATRIX = 16_384
"""Components of more variables are ordered without a bit matrix, which would pass 32 MB here."""


@inlined_kernel
def _members(rows, vertex, out):
    """Write the neighbors of `vertex` to `out`, ascending; return how many there are.

    Args:
        rows: uint64 (n_vertices, n_words), bit j of row i says whether i and j are joined.
        out: int64, long enough for all vertices.
    """
    count = 0
    for w in range(rows.shape[1]):
        word = rows[vertex, w]
        while word != np.uint64(0):
            # The lowest bit that is set, and the number of bits below it.
            low = word & (~word + np.uint64(1))
            out[count] = w * _WORD + population_count(low - np.uint64(1))
            count += 1
            word ^= low
    return count


@inlined_kernel
def _joined(rows, vertex, neighbors, count):
    """Return twice the number of pairs that are joined among the neighbors of a vertex.

    Args:
        rows: uint64 (n_vertices, n_words), bit j of row i says whether i and j are joined.
        neighbors: int64, the first `count` are the neighbors of `vertex`.
    """
    joined = 0
    for j in range(count):
        for w in range(rows.shape[1]):
            joined += population_count(rows[neighbors[j], w] & rows[vertex, w])
    return joined


@kernel
def _greedy(given_rows, log2_card, criterion, seed, bound, effort):
    """Eliminate every vertex greedily; return (order, total table size, effort).

    Stops early, with an infinite total, when the total passes `bound`. Once the effort is spent,
    the cheaper criterion goes on.

    Args:
        given_rows: uint64 (n_vertices, n_words), bit j of row i says whether i and j are joined.
        log2_card: float64 (n_vertices,), log2 of the numbers of states.
        effort: steps of about a nanosecond that may still be taken.
    """
    n = len(log2_card)
    rows = given_rows.copy()
    words = rows.shape[1]
    members = np.empty(n, dtype=np.int64)
    second = np.empty(n, dtype=np.int64)
    order = np.empty(n, dtype=np.int64)
    alive = np.ones(n, dtype=np.bool_)
    stale = np.ones(n, dtype=np.bool_)
    # Vertices with a stale score, at first all. Scores are computed in one place, since inlined
    # kernels are compiled at every call.
    touched = np.arange(n)
    count = n
    score = np.empty(n, dtype=np.float64)
    random = np.full(1, seed, dtype=np.uint64)
    total = 0.0
    spent = 2.0 * n * words
    for step in range(n):
        for i in range(count):
            u = touched[i]
            stale[u] = False
            others = _members(rows, u, second)
            if criterion == MIN_FILL:
                # The number of pairs of its neighbors that are not joined.
                joined = _joined(rows, u, second, others)
                score[u] = (others * (others - 1) - joined) // 2
                spent += (others + (6 if step > 0 else 0)) * words
            else:
                # Log2 of the size of the table that eliminating it makes.
                score[u] = log2_card[u]
                for j in range(others):
                    score[u] += log2_card[second[j]]
                spent += (4 if step > 0 else 0) * words
        count = 0
        # The smallest score; of equal ones the first or, with a seed, each with the same
        # probability.
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
        degree = _members(rows, best, members)
        size = log2_card[best]
        for i in range(degree):
            size += log2_card[members[i]]
        # The table of the variable and its neighbors is what eliminating it costs.
        total += math.exp2(size)
        order[step] = best
        alive[best] = False
        spent += 5.0 * n + words
        if total > bound:
            total = np.inf
            break
        if degree == n - step - 1:
            # Only its neighbors remain, and they form a clique: the widest variables go first.
            for i in range(degree):
                slot = step + 1 + i
                while slot > step + 1 and log2_card[order[slot - 1]] < log2_card[members[i]]:
                    order[slot] = order[slot - 1]
                    slot -= 1
                order[slot] = members[i]
            for i in range(step, n - 1):
                size -= log2_card[order[i]]
                total += math.exp2(size)
            if total > bound:
                total = np.inf
            break
        # The effort is spent: tables are scored from now on, which takes less time than fill.
        if spent > effort and criterion == MIN_FILL:
            criterion = MIN_WEIGHT
            for v in range(n):
                if alive[v]:
                    stale[v] = True
                    touched[count] = v
                    count += 1
        # Elimination joins all neighbors; without fill they are joined already.
        adds_edges = criterion == MIN_WEIGHT or score[best] > 0
        for i in range(degree):
            u = members[i]
            rows[u, best // _WORD] &= ~(np.uint64(1) << np.uint64(best % _WORD))
            if adds_edges:
                for w in range(words):
                    rows[u, w] |= rows[best, w]
                rows[u, u // _WORD] &= ~(np.uint64(1) << np.uint64(u % _WORD))
                rows[u, best // _WORD] &= ~(np.uint64(1) << np.uint64(best % _WORD))
        count = append_unmarked(members[:degree], stale, touched, count)
        if criterion == MIN_FILL and adds_edges:
            # A fill edge between two neighbors of x changes the fill of x as well.
            for i in range(degree):
                others = _members(rows, members[i], second)
                count = append_unmarked(second[:others], stale, touched, count)
    return order, total, spent


@kernel
def _order_component(vertices, starts, neighbors, local, cardinalities, seed, restarts, effort):
    """Return the best order found, as indices of `vertices`, and the effort spent.

    Args:
        vertices: int64, the variables of a component.
        local: int64 (n_variables,), the place of each variable among them.
        starts, neighbors, cardinalities, seed, restarts, effort: as of `order_components`.
    """
    n = len(vertices)
    words = (n + _WORD - 1) // _WORD
    rows = np.zeros((n, words), dtype=np.uint64)
    log2_card = np.empty(n, dtype=np.float64)
    for i in range(n):
        v = vertices[i]
        log2_card[i] = math.log2(cardinalities[v])
        for entry in range(starts[v], starts[v + 1]):
            j = local[neighbors[entry]]
            if j >= 0:
                rows[i, j // _WORD] |= np.uint64(1) << np.uint64(j % _WORD)
    best = np.arange(n)
    total = np.inf
    spent = 0.0
    for attempt in range(restarts + 1):
        # A further search costs about n * words * 64 steps: worth it only where tables cost more.
        if attempt > 0 and (total < 8.0 * attempt * n * words * _WORD or spent > effort):
            break
        criterion = MIN_WEIGHT if attempt % 4 == 1 else MIN_FILL
        # The first search breaks no ties at random, so that it does not depend on the seed.
        mixed = np.uint64(0)
        if attempt > 0:
            mixed = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(attempt)
        order, other, more = _greedy(rows, log2_card, criterion, mixed, total, effort - spent)
        spent += more
        if attempt == 0 or other < total:
            best, total = order, other
    return best, spent


@kernel
def order_components(cardinalities, starts, neighbors, seed, restarts, effort):
    """Return an elimination order, except for components too large for a matrix of bits.

    Args:
        cardinalities, starts, neighbors, seed, restarts, effort: as `elimination_order` of
            `inference.exact.orders` takes them.

    Returns:
        order: int64 (n,), in which the variables of such a component are adjacent.
        large: int64 (n_large, 2), start and end of each such component.
        effort: the remaining effort.
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
    # A leaf is eliminated, which may make a leaf of its only neighbor.
    while done < queued:
        v = order[done]
        done += 1
        alive[v] = False
        if degree[v] == 0:
            continue
        for entry in range(starts[v], starts[v + 1]):
            u = neighbors[entry]
            if alive[u]:
                degree[u] -= 1
                if degree[u] == 1:
                    order[queued] = u
                    queued += 1
                break
    # The rest, component by component, breadth first; `local` numbers the variables of each.
    local = np.full(n, -1, dtype=np.int64)
    vertices = np.empty(n - queued, dtype=np.int64)
    large = np.empty((n // _LARGEST_MATRIX, 2), dtype=np.int64)
    n_large = 0
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
                u = neighbors[entry]
                if alive[u] and local[u] < 0:
                    local[u] = size
                    vertices[size] = u
                    size += 1
        if size > _LARGEST_MATRIX:
            for i in range(size):
                order[queued + i] = vertices[i]
            large[n_large, 0], large[n_large, 1] = queued, queued + size
            n_large += 1
        else:
            local_order, spent = _order_component(
                vertices[:size], starts, neighbors, local, cardinalities, seed, restarts, effort
            )
            effort -= spent
            for i in range(size):
                order[queued + i] = vertices[local_order[i]]
        queued += size
    return order, large[:n_large], effort
