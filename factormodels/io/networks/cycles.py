"""Directed models: finding a cycle among the parents that the tables of a file declare."""

from __future__ import annotations

from collections.abc import Sequence


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int] | None:
    """Variables of one directed cycle, each a parent of the next; None if acyclic.

    Args:
        parents: for each variable, the indices of its parents.
    """
    children: list[list[int]] = [[] for _ in parents]
    missing = [len(of_one) for of_one in parents]
    for child, of_one in enumerate(parents):
        for parent in of_one:
            children[parent].append(child)
    settled = [variable for variable, count in enumerate(missing) if count == 0]
    for variable in settled:
        for child in children[variable]:
            missing[child] -= 1
            if missing[child] == 0:
                settled.append(child)
    if len(settled) == len(parents):
        return None
    # Every variable that is left has a parent that is left, so walking up must close a cycle.
    variable = next(v for v, count in enumerate(missing) if count)
    trail: list[int] = []
    seen: dict[int, int] = {}
    while variable not in seen:
        seen[variable] = len(trail)
        trail.append(variable)
        variable = next(parent for parent in parents[variable] if missing[parent])
    return trail[seen[variable] :][::-1]
