"""Minimum-degree order of one very large sparse component, without a matrix of bits (compiled).

Each vertex has a sorted list of its neighbors in one growing array; eliminating a vertex unites the
lists of its neighbors (George & Liu 1989, "The evolution of the minimum degree ordering algorithm",
here without quotient graphs). With N(u) the neighbors of u,

    v = argmin |N(v)|    N(u) <- union(N(u), N(v)) - {u, v} for every u in N(v)
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel


@kernel
def _merged(first, second, skip_a, skip_b, out):
    """Write the union of two sorted lists without two entries to `out`; return its length."""
    i = j = count = 0
    while i < len(first) or j < len(second):
        if j == len(second) or (i < len(first) and first[i] <= second[j]):
            item = first[i]
            if j < len(second) and second[j] == item:
                j += 1
            i += 1
        else:
            item = second[j]
            j += 1
        if item != skip_a and item != skip_b:
            out[count] = item
            count += 1
    return count


@kernel
def _longer(array, used, length):
    """Return a longer copy of an int32 array."""
    larger = np.empty(length, dtype=np.int32)
    for i in range(used):
        larger[i] = array[i]
    return larger


@kernel
def minimum_degree_order(vertices, starts, neighbors, local, effort):
    """Return `vertices` in minimum-degree order, and the effort spent.

    The effort counts the entries that are read rather than time, so that every run ends in the same
    way. Once it is spent, or the remaining vertices are a clique, these follow in order.

    Args:
        vertices: int64 (n,), the variables of the component.
        starts, neighbors: the interaction graph of all variables, int64 (n_variables + 1,) and
            int32: the neighbors of variable v are `neighbors[starts[v] : starts[v + 1]]`.
        local: int64 (n_variables,), position of each variable in `vertices`; -1 if it is not there.
        effort: maximum number of steps of about a nanosecond; an entry takes four.

    Returns:
        order: int64 (n,), the variables, the first one eliminated first.
        spent: float64, steps taken.
    """
    n = len(vertices)
    begin = np.empty(n, dtype=np.int64)
    length = np.empty(n, dtype=np.int64)
    capacity = np.empty(n, dtype=np.int64)
    used = 0
    for i in range(n):
        v = vertices[i]
        begin[i] = used
        for entry in range(starts[v], starts[v + 1]):
            if local[neighbors[entry]] >= 0:
                used += 1
        # Lists have no room to grow: a growing list moves to the end of the arena.
        capacity[i] = used - begin[i]
        length[i] = 0
    arena = np.empty(max(2 * used, 1), dtype=np.int32)
    # Each writes itself to its neighbors, so that every list is in ascending order.
    for i in range(n):
        v = vertices[i]
        for entry in range(starts[v], starts[v + 1]):
            j = local[neighbors[entry]]
            if j >= 0:
                arena[begin[j] + length[j]] = i
                length[j] += 1
    # Vertices of equal degree form a doubly linked list; -1 ends it.
    head = np.full(n + 1, -1, dtype=np.int64)
    after = np.full(n, -1, dtype=np.int64)
    before = np.full(n, -1, dtype=np.int64)
    for i in range(n - 1, -1, -1):
        after[i] = head[length[i]]
        if after[i] >= 0:
            before[after[i]] = i
        head[length[i]] = i
    scratch = np.empty(n, dtype=np.int32)
    order = np.empty(n, dtype=np.int64)
    listed = np.ones(n, dtype=np.bool_)
    lowest = 0
    spent = 4.0 * used
    for step in range(n):
        # The first vertex of the smallest degree.
        while head[lowest] < 0:
            lowest += 1
        if spent > effort or lowest == n - step - 1:
            for i in range(n):
                if listed[i]:
                    order[step] = vertices[i]
                    step += 1
            return order, spent
        v = head[lowest]
        head[lowest] = after[v]
        if after[v] >= 0:
            before[after[v]] = -1
        listed[v] = False
        order[step] = vertices[v]
        # Copied, since the arena may move while the lists of the neighbors grow.
        around = np.empty(length[v], dtype=np.int32)
        for i in range(length[v]):
            around[i] = arena[begin[v] + i]
        for u in around:
            adjacent = arena[begin[u] : begin[u] + length[u]]
            # The neighbors of u and of v, without both: eliminating v joins all its neighbors.
            size = _merged(adjacent, around, u, v, scratch)
            spent += 4.0 * (len(adjacent) + len(around))
            if size > capacity[u]:
                if used + 2 * size > len(arena):
                    arena = _longer(arena, used, 2 * len(arena) + 2 * size)
                begin[u] = used
                capacity[u] = 2 * size
                used += 2 * size
            for i in range(size):
                arena[begin[u] + i] = scratch[i]
            if size != length[u]:
                # From the list of its old degree to that of its new one.
                if before[u] >= 0:
                    after[before[u]] = after[u]
                else:
                    head[length[u]] = after[u]
                if after[u] >= 0:
                    before[after[u]] = before[u]
                before[u] = -1
                after[u] = head[size]
                if after[u] >= 0:
                    before[after[u]] = u
                head[size] = u
                length[u] = size
                lowest = min(lowest, size)
    return order, spent
