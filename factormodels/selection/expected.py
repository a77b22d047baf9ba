"""Core under uncertainty: redundancy is a probability, and the objective an expectation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from factormodels.arrays import Floats
from factormodels.errors import InputError
from factormodels.selection.entailment import Entailments
from factormodels.selection.program import EdgeRule, checked_rule

BRANCHES = 20_000
"""Default maximum number of branchings; a count, so that results are the same on every machine."""


@dataclass(frozen=True)
class ExpectedSelection:
    """A set of subclaims chosen for its expected weight.

    Attributes:
        chosen: indices of the chosen subclaims, ascending.
        survival: for each chosen subclaim, the probability that no heavier chosen one makes it
            redundant.
        expected_weight: the sum of weight times survival.
        bound: upper bound on the expected weight of any set.
        status: "optimal", or "limit" if the maximum number of branchings was reached.
    """

    chosen: tuple[int, ...]
    survival: tuple[float, ...]
    expected_weight: float
    bound: float
    status: Literal["optimal", "limit"]

    @property
    def gap(self) -> float:
        """The bound minus the expected weight."""
        return max(0.0, self.bound - self.expected_weight)

    @property
    def expected_count(self) -> float:
        """The expected number of chosen subclaims that count."""
        return float(sum(self.survival))

    def precision(self, supported: Sequence[bool]) -> float:
        """Share of the expected count that is supported; 0 if nothing counts.

        Args:
            supported: verdict on each of all n subclaims.
        """
        count = self.expected_count
        verdicts = np.asarray(supported, dtype=bool)[list(self.chosen)]
        return float(np.asarray(self.survival)[verdicts].sum() / count) if count else 0.0


def redundancy(entailments: Entailments, rule: EdgeRule = "either") -> Floats:
    """Return the probability that two subclaims exclude each other, (n, n), 0 on the diagonal.

    The two directions are assumed independent: 1 - (1 - e_ij)(1 - e_ji) for the rule "either", e_ij
    e_ji for "both". A missing judgment counts as probability 0, as in the plain program.

    Raises:
        InputError: for an unknown rule.
    """
    checked_rule(rule)
    forward = np.nan_to_num(entailments.probabilities, nan=0.0)
    backward = forward.T
    both = forward * backward
    joint: Floats = both if rule == "both" else forward + backward - both
    np.fill_diagonal(joint, 0.0)
    return joint


def select_expected(
    weights: ArrayLike,
    redundant: ArrayLike,
    *,
    start: Sequence[int] = (),
    branches: int = BRANCHES,
) -> ExpectedSelection:
    """Return the set with the maximum expected weight after removal of redundant subclaims.

    From a set S, all subclaims are removed that a heavier member makes redundant (of equals the
    earlier counts as heavier); pairs are redundant independently, with the given probabilities. The
    remaining subclaims do not exclude each other, and their expected weight is

        V(S) = sum over i in S of w_i prod over heavier j in S of (1 - r_ij).

    V(S) is at most the expected value of Core's program on S. If every r is 0 or 1, its maximum is
    the optimum of Core's program, attained by an independent set. A nearly redundant subclaim is
    still taken, and contributes little.

    Args:
        weights: (n,); subclaims of weight 0 or less are never taken.
        redundant: (n, n) symmetric probabilities of exclusion, as `redundancy` returns them.
        start: a set to improve on, such as the set chosen by the plain program: the answer is no
            worse, even if the maximum number of branchings is reached.
        branches: maximum number of branchings.

    Raises:
        InputError: for arrays of wrong shapes, probabilities outside [0, 1], or no branchings.
    """
    w, r = _checked(weights, redundant)
    if isinstance(branches, bool) or not isinstance(branches, int) or branches < 1:
        raise InputError(f"branches is {branches!r}; give a whole number from 1")
    order = [int(i) for i in np.argsort(-w, kind="stable") if w[i] > 0]
    search = _Search(w[order], r[np.ix_(order, order)], branches)
    search.improve(frozenset())
    search.improve(frozenset(k for k, i in enumerate(order) if i in set(start)))
    search.run()
    if search.cut:
        search.improve(frozenset(search.best))
    places = sorted(search.best, key=lambda k: order[k])
    survival = _survival(search.r, sorted(search.best))
    by_place = dict(zip(sorted(search.best), survival, strict=True))
    return ExpectedSelection(
        chosen=tuple(order[k] for k in places),
        survival=tuple(by_place[k] for k in places),
        expected_weight=search.value,
        bound=max(search.value, search.open_bound),
        status="limit" if search.cut else "optimal",
    )


def expected_weight(chosen: Sequence[int], weights: ArrayLike, redundant: ArrayLike) -> float:
    """Return V(S) of `select_expected` for a given set, such as one chosen by the plain program.

    Raises:
        InputError: as in `select_expected`.
    """
    w, r = _checked(weights, redundant)
    order = sorted(chosen, key=lambda i: (-w[i], i))
    return float(w[order] @ np.array(_survival(r, order)))


class _Search:
    """Depth-first search over subclaims by weight, with a bound that ignores later exclusions."""

    def __init__(self, weights: Floats, redundant: Floats, branches: int) -> None:
        self.w, self.r, self.left = weights, redundant, branches
        self.best: tuple[int, ...] = ()
        self.value = 0.0
        self.open_bound = 0.0
        self.cut = False

    def worth(self, chosen: frozenset[int]) -> float:
        """Return V of a set of indices."""
        order = sorted(chosen)
        return float(self.w[order] @ np.array(_survival(self.r, order)))

    def improve(self, chosen: frozenset[int]) -> None:
        """Add or remove single members, the first improvement each time, until none is left."""
        value = self.worth(chosen)
        k = unchanged = 0
        while unchanged < len(self.w):
            other = chosen ^ {k}
            better = self.worth(other)
            # The margin prevents cycles due to rounding.
            if better > value * (1 + 1e-12):
                chosen, value, unchanged = other, better, 0
            else:
                unchanged += 1
            k = (k + 1) % len(self.w)
        if value > self.value:
            self.best, self.value = tuple(sorted(chosen)), value

    def run(self) -> None:
        """Branch until no branch is open or the maximum number is reached."""
        # (first undecided, chosen, value, weight left to each subclaim)
        stack: list[tuple[int, tuple[int, ...], float, Floats]] = [(0, (), 0.0, self.w.copy())]
        while stack:
            k, chosen, value, left = stack.pop()
            bound = value + float(left[k:].sum())
            if bound <= self.value * (1 + 1e-12):
                continue
            if self.left <= 0 and chosen:
                self.cut = True
                self.open_bound = max(self.open_bound, bound)
                continue
            while k < len(self.w):
                gain = float(left[k])
                loss = float(left[k + 1 :] @ self.r[k, k + 1 :])
                if gain > 0:
                    if gain < loss:
                        # Leaving it out may be better; keep that branch open.
                        self.left -= 1
                        stack.append((k + 1, chosen, value, left))
                    chosen = (*chosen, k)
                    value += gain
                    left = left * (1.0 - self.r[k])
                k += 1
            if value > self.value:
                self.best, self.value = chosen, value


def _survival(r: Floats, order: Sequence[int]) -> list[float]:
    """Return the probability that each subclaim, from heavy to light, is not made redundant."""
    return [float(np.prod(1.0 - r[i, list(order[:k])])) for k, i in enumerate(order)]


def _checked(weights: ArrayLike, redundant: ArrayLike) -> tuple[Floats, Floats]:
    w = np.asarray(weights, dtype=np.float64)
    r = np.asarray(redundant, dtype=np.float64)
    if w.ndim != 1 or r.shape != (len(w), len(w)) or not np.array_equal(r, r.T):
        raise InputError(
            f"weights has the shape {w.shape} and redundant {r.shape}; give n weights and a "
            "symmetric matrix of n by n probabilities"
        )
    if not np.isfinite(w).all() or not ((r >= 0) & (r <= 1)).all() or np.diag(r).any():
        raise InputError(
            "weights must be finite, and redundant must have probabilities and a zero diagonal"
        )
    return w, r
