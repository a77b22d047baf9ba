"""Sets of subclaims as bit masks: connected components and a first feasible set."""

from __future__ import annotations

from collections.abc import Sequence


def bits(mask: int) -> list[int]:
    """Positions of the bits that are set, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def connected_components(neighbours: Sequence[int], mask: int) -> list[int]:
    """Connected components of the graph within `mask`, by their first member.

    Args:
        neighbours: bit mask of the neighbours of each vertex.
        mask: the vertices that count.
    """
    parts = []
    while mask:
        part = frontier = mask & -mask
        while frontier:
            reached = 0
            for vertex in bits(frontier):
                reached |= neighbours[vertex]
            frontier = reached & mask & ~part
            part |= frontier
        parts.append(part)
        mask &= ~part
    return parts


def greedy_set(weights: Sequence[int], neighbours: Sequence[int], mask: int) -> int:
    """Good independent set (bit mask): greedy by weight per excluded vertex, then swaps.

    A vertex outside that outweighs its neighbours inside replaces them, first come, until none
    does; every step gains at least one unit of weight. The result depends on nothing but the input.
    """
    chosen = 0
    left = mask & sum(1 << v for v in bits(mask) if weights[v] > 0)
    while left:
        best = max(
            bits(left), key=lambda v: (weights[v] / (1 + (neighbours[v] & left).bit_count()), -v)
        )
        chosen |= 1 << best
        left &= ~(neighbours[best] | 1 << best)
    improved = True
    while improved:
        improved = False
        for v in bits(mask & ~chosen):
            rivals = neighbours[v] & chosen
            if weights[v] > sum(weights[u] for u in bits(rivals)):
                chosen = (chosen & ~rivals) | 1 << v
                improved = True
    return chosen


def clique_bound(weights: Sequence[int], neighbours: Sequence[int], mask: int) -> int:
    """Bound on the weight of an independent set: the heaviest of each of some cliques."""
    bound = 0
    heaviest = sorted((v for v in bits(mask) if weights[v] > 0), key=lambda v: (-weights[v], v))
    left = sum(1 << v for v in heaviest)
    for v in heaviest:
        if not left >> v & 1:
            continue
        bound += weights[v]
        common = left & neighbours[v]
        left &= ~(1 << v)
        for u in heaviest:
            if common >> u & 1:
                left &= ~(1 << u)
                common &= neighbours[u]
    return bound
