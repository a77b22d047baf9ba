"""The exact method: branching over whole numbers, without a tolerance.

One number per subclaim holds its weight and the rule of ties, so that the best set is unique:
((n + 1) W - 1) 2^n + 2^(n - 1 - i) for subclaim i of n with the weight W, a whole number of
resolutions. The first part prefers weight, then fewer subclaims; the last bits spell the set, the
first subclaim highest. Sums of such numbers are exact, whatever the machine.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from factormodels.selection.components import bits, connected_components

MOST_REMEMBERED = 1_000_000
"""Solved parts that are kept at most, so that a long search ends by its clock, not its memory."""

LARGEST_UNTIMED = 150
"""Larger components are held to the time limit at once: each of their branchings takes long."""

GIVEN_UP = 12
"""Chosen subclaims that one step of `improved` gives up."""

WINDOW_BRANCHINGS = 200
"""Branchings of one step of `improved`."""


class Choice(NamedTuple):
    """A set of subclaims (bit mask) with its balance and its value."""

    budget: int
    value: int
    chosen: int


EMPTY = Choice(0, 0, 0)


@dataclass(frozen=True)
class Graph:
    """The program in whole numbers.

    Attributes:
        weights: weight of each subclaim, in resolutions.
        values: the numbers that weight and ties make.
        budgets: what each adds to the left side of the faithfulness constraint.
        neighbours: bit mask of what each excludes.
    """

    weights: tuple[int, ...]
    values: tuple[int, ...]
    budgets: tuple[int, ...]
    neighbours: tuple[int, ...]

    @classmethod
    def of(cls, weights: Sequence[int], budgets: Sequence[int], neighbours: Sequence[int]) -> Graph:
        """Graph with the values that weight and the rule of ties make."""
        n = len(weights)
        values = (((n + 1) * w - 1 << n) + (1 << n - 1 - i) for i, w in enumerate(weights))
        return cls(tuple(weights), tuple(values), tuple(budgets), tuple(neighbours))

    def without_budgets(self) -> Graph:
        """Graph without the faithfulness constraint."""
        return replace(self, budgets=(0,) * len(self.budgets))

    def weight(self, chosen: Sequence[int]) -> int:
        """Weight of a set, in resolutions."""
        return sum(self.weights[i] for i in chosen)

    def budget(self, chosen: Sequence[int]) -> int:
        """Left side of the faithfulness constraint for a set."""
        return sum(self.budgets[i] for i in chosen)


@dataclass
class SearchEffort:
    """What a search may still spend.

    Attributes:
        branchings: how many branchings are allowed whatever the time.
        deadline: until when more may follow, on the clock of `time.monotonic`.
        memory: the sets found so far, for each part that was searched.
    """

    branchings: int
    deadline: float
    memory: dict[int, list[Choice]] = field(default_factory=dict)

    def allows(self, spent: int = 0) -> bool:
        """Whether a search that has spent so much may go on."""
        return spent < self.branchings or time.monotonic() < self.deadline


class _CutShort(Exception):
    """The search needs more than it may spend."""


_Search: TypeAlias = Generator[Any, Any, list[Choice]]
"""A search that yields the searches whose answers it needs."""


def reduced(graph: Graph, mask: int) -> int:
    """`mask` without the subclaims that no best set holds.

    Dropped are those of negative value that do not help the faithful share, and those dominated:
    v, if some u that excludes v excludes nothing that v does not, has more value, and weighs on
    the faithful share no more. A set with v is then beaten by the same set with u in its place.
    """
    for v in bits(mask):
        if graph.values[v] < 0 and graph.budgets[v] >= 0:
            mask &= ~(1 << v)
    # Whatever v excludes may become dominated once v is gone: only those are looked at again.
    waiting = mask
    while waiting:
        low = waiting & -waiting
        waiting ^= low
        v = low.bit_length() - 1
        around = graph.neighbours[v] & mask
        closed = around | low
        for u in bits(around):
            if (
                graph.values[u] > graph.values[v]
                and graph.budgets[u] <= graph.budgets[v]
                and not (graph.neighbours[u] & mask) & ~closed
            ):
                mask &= ~low
                reach = 0
                for w in bits(around):
                    reach |= graph.neighbours[w]
                waiting |= reach & mask
                break
    return mask


def frontier(graph: Graph, mask: int, effort: SearchEffort) -> list[Choice] | None:
    """Sets within `mask` that no other beats in both balance and value.

    They are ordered by budget, and by value with it; without budgets there is one, the best set.
    None means that the effort allowed did not suffice.
    """
    if mask.bit_count() > LARGEST_UNTIMED:
        effort = replace(effort, branchings=0)
    # The searches stand on a stack of our own: they nest as deep as a component is large.
    stack = [_frontier(graph, mask, effort)]
    answer: list[Choice] | None = None
    while stack:
        try:
            asked = stack[-1].send(answer)
        except StopIteration as finished:
            answer = finished.value
            stack.pop()
        except _CutShort:
            return None
        else:
            stack.append(asked)
            answer = None
    return answer


def improved(graph: Graph, chosen: int, mask: int, deadline: float) -> int:
    """Independent set (bit mask) that is as good as `chosen` or better.

    Around each vertex in turn some chosen ones are given up, and what only they excluded is solved
    exactly, until no vertex gains by it or the time is up.
    """
    order = bits(mask)
    gaining = True
    while gaining:
        gaining = False
        for v in order:
            if time.monotonic() > deadline:
                return chosen
            given_up = _nearest(graph, v, chosen, mask)
            kept = chosen & ~given_up
            window = sum(1 << u for u in order if not (graph.neighbours[u] | 1 << u) & kept)
            found = frontier(graph, window, SearchEffort(WINDOW_BRANCHINGS, deadline=0.0))
            if found and found[-1].value > sum(graph.values[i] for i in bits(given_up)):
                chosen, gaining = kept | found[-1].chosen, True
    return chosen


def _nearest(graph: Graph, v: int, chosen: int, mask: int) -> int:
    """Chosen vertices (bit mask) nearest to v, at least `GIVEN_UP` where there are."""
    near = 1 << v
    while (near & chosen).bit_count() < GIVEN_UP:
        wider = near
        for u in bits(near):
            wider |= graph.neighbours[u] & mask
        if wider == near:
            break
        near = wider
    first: int = sum(1 << u for u in bits(near & chosen)[:GIVEN_UP])
    return first


def best_within_budget(frontiers: Sequence[Sequence[Choice]], effort: SearchEffort) -> int | None:
    """Best union (bit mask) of one set per component whose balance is at most 0.

    None means that the effort allowed did not suffice.

    Args:
        frontiers: of each component, as `frontier` returns them.
        effort: how many combinations may be kept at a time, and until when more.
    """
    lowest = [choices[0].budget for choices in frontiers]
    rest = sum(lowest)
    combined: list[Choice] = [EMPTY]
    for choices, least in zip(frontiers, lowest, strict=True):
        rest -= least
        # What the other components can no longer make good is dropped at once.
        combined = [c for c in _combined(combined, choices) if c.budget + rest <= 0]
        if not effort.allows(len(combined) - 1):
            return None
    return combined[-1].chosen


def _frontier(graph: Graph, mask: int, effort: SearchEffort) -> _Search:
    known = effort.memory.get(mask)
    if known is not None:
        return known
    result = [EMPTY]
    for part in connected_components(graph.neighbours, reduced(graph, mask)):
        result = _combined(result, (yield _branched(graph, part, effort)))
    if len(effort.memory) < MOST_REMEMBERED:
        effort.memory[mask] = result
    return result


def _branched(graph: Graph, part: int, effort: SearchEffort) -> _Search:
    members = bits(part)
    if len(members) == 1:
        v = members[0]
        return _undominated([EMPTY, Choice(graph.budgets[v], graph.values[v], 1 << v)])
    if not effort.allows():
        raise _CutShort
    effort.branchings -= 1
    # The vertex that excludes most makes both branches small.
    v = max(members, key=lambda u: ((graph.neighbours[u] & part).bit_count(), -u))
    without = yield _frontier(graph, part & ~(1 << v), effort)
    others = yield _frontier(graph, part & ~(graph.neighbours[v] | 1 << v), effort)
    budget, value = graph.budgets[v], graph.values[v]
    taken = [Choice(c.budget + budget, c.value + value, c.chosen | 1 << v) for c in others]
    return _undominated([*without, *taken])


def _combined(first: Sequence[Choice], second: Sequence[Choice]) -> list[Choice]:
    return _undominated(
        [
            Choice(a.budget + b.budget, a.value + b.value, a.chosen | b.chosen)
            for a in first
            for b in second
        ]
    )


def _undominated(choices: list[Choice]) -> list[Choice]:
    choices.sort(key=lambda choice: (choice.budget, -choice.value))
    kept: list[Choice] = []
    for choice in choices:
        if not kept or choice.value > kept[-1].value:
            kept.append(choice)
    return kept
