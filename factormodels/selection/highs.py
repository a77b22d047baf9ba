"""What branching cannot finish goes to HiGHS: one row per clique of conflicts, then the ties."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.selection.branch import Graph
from factormodels.selection.components import bits

TIE_BLOCK = 16
"""Subclaims whose ties one program breaks: powers of two far above HiGHS's tolerances."""

TIE_TOLERANCE = 1e-7
"""How much of the largest weight a set may lack in HiGHS's arithmetic; the exact sum decides."""

_SHORTEST = 0.01
_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2


@dataclass(frozen=True)
class HighsResult:
    """What HiGHS found: the set, a bound in resolutions, and what was proved."""

    chosen: tuple[int, ...]
    bound: float
    proved: bool
    ties_broken: bool


def solve_with_highs(
    graph: Graph,
    members: Sequence[int],
    budget: int | None,
    fallback: tuple[int, ...],
    deadline: float,
) -> HighsResult | None:
    """Return the best set among `members`; None if none is within the budget.

    Args:
        graph: the program in whole numbers.
        members: the subclaims to decide.
        budget: the most that their balances may sum to; None asks for nothing.
        fallback: a feasible set, for the case that time runs out before HiGHS has a better one.
        deadline: when to stop, on the clock of `time.monotonic`.
    """
    rows = _Rows(graph, members, budget)
    weights = np.array([graph.weights[i] for i in members], dtype=np.float64)
    scale = float(np.abs(weights).max(initial=0.0)) or 1.0
    answer = rows.solve(weights / scale, deadline)
    if answer.status == _INFEASIBLE:
        return None
    best = fallback
    if answer.x is not None:
        found = rows.chosen(answer.x)
        if rows.allows(found) and (
            graph.weight(found) >= graph.weight(best) or not rows.allows(best)
        ):
            best = found
    proved = answer.status == _OPTIMAL and best is not fallback
    if proved:
        ties_broken, best = _broken_ties(rows, best, weights / scale, deadline)
        return HighsResult(best, float(graph.weight(best)), True, ties_broken)
    bound = getattr(answer, "mip_dual_bound", None)
    limit = -float(bound) * scale if bound is not None else float(weights[weights > 0].sum())
    limit = min(limit, float(_clique_bound(rows)))
    return HighsResult(best, max(limit, float(graph.weight(best))), False, False)


class _Rows:
    """The constraints of a program over some of its subclaims."""

    def __init__(self, graph: Graph, members: Sequence[int], budget: int | None) -> None:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_matrix

        self.graph = graph
        self.members = tuple(members)
        self.budget = budget
        place = {member: column for column, member in enumerate(self.members)}
        self.cliques = clique_cover(graph, self.members)
        columns = [place[i] for clique in self.cliques for i in clique]
        starts = np.cumsum([0, *(len(clique) for clique in self.cliques)])
        matrix = csr_matrix(
            (np.ones(len(columns)), columns, starts), shape=(len(self.cliques), len(self.members))
        )
        self.constraints: list[Any] = []
        if self.cliques:
            self.constraints.append(LinearConstraint(matrix, -np.inf, 1.0))
        if budget is not None:
            balances = np.array([graph.budgets[i] for i in self.members], dtype=np.float64)
            size = float(np.abs(balances).max(initial=0.0)) or 1.0
            # Balances are whole: half a unit of room keeps rounding from refusing equality.
            row = LinearConstraint(balances[None, :] / size, -np.inf, (budget + 0.5) / size)
            self.constraints.append(row)

    def solve(
        self,
        gain: NDArray[np.float64],
        deadline: float,
        lower: NDArray[np.float64] | None = None,
        upper: NDArray[np.float64] | None = None,
        extra: Sequence[Any] = (),
    ) -> Any:
        """Maximise `gain` over the sets that the constraints allow."""
        from scipy.optimize import Bounds, milp

        n = len(self.members)
        bounds = Bounds(
            np.zeros(n) if lower is None else lower, np.ones(n) if upper is None else upper
        )
        left = max(_SHORTEST, deadline - time.monotonic())
        return milp(
            -gain,
            integrality=np.ones(n),
            bounds=bounds,
            constraints=[*self.constraints, *extra],
            options={"time_limit": left, "mip_rel_gap": 0.0},
        )

    def chosen(self, x: NDArray[np.float64]) -> tuple[int, ...]:
        """Return the subclaims that a solution takes."""
        return tuple(self.members[column] for column in np.flatnonzero(x > 0.5).tolist())

    def allows(self, chosen: Sequence[int]) -> bool:
        """Whether a set keeps every constraint, in whole numbers."""
        mask = sum(1 << i for i in chosen)
        if any(self.graph.neighbours[i] & mask for i in chosen):
            return False
        return self.budget is None or self.graph.budget(chosen) <= self.budget


def _broken_ties(
    rows: _Rows, best: tuple[int, ...], gain: NDArray[np.float64], deadline: float
) -> tuple[bool, tuple[int, ...]]:
    """Return whether the tie rule was carried through, and the set that it names."""
    from scipy.optimize import LinearConstraint

    graph, n = rows.graph, len(rows.members)
    taken = np.isin(rows.members, best)
    weight = graph.weight(best)
    as_good = LinearConstraint(gain[None, :], float(gain[taken].sum()) - TIE_TOLERANCE, np.inf)
    lower, upper = np.zeros(n), np.ones(n)
    extra: list[Any] = [as_good]
    goals: list[tuple[NDArray[np.float64], slice[int, int, None] | None]] = [(-np.ones(n), None)]
    for start in range(0, n, TIE_BLOCK):
        stop = min(start + TIE_BLOCK, n)
        goal = np.zeros(n)
        goal[start:stop] = 2.0 ** np.arange(stop - start - 1, -1, -1)
        goals.append((goal, slice(start, stop)))
    for goal, block in goals:
        if time.monotonic() > deadline:
            return False, best
        answer = rows.solve(goal, deadline, lower, upper, extra)
        if answer.status != _OPTIMAL or answer.x is None:
            return False, best
        found = rows.chosen(answer.x)
        if not rows.allows(found) or graph.weight(found) < weight:
            return False, best
        best = found
        taken = np.isin(rows.members, best)
        if block is None:
            extra.append(LinearConstraint(np.ones((1, n)), -np.inf, float(taken.sum()) + 0.5))
        else:
            lower[block] = upper[block] = taken[block]
    return True, best


def clique_cover(graph: Graph, members: Sequence[int]) -> list[list[int]]:
    """Return cliques of conflicts that hold every conflict among `members`, greedily large.

    A row per clique says more than a row per pair: among k subclaims that exclude each other the
    pairs alone would let a relaxed program take half of each.
    """
    inside = sum(1 << i for i in members)
    uncovered = {i: graph.neighbours[i] & inside for i in members}
    cliques = []
    for i in members:
        while uncovered[i]:
            j = (uncovered[i] & -uncovered[i]).bit_length() - 1
            clique = [i, j]
            common = graph.neighbours[i] & graph.neighbours[j] & inside
            while common:
                # Prefer what is still uncovered towards i, then the first.
                fresh = common & uncovered[i]
                k = ((fresh or common) & -(fresh or common)).bit_length() - 1
                clique.append(k)
                common &= graph.neighbours[k]
            mask = sum(1 << k for k in clique)
            for k in clique:
                uncovered[k] &= ~mask
            cliques.append(sorted(clique))
    return cliques


def _clique_bound(rows: _Rows) -> int:
    """Return a bound on the weight: each subclaim once, one per clique of a partition."""
    left = sum(1 << i for i in rows.members if rows.graph.weights[i] > 0)
    bound = 0
    for clique in sorted(rows.cliques, key=len, reverse=True):
        inside = [i for i in clique if left >> i & 1]
        if inside:
            bound += max(rows.graph.weights[i] for i in inside)
            left &= ~sum(1 << i for i in inside)
    return bound + sum(rows.graph.weights[i] for i in bits(left))
