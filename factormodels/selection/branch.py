"""The exact method for small components: branching over whole numbers, without a tolerance.

One number per subclaim holds its weight and the rule of ties, so that the best set is unique:
((n + 1) W - 1) 2^n + 2^(n - 1 - i) for subclaim i of n with the weight W, a whole number of
resolutions. The first part prefers weight, then fewer subclaims; the last bits spell the set, the
first subclaim highest. Sums of such numbers are exact, whatever the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from factormodels.selection.components import bits, connected_components

LARGEST_COMPONENT = 150
"""Larger components go to HiGHS at once: the recursion would be as deep as they are large."""


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
        """Return the graph with the values that weight and the rule of ties make."""
        n = len(weights)
        values = (((n + 1) * w - 1 << n) + (1 << n - 1 - i) for i, w in enumerate(weights))
        return cls(tuple(weights), tuple(values), tuple(budgets), tuple(neighbours))

    def without_budgets(self) -> Graph:
        """Return the graph without the faithfulness constraint."""
        return replace(self, budgets=(0,) * len(self.budgets))

    def weight(self, chosen: Sequence[int]) -> int:
        """Return the weight of a set, in resolutions."""
        return sum(self.weights[i] for i in chosen)

    def budget(self, chosen: Sequence[int]) -> int:
        """Return the left side of the faithfulness constraint for a set."""
        return sum(self.budgets[i] for i in chosen)


@dataclass
class BranchLimit:
    """How many branchings are left."""

    left: int
    memory: dict[int, list[Choice]] = field(default_factory=dict)


class _OutOfBranches(Exception):
    """The component needs more branchings than are allowed."""


def reduced(graph: Graph, mask: int) -> int:
    """Return `mask` without the subclaims that no best set holds.

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


def frontier(graph: Graph, mask: int, limit: BranchLimit) -> list[Choice] | None:
    """Return the sets within `mask` that no other beats in both balance and value.

    They are ordered by budget, and by value with it; without budgets there is one, the best set.
    None means that the branchings allowed did not suffice.
    """
    if mask.bit_count() > LARGEST_COMPONENT:
        return None
    try:
        return _frontier(graph, mask, limit)
    except _OutOfBranches:
        return None


def best_within_budget(
    frontiers: Sequence[Sequence[Choice]], budget: int, limit: int
) -> int | Literal["infeasible", "too many"]:
    """Return the best union (bit mask) of one set per component whose balance is within `budget`.

    Args:
        frontiers: of each component, as `frontier` returns them.
        budget: the most that the balances may sum to.
        limit: the largest number of combinations to keep at a time.
    """
    lowest = [choices[0].budget for choices in frontiers]
    rest = sum(lowest)
    combined: list[Choice] = [EMPTY]
    for choices, least in zip(frontiers, lowest, strict=True):
        rest -= least
        # What the other components can no longer make good is dropped at once.
        combined = [c for c in _combined(combined, choices) if c.budget + rest <= budget]
        if len(combined) > limit:
            return "too many"
    if not combined:
        return "infeasible" if frontiers else ("infeasible" if budget < 0 else 0)
    if combined[0].budget > budget:
        return "infeasible"
    return combined[-1].chosen


def _frontier(graph: Graph, mask: int, limit: BranchLimit) -> list[Choice]:
    known = limit.memory.get(mask)
    if known is not None:
        return known
    small = reduced(graph, mask)
    parts = connected_components(graph.neighbours, small)
    result = [EMPTY]
    for part in parts:
        result = _combined(result, _branched(graph, part, limit))
    limit.memory[mask] = result
    return result


def _branched(graph: Graph, part: int, limit: BranchLimit) -> list[Choice]:
    members = bits(part)
    if len(members) == 1:
        v = members[0]
        return _undominated([EMPTY, Choice(graph.budgets[v], graph.values[v], 1 << v)])
    if limit.left <= 0:
        raise _OutOfBranches
    limit.left -= 1
    # The vertex that excludes most makes both branches small.
    v = max(members, key=lambda u: ((graph.neighbours[u] & part).bit_count(), -u))
    without = _frontier(graph, part & ~(1 << v), limit)
    others = _frontier(graph, part & ~(graph.neighbours[v] | 1 << v), limit)
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
