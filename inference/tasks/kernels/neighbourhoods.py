"""Variables to hold fixed, so that elimination of the others fits (compiled)."""

from __future__ import annotations

import math

import numpy as np

from inference.kernels.compiled import kernel
from inference.kernels.random_numbers import uniform


@kernel
def random_cutset(cardinalities, starts, neighbours, order, log2_most, lean, random):
    """Variables without which no bucket of an elimination order is larger than a limit.

    Buckets are made one by one; from one that is too large, the variables of the highest priority
    are taken out: a random number, plus its lean, plus the logarithm of how many neighbours it has
    or of how late it is eliminated.

    Args:
        starts, neighbours: the interaction graph.
        order: int64 (n,), an elimination order.
        log2_most: logarithm to base 2 of the most entries that a bucket may have.
        lean: float64 (n,), large for variables that had better be taken out.
        random: uint64 (1,), state of the random numbers.

    Returns:
        bool (n,), the variables taken out.
    """
    n = len(cardinalities)
    place_of = np.empty(n, dtype=np.int64)
    for place in range(n):
        place_of[order[place]] = place
    fixed = np.zeros(n, dtype=np.bool_)
    seen = np.full(n, -1, dtype=np.int64)
    bucket = np.empty(n, dtype=np.int64)
    # Messages that wait at a place are a chain of places that sent them; their scopes lie in
    # `scopes`, as many as the logarithm allows.
    widest = int(log2_most) + 1
    scopes = np.empty((n, widest), dtype=np.int64)
    sizes = np.zeros(n, dtype=np.int64)
    first = np.full(n, -1, dtype=np.int64)
    following = np.full(n, -1, dtype=np.int64)
    priorities = np.empty(n, dtype=np.float64)
    by_degree = uniform(random) < 0.7
    spread = math.exp(4.0 * uniform(random) - 2.0)
    for v in range(n):
        size = starts[v + 1] - starts[v] if by_degree else 10.0 * (place_of[v] + 1.0) / n
        noise = spread * math.log(1.0 - uniform(random))
        priorities[v] = math.log(max(size, 1.0)) - noise + lean[v]
    for place in range(n):
        v = order[place]
        size = 0
        total = 0.0
        if not fixed[v]:
            total = math.log2(cardinalities[v])
            for slot in range(starts[v], starts[v + 1]):
                u = neighbours[slot]
                if place_of[u] > place and not fixed[u] and seen[u] != place:
                    seen[u] = place
                    bucket[size] = u
                    size += 1
                    total += math.log2(cardinalities[u])
        sender = first[place]
        while sender >= 0:
            for i in range(sizes[sender]):
                u = scopes[sender, i]
                if place_of[u] > place and not fixed[u] and seen[u] != place:
                    seen[u] = place
                    bucket[size] = u
                    size += 1
                    total += math.log2(cardinalities[u])
            sender = following[sender]
        while size > 0 and total > log2_most:
            chosen = 0
            for i in range(1, size):
                if priorities[bucket[i]] > priorities[bucket[chosen]]:
                    chosen = i
            u = bucket[chosen]
            fixed[u] = True
            total -= math.log2(cardinalities[u])
            size -= 1
            bucket[chosen] = bucket[size]
        if size == 0:
            continue
        parent = n
        for i in range(size):
            scopes[place, i] = bucket[i]
            parent = min(parent, place_of[bucket[i]])
        sizes[place] = size
        following[place] = first[parent]
        first[parent] = place
    return fixed
