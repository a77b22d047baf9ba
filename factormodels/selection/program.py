"""Core's integer program for the subclaims that count, by enumeration or by HiGHS.

Processor time of `solve` with a share of .8, on a machine with other work. Random conflicts, of a
share of all pairs, have weights uniform on [1, 4] and every second subclaim faithful; false
entailments between paraphrases have weights uniform on [0, 5] and 80% faithful (`clusters` in
tests/factormodels/selection/test_program.py).

    subclaims   conflicts                     seconds
    120         215, random (.03)             .16       proved
    120         360, random (.05)             .39       proved
    120         746, random (.1)              5.7       proved
    300         446, random (.01)             .46       proved
    300         891, random (.02)             3.3       not proved: 282.1, bound 283.4
    300         4,570, random (.1)            3.1       not proved: 60.1, bound 175.2
    120         1,769, between paraphrases    <.01      proved, by enumeration
    300         5,521, between paraphrases    .08       proved
    500         10,000, between paraphrases   .65       proved

So the default limit of 3 s suffices for these paraphrases, and for 120 subclaims of 6 random
conflicts each or 300 of 3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.nouns import counted
from factormodels.selection.enumeration import LARGEST, heaviest_set
from factormodels.validation import validated_probability

EdgeRule = Literal["either", "both"]
Status = Literal["optimal", "limit"]

EDGE_RULES: tuple[EdgeRule, ...] = ("either", "both")

LARGEST_WEIGHT = 1e9
"""Maximum weight; with a larger one, a floating-point sum loses the other weights."""

TOLERANCE = 1e-6
"""HiGHS's tolerance of a row. Sets whose weights differ by less than this share of the maximum
weight count as equally heavy."""

_LARGEST_DENOMINATOR = 10**6
"""Maximum denominator of the fraction that replaces a share, so that the coefficients of its row
are integers and rounding has no effect."""

_SOLVER = "scipy.optimize"
"""Module with HiGHS."""

_BLOCK = 20
"""Number of subclaims whose order one solve determines: powers of 2 up to 2^20 exceed the
tolerances of HiGHS."""


@dataclass(frozen=True)
class Program:
    """The integer program of Core, equation 1.

    Maximize sum_i w_i x_i over x in {0, 1}^n, subject to x_i + x_j <= 1 for each conflict {i, j}
    and, if a share p is given, sum_i p_i x_i <= 0, where p_i = p - 1 for a faithful subclaim and p
    for others: at least the share p of the chosen subclaims is faithful.

    Attributes:
        weights: one weight per subclaim, in order; any sign.
        conflicts: pairs of indices that exclude each other.
        faithful: whether the sentence of each subclaim entails it; needed with `share`.
        share: p, the minimum share of faithful subclaims among the chosen; None: no such
            constraint.

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
                    f"a share of {self.share} faithful subclaims is required, but it is "
                    "unknown which are faithful; give faithful"
                )


@dataclass(frozen=True)
class SolverSettings:
    """Limits of the solver.

    Attributes:
        time_limit: seconds for the whole program. If it is exceeded, the best set found is
            returned, with status "limit" and the gap to the proved bound; that set may differ
            between machines.

    Raises:
        InputError: for a limit that is not above 0.
    """

    time_limit: float = 3.0

    def __post_init__(self) -> None:
        limit = self.time_limit
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
            raise InputError(f"time_limit is {limit!r}; give a number above 0")


@dataclass(frozen=True)
class Solution:
    """The chosen subclaims, and a bound on the weight of any set.

    Attributes:
        chosen: indices of the chosen subclaims, ascending.
        weight: the sum of their weights.
        bound: upper bound on the weight of any feasible set, up to `TOLERANCE`.
        status: "optimal" if `chosen` is the unique optimal set by the rule for ties, or "limit" if
            the time limit was reached before.
        components: sizes of the connected components of conflicts, descending.
        reason: reason of an empty selection, in a sentence; empty otherwise.
    """

    chosen: tuple[int, ...]
    weight: float
    bound: float
    status: Status
    components: tuple[int, ...]
    reason: str = ""

    @property
    def gap(self) -> float:
        """The bound minus the weight: 0 for an optimal set."""
        return max(0.0, self.bound - self.weight)


def conflicts_of(
    entails: NDArray[np.bool_], rule: EdgeRule = "either"
) -> tuple[tuple[int, int], ...]:
    """Return the pairs that exclude each other, i < j.

    Args:
        entails: (n, n), whether the text of the row entails the text of the column; the diagonal is
            ignored.
        rule: "either" excludes a pair if one of the two entails the other (Core, equation 1);
            "both" only if each entails the other, so that they have the same meaning.

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
    """Return the best set of subclaims.

    Among equally heavy sets (see `TOLERANCE`), the set with the fewest subclaims is chosen, so that
    a subclaim of weight 0 is taken only if needed. Ties are resolved in favor of a set with the
    first subclaim, then the second, and so on.

    The connected components of conflicts are solved one by one: small ones by enumeration (see
    `enumeration`), large ones by HiGHS. If their union has too few faithful subclaims, HiGHS solves
    the whole program at once, with the row of the share; the components have half of the time
    limit where a share is given. At the limit, the heavier of HiGHS's set and a greedy one is
    returned.

    Args:
        program: the program.
        settings: limits; the defaults if None.
    """
    limit, start = (settings or SolverSettings()).time_limit, time.monotonic()
    n = len(program.weights)
    neighbors: list[set[int]] = [set() for _ in range(n)]
    for i, j in program.conflicts:
        neighbors[i].add(j)
        neighbors[j].add(i)
    parts = list(_components(neighbors))
    balance = _balance(program)
    enumerated = [_enumerate_part(program.weights, neighbors, part) for part in parts]
    if None in enumerated:
        start += _seconds_to_load_solver()
    without_share = start + (limit if program.share is None else limit / 2)
    answers = [
        answer or _solve_part(program.weights, neighbors, part, None, without_share)
        for part, answer in zip(parts, enumerated, strict=True)
    ]
    union = [i for answer in answers for i in answer.chosen]
    if sum(balance[i] for i in union) > 0:
        start += _seconds_to_load_solver()
        with_share = _solve_part(program.weights, neighbors, range(n), balance, start + limit)
        if not with_share.settled:
            # The program without the share bounds that with it.
            bound = min(with_share.bound, math.fsum(answer.bound for answer in answers))
            sets = (with_share.chosen, _faithful_enough(program.weights, balance, union))
            heavier = max(sets, key=lambda chosen: math.fsum(program.weights[i] for i in chosen))
            with_share = _Answer(heavier, bound, settled=False)
        answers = [with_share]
    chosen = tuple(sorted(i for answer in answers for i in answer.chosen))
    weight = math.fsum(program.weights[i] for i in chosen)
    settled = all(answer.settled for answer in answers)
    return Solution(
        chosen=chosen,
        weight=weight,
        bound=weight if settled else max(weight, math.fsum(each.bound for each in answers)),
        status="optimal" if settled else "limit",
        components=tuple(sorted(map(len, parts), reverse=True)),
        reason="" if chosen else _why_empty(program, settled),
    )


@dataclass(frozen=True)
class _Answer:
    """Best set of some subclaims, whether it is optimal, and else a bound on the best weight."""

    chosen: Sequence[int]
    bound: float
    settled: bool = True


def _seconds_to_load_solver() -> float:
    """Import HiGHS and return the time taken, which must not count toward the time limit.

    It is seconds on a busy machine.
    """
    start = time.monotonic()
    import_module(_SOLVER)
    return time.monotonic() - start


def _enumerate_part(
    weights: Sequence[float], neighbors: Sequence[set[int]], part: Sequence[int]
) -> _Answer | None:
    """Solve the program of some subclaims without the share; None if it takes HiGHS."""
    part = [i for i in part if weights[i] > 0]
    if all(len(neighbors[i].intersection(part)) == len(part) - 1 for i in part):
        heaviest = max(part, key=lambda i: (weights[i], -i), default=None)
        chosen = [] if heaviest is None else [heaviest]
        return _Answer(chosen, math.fsum(weights[i] for i in chosen))
    if len(part) > LARGEST:
        return None
    position_of = {i: k for k, i in enumerate(part)}
    excluded = [sum(1 << position_of[j] for j in neighbors[i] if j in position_of) for i in part]
    of_part = [weights[i] for i in part]
    best_set = heaviest_set(of_part, excluded, TOLERANCE / 2 * max(of_part))
    if best_set is None:
        return None
    chosen = [part[k] for k in best_set]
    return _Answer(chosen, math.fsum(weights[i] for i in chosen))


def _solve_part(
    weights: Sequence[float],
    neighbors: Sequence[set[int]],
    part: Sequence[int],
    balance: Sequence[int] | None,
    deadline: float,
) -> _Answer:
    """Solve the program of some subclaims, with the row of the share if there is a balance."""
    if balance is None:
        # Without the share, subclaims of weight 0 or less are never taken.
        part = [i for i in part if weights[i] > 0]
    position_of = {i: k for k, i in enumerate(part)}
    w = np.array([weights[i] for i in part], dtype=np.float64)
    scale = float(np.abs(w).max(initial=0.0)) or 1.0
    # One row per clique: its variables sum to at most 1, which is tighter than its pairs.
    rows = [
        (np.isin(np.arange(len(part)), [position_of[i] for i in clique]).astype(float), 1.0)
        for clique in _clique_cover(neighbors, part)
    ]
    if balance is not None:
        rows.append((np.array([balance[i] for i in part], dtype=np.float64), 0.0))
    minimum = _minimum(-w / scale, rows, {}, deadline)
    bound, best = -minimum.bound * scale, minimum.taken
    if minimum.proved:
        # The heaviest sets differ only by rounding; keep the weight from now on.
        rows.append((-w / scale, TOLERANCE / 2 - float(w @ best) / scale))
        minimum = _minimum(np.ones(len(part)), rows, {}, deadline)
    if minimum.proved:
        best = minimum.taken
        rows.append((np.ones(len(part)), float(best.sum())))
    settled: dict[int, float] = {}
    for start in range(0, len(part), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(part)))
        earliest = np.zeros(len(part))
        earliest[block] = -(2.0 ** (block[-1] - block))
        if minimum.proved:
            minimum = _minimum(earliest, rows, settled, deadline)
        if minimum.proved:
            best = minimum.taken
            settled |= dict(zip(block.tolist(), best[block].tolist(), strict=True))
    chosen = [i for i, taken in zip(part, best, strict=True) if taken]
    if not minimum.proved and balance is None:
        sets = (chosen, _greedy(weights, neighbors, part))
        chosen = max(sets, key=lambda members: math.fsum(weights[i] for i in members))
    return _Answer(chosen, bound, settled=minimum.proved)


def _greedy(
    weights: Sequence[float], neighbors: Sequence[set[int]], part: Sequence[int]
) -> list[int]:
    """Return subclaims without conflicts, taken in the order of their weights."""
    taken: set[int] = set()
    for i in sorted(part, key=lambda i: (-weights[i], i)):
        if weights[i] > 0 and not neighbors[i] & taken:
            taken.add(i)
    return sorted(taken)


def _faithful_enough(
    weights: Sequence[float], balance: Sequence[int], chosen: Sequence[int]
) -> list[int]:
    """Return the subclaims of a set without the lightest unfaithful ones that break the share."""
    kept, excess = set(chosen), sum(balance[i] for i in chosen)
    for i in sorted(chosen, key=lambda i: (weights[i], -i)):
        if excess <= 0:
            break
        if balance[i] > 0:
            kept.remove(i)
            excess -= balance[i]
    return sorted(kept)


@dataclass(frozen=True)
class _Minimum:
    """Values of the binary variables, (n,), a lower bound, and whether it is proved."""

    taken: NDArray[np.float64]
    bound: float
    proved: bool


def _minimum(
    cost: NDArray[np.float64],
    rows: Sequence[tuple[NDArray[np.float64], float]],
    settled: Mapping[int, float],
    deadline: float,
) -> _Minimum:
    """Minimize a linear cost over binary variables with HiGHS.

    Args:
        cost: (n,).
        rows: coefficients, (n,), with the upper limit of their sum.
        settled: variables with fixed values.
        deadline: time limit, on the clock of `time.monotonic`.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    lower, upper = np.zeros(len(cost)), np.ones(len(cost))
    for variable, value in settled.items():
        lower[variable] = upper[variable] = value
    constraints = ()
    if rows:
        constraints = LinearConstraint(
            np.array([row for row, _ in rows]), ub=np.array([limit for _, limit in rows])
        )
    answer = milp(
        cost,
        integrality=np.ones(len(cost)),
        bounds=Bounds(lower, upper),
        constraints=constraints,
        options={"mip_rel_gap": 0.0, "time_limit": max(0.0, deadline - time.monotonic())},
    )
    # If no set was found in time, the empty set is feasible, and negative costs sum to a bound.
    taken = np.zeros(len(cost)) if answer.x is None else np.rint(answer.x)
    bound = answer.mip_dual_bound
    if bound is None or not math.isfinite(bound):
        bound = float(np.minimum(cost, 0.0).sum())
    return _Minimum(taken, bound, answer.status == 0)


def _components(neighbors: Sequence[set[int]]) -> Iterator[list[int]]:
    """Yield the connected components of the conflicts, each ascending, by first member."""
    left = dict.fromkeys(range(len(neighbors)))
    while left:
        reached, open_ = set(), [next(iter(left))]
        while open_:
            subclaim = open_.pop()
            if subclaim not in reached:
                reached.add(subclaim)
                open_.extend(neighbors[subclaim])
        for subclaim in reached:
            del left[subclaim]
        yield sorted(reached)


def _clique_cover(neighbors: Sequence[set[int]], part: Sequence[int]) -> Iterator[list[int]]:
    """Yield cliques that cover every conflict within a part, each grown greedily."""
    members = set(part)
    covered: set[tuple[int, int]] = set()
    for i in part:
        for j in sorted(neighbors[i] & members):
            if j < i or (i, j) in covered:
                continue
            clique, common = [i, j], neighbors[i] & neighbors[j] & members
            while common:
                clique.append(min(common))
                common &= neighbors[clique[-1]]
            covered.update(combinations(sorted(clique), 2))
            yield clique


def _balance(program: Program) -> list[int]:
    """Return the integer coefficients of the share's row: p - 1 if faithful, p otherwise."""
    if program.share is None or program.faithful is None:
        return [0] * len(program.weights)
    # Read 0.8 as four fifths rather than the nearest binary number, so that 4 of 5 reach it.
    share = Fraction(repr(float(program.share))).limit_denominator(_LARGEST_DENOMINATOR)
    p, whole = share.numerator, share.denominator
    return [p - whole if faithful else p for faithful in program.faithful]


def _why_empty(program: Program, settled: bool) -> str:
    if not program.weights:
        return "no subclaims were given"
    if max(program.weights) <= 0:
        return "no subclaim has a weight above 0"
    if not settled:
        return "no set was found within the time limit"
    return f"no set in which a share of {program.share} is faithful has a weight above 0"


def _index(value: object, n: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < n:
        raise InputError(
            f"{value!r} is not an index of one of {counted(n, 'subclaim')}; count from 0"
        )
    return int(value)


def _pairs(pairs: Sequence[tuple[int, int]], n: int) -> tuple[tuple[int, int], ...]:
    ordered = set()
    for pair in pairs:
        i, j = (_index(end, n) for end in pair)
        if i == j:
            raise InputError(f"subclaim {i} conflicts with itself; name two subclaims")
        ordered.add((min(i, j), max(i, j)))
    return tuple(sorted(ordered))
