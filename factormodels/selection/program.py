"""Core's integer program: which subclaims count, with the optimality of the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.nouns import counted
from factormodels.selection.branch import (
    Graph,
    SearchEffort,
    best_within_budget,
    frontier,
    improved,
    reduced,
)
from factormodels.selection.components import (
    bits,
    clique_bound,
    connected_components,
    greedy_set,
)
from factormodels.validation import validated_probability

EdgeRule = Literal["either", "both"]
Status = Literal["optimal", "limit"]
Method = Literal["branch", "greedy", "none"]

EDGE_RULES: tuple[EdgeRule, ...] = ("either", "both")

RESOLUTION = 1e-9
"""Weights count in multiples of this, so that sums are exact and equal on every platform."""

LARGEST_WEIGHT = 1e9
"""A weight beyond this leaves no digits for others beside it in a sum of floats."""

BRANCHING_SHARE = 0.8
"""Share of the time in which a component is to be solved; in the rest a greedy set is improved."""


@dataclass(frozen=True)
class Program:
    """The integer program of Core, equation 1.

    maximise sum_i w_i x_i over x in {0, 1}^n, subject to x_i + x_j <= 1 for each conflict {i, j}
    and, where a share p is given, sum_i p_i x_i <= 0 with p_i = p - 1 for a faithful subclaim and
    p for another: at least the share p of the chosen ones is faithful.

    Attributes:
        weights: one weight per subclaim, in its order; any sign.
        conflicts: pairs of indices of which at most one may be chosen.
        faithful: whether the sentence of each subclaim entails it; needed with `share`.
        share: p, the least share of faithful subclaims among the chosen; None asks for none.

    Raises:
        InputError: for weights that are not finite numbers, indices out of range, or a share
            outside [0, 1] or without `faithful`.

    Source: Jiang et al., "Core: Robust Factual Precision with Informative Sub-Claim
    Identification", section 3.
    """

    weights: tuple[float, ...]
    conflicts: tuple[tuple[int, int], ...] = ()
    faithful: tuple[bool, ...] | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        weights = tuple(float(w) for w in self.weights)
        for at, weight in enumerate(weights):
            if not math.isfinite(weight) or abs(weight) > LARGEST_WEIGHT:
                raise InputError(
                    f"subclaim {at}: its weight is {weight!r}; give a finite number of at most "
                    f"{LARGEST_WEIGHT:g}"
                )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "conflicts", _pairs(self.conflicts, len(weights)))
        if self.faithful is not None:
            faithful = tuple(bool(value) for value in self.faithful)
            if len(faithful) != len(weights):
                raise InputError(
                    f"faithful has {len(faithful)} values for {len(weights)} subclaims; give one "
                    "for each"
                )
            object.__setattr__(self, "faithful", faithful)
        if self.share is not None:
            validated_probability(self.share, "the share of faithful subclaims")
            if self.faithful is None:
                raise InputError(
                    f"a share of {self.share} faithful subclaims is asked for, and nothing says "
                    "which are faithful; give faithful"
                )


@dataclass(frozen=True)
class SolverSettings:
    """How long the solver may try.

    Attributes:
        time_limit: seconds for the whole program. A program that it cuts short gives the best set
            found, with status "limit" and the gap to the bound proved; that set may differ from
            one machine to the next.
        branch_limit: branchings that a program may take whatever the time. The limit is a count,
            so that what it suffices for is solved everywhere; only what needs more, or has large
            components, is held to the time limit.

    Raises:
        InputError: for a limit that is not above 0.
    """

    time_limit: float = 3.0
    branch_limit: int = 5000

    def __post_init__(self) -> None:
        for name in ("time_limit", "branch_limit"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InputError(f"{name} is {value!r}; give a number above 0")


@dataclass(frozen=True)
class Solution:
    """The chosen subclaims and how sure it is that no better set exists.

    Attributes:
        chosen: indices of the chosen subclaims, ascending.
        weight: the sum of their weights.
        bound: no feasible set weighs more than this (up to n times half of `RESOLUTION`).
        status: "optimal", where `chosen` is the one optimal set that the rule of ties names, or
            "limit" where the time limit cut the search short before that was settled.
        components: sizes of the connected components of conflicts, descending.
        method: "branch" if the exact method alone answered, "greedy" if it was cut short and a
            greedy set stands in for a part, "none" if nothing was left to decide.
        reason: why nothing was chosen, in a sentence; empty if something was.
    """

    chosen: tuple[int, ...]
    weight: float
    bound: float
    status: Status
    components: tuple[int, ...]
    method: Method
    reason: str = ""

    @property
    def gap(self) -> float:
        """The bound less the weight: 0 where the set is optimal."""
        return max(0.0, self.bound - self.weight)


def conflicts_of(
    entails: NDArray[np.bool_], rule: EdgeRule = "either"
) -> tuple[tuple[int, int], ...]:
    """Pairs of which at most one may be chosen, i < j.

    Args:
        entails: (n, n), whether the text of the row entails that of the column; the diagonal is
            not read.
        rule: "either" excludes a pair where one of the two entails the other (Core, equation 1);
            "both" only where each entails the other, that is where they say the same.

    Raises:
        InputError: for an unknown rule or a matrix that is not square.
    """
    matrix = np.asarray(entails, dtype=bool)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"entails has the shape {matrix.shape}; give a square matrix")
    checked_rule(rule)
    joined = matrix & matrix.T if rule == "both" else matrix | matrix.T
    rows, columns = np.nonzero(np.triu(joined, 1))
    return tuple(zip(rows.tolist(), columns.tolist(), strict=True))


def checked_rule(rule: str) -> None:
    """Check the name of a rule of conflict.

    Raises:
        InputError: if it is unknown.
    """
    if rule not in EDGE_RULES:
        raise InputError(f"the edge rule {rule!r} is unknown; use one of {', '.join(EDGE_RULES)}")


def solve(program: Program, settings: SolverSettings | None = None) -> Solution:
    """Best set of subclaims.

    Ties are broken by a rule that names one set: of the sets of greatest weight that with the
    fewest subclaims (one of weight 0 is not taken unless it is needed), and of these the one that
    takes the first subclaim if any of them does, then the second, and so on. The rule is part of
    the arithmetic of the exact method.

    Conflicts are taken apart into connected components, dominated subclaims are dropped, and each
    component is solved by branching; one that needs more than the limits allow is given a greedy
    set. The faithfulness constraint couples components: the branching then returns, per
    component, the best weight for each balance of faithful and other subclaims.

    Args:
        program: the program.
        settings: limits; the defaults if None.
    """
    limits = settings or SolverSettings()
    begin = time.monotonic()
    graph = _graph(program)
    sizes = _component_sizes(graph)
    constrained = program.share is not None
    half = limits.time_limit / 2 if constrained else limits.time_limit
    answer = _solve(graph.without_budgets(), limits, begin + half)
    if graph.budget(answer.chosen) > 0:
        relaxed, first = answer, _repaired(graph, answer.chosen)
        answer = _solve(graph, limits, begin + limits.time_limit, first)
        # The program without the constraint bounds the one with it.
        answer = replace(answer, bound=min(answer.bound, relaxed.bound))
    chosen = answer.chosen
    weight = math.fsum(program.weights[i] for i in chosen)
    missed = (answer.bound - graph.weight(answer.chosen)) * RESOLUTION
    return Solution(
        chosen=chosen,
        weight=weight,
        bound=weight + max(0.0, missed),
        status="optimal" if answer.proved else "limit",
        components=sizes,
        method=answer.method,
        reason="" if chosen else _why_empty(program),
    )


@dataclass(frozen=True)
class _Answer:
    """What was found; `bound` in multiples of the resolution."""

    chosen: tuple[int, ...]
    bound: float
    proved: bool
    method: Method


def _solve(
    graph: Graph, limits: SolverSettings, deadline: float, first: tuple[int, ...] | None = None
) -> _Answer:
    """Solve without the faithfulness constraint, or with it where there is a `first` answer.

    That one is the answer where no better one is found that meets the constraint.
    """
    left = reduced(graph, (1 << len(graph.weights)) - 1)
    # Small components first: what they do not need of their share of the time is for the others.
    parts = sorted(connected_components(graph.neighbours, left), key=int.bit_count)
    effort = SearchEffort(limits.branch_limit, deadline)
    frontiers = []
    chosen, bound, proved = 0, 0, True
    for place, part in enumerate(parts):
        now = time.monotonic()
        share = (deadline - now) / (len(parts) - place)
        effort.deadline = now + BRANCHING_SHARE * share
        found = frontier(graph, part, effort)
        if found is not None:
            frontiers.append(found)
            best = found[-1].chosen
            bound += graph.weight(bits(best))
        elif first is not None:
            return _Answer(first, math.inf, False, "greedy")
        else:
            proved = False
            best = greedy_set(graph.weights, graph.neighbours, part)
            best = improved(graph, best, part, now + share)
            bound += clique_bound(graph.weights, graph.neighbours, part)
        chosen |= best
    if first is not None:
        within = best_within_budget(frontiers, SearchEffort(limits.branch_limit, deadline))
        if within is None:
            return _Answer(first, math.inf, False, "greedy")
        chosen, bound = within, graph.weight(bits(within))
    method: Method = "greedy" if not proved else "branch" if left else "none"
    return _Answer(tuple(bits(chosen)), bound, proved, method)


def _repaired(graph: Graph, chosen: tuple[int, ...]) -> tuple[int, ...]:
    """Set without its lightest unfaithful subclaims, until it meets the constraint."""
    kept = list(chosen)
    for i in sorted(chosen, key=lambda i: (graph.weights[i], -i)):
        if graph.budget(kept) <= 0:
            break
        if graph.budgets[i] > 0:
            kept.remove(i)
    return tuple(kept)


def _graph(program: Program) -> Graph:
    n = len(program.weights)
    neighbours = [0] * n
    for i, j in program.conflicts:
        neighbours[i] |= 1 << j
        neighbours[j] |= 1 << i
    # 0.8 means four fifths, not the binary number next to it: 4 of 5 reach it.
    share = Fraction(repr(float(program.share))) if program.share is not None else Fraction(0)
    faithful = program.faithful or (True,) * n
    budgets = [share.numerator - (share.denominator if good else 0) for good in faithful]
    if program.share is None:
        budgets = [0] * n
    weights = [round(weight / RESOLUTION) for weight in program.weights]
    return Graph.of(weights, budgets, neighbours)


def _component_sizes(graph: Graph) -> tuple[int, ...]:
    parts = connected_components(graph.neighbours, (1 << len(graph.weights)) - 1)
    return tuple(sorted((part.bit_count() for part in parts), reverse=True))


def _why_empty(program: Program) -> str:
    if not program.weights:
        return "no subclaims were given"
    if max(program.weights) <= RESOLUTION / 2:
        return "no subclaim has a weight above 0"
    return f"no set in which a share of {program.share} is faithful has a weight above 0"


def _index(value: object, n: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < n:
        raise InputError(
            f"{value!r} is not an index of one of {counted(n, 'subclaim')}; count from 0"
        )
    return int(value)


def _pairs(pairs: Sequence[tuple[int, int]], n: int) -> tuple[tuple[int, int], ...]:
    found = set()
    for pair in pairs:
        i, j = (_index(end, n) for end in pair)
        if i == j:
            raise InputError(f"subclaim {i} conflicts with itself; name two subclaims")
        found.add((min(i, j), max(i, j)))
    return tuple(sorted(found))
