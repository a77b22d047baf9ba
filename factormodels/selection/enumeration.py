"""Best set of a small connected component of conflicts, by exact enumeration.

For a component of 5, 10, 20 or 40 subclaims, `solve` takes .03, .06, .34 or 9 ms of processor time
with it, and 11, 7, 13 or 44 ms with HiGHS alone, which solves three times or more for the rule of
ties; both choose the same sets. The first use of HiGHS in a process takes .24 s more, since it
imports scipy.optimize, which `solve` leaves out where all components are enumerated.

The times are medians over eight random components, whose conflicts are a random tree and a fifth of
the other pairs, with uniform weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

LARGEST = 64
"""Maximum number of subclaims of a component that is enumerated."""

_LARGEST_TABLE = 4000
"""Maximum number of subsets of the enumeration, which takes a tenth of a second."""

_FEW_CONFLICTS = 3
"""Maximum number of conflicts of a subclaim that is tried in place of the subclaims it excludes."""


def heaviest_set(
    weights: Sequence[float], excluded: Sequence[int], tolerance: float
) -> tuple[int, ...] | None:
    """Return the heaviest set of subclaims that do not exclude each other.

    Among sets that are lighter than the heaviest by at most the tolerance, the set with the fewest
    subclaims is chosen. Ties are resolved in favor of a set with the first subclaim, then the
    second, and so on.

    The recursion takes or leaves the subclaim with most conflicts, W(S) = max(W(S - v), w_v + W(S -
    v - N(v))), separately for every number of chosen subclaims, so that ties are resolved exactly
    among these sets.

    Args:
        weights: (n,) weights above 0.
        excluded: (n,) for each subclaim the set of subclaims that it excludes, as bits of an
            integer.
        tolerance: maximum difference of equally heavy sets.

    Returns:
        Indices of the chosen subclaims, ascending; None if there are too many subsets to enumerate.
    """
    tables: dict[int, list[float]] = {}

    def table(members: int) -> list[float]:
        """Return the maximum weight of each number of subclaims among the members, from 0 on."""
        known = tables.get(members)
        if known is not None:
            return known
        if len(tables) >= _LARGEST_TABLE:
            raise _TooManySubsets
        considered = _undominated(members, weights, excluded)
        most, busiest, light = 0, 0, []
        for subclaim in _indices(considered):
            conflicts = (excluded[subclaim] & considered).bit_count()
            if conflicts > most:
                most, busiest = conflicts, subclaim
            light.append(weights[subclaim])
        if most == 0:
            result = list(accumulate(sorted(light, reverse=True), initial=0.0))
        else:
            others = considered & ~(1 << busiest)
            weight = weights[busiest]
            taking = [0.0, *(weight + rest for rest in table(others & ~excluded[busiest]))]
            leaving = table(others)
            result = list(map(max, taking, leaving))
            result += taking[len(result) :] + leaving[len(result) :]
        tables[members] = result
        return result

    try:
        members = (1 << len(weights)) - 1
        by_count = table(members)
        least = max(by_count) - tolerance
        wanted = next(count for count, weight in enumerate(by_count) if weight >= least)
        chosen: list[int] = []
        for subclaim, weight in enumerate(weights):
            if len(chosen) == wanted:
                break
            if not members >> subclaim & 1:
                continue
            members &= ~(1 << subclaim)
            others = members & ~excluded[subclaim]
            rest = table(others)
            more = wanted - len(chosen) - 1
            if more < len(rest) and weight + rest[more] >= least:
                chosen.append(subclaim)
                least -= weight
                members = others
    except _TooManySubsets:
        return None
    return tuple(chosen)


def _undominated(members: int, weights: Sequence[float], excluded: Sequence[int]) -> int:
    """Drop subclaims for which another of at least their weight excludes no more.

    A set with a dropped subclaim is no lighter and no larger with the other in its place. Only
    subclaims with few conflicts are tried as the other, since more would cost more time than they
    save.
    """
    changed = True
    while changed:
        changed = False
        for subclaim in _indices(members):
            conflicts = excluded[subclaim] & members
            if not members >> subclaim & 1 or conflicts.bit_count() > _FEW_CONFLICTS:
                continue
            for other in _indices(conflicts):
                stays = excluded[other] | 1 << other
                if weights[subclaim] >= weights[other] and not conflicts & ~stays:
                    members &= ~(1 << other)
                    changed = True
    return members


def _indices(members: int) -> Iterator[int]:
    """Yield the indices of the set bits, ascending."""
    while members:
        bit = members & -members
        members ^= bit
        yield bit.bit_length() - 1


class _TooManySubsets(Exception):
    """The enumeration has exceeded its maximum number of subsets."""
