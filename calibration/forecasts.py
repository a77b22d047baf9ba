"""Forecasts and their samples, from which every score of `calibration.scores` is computed.

A score of probabilities against labels depends only on the weight of each distinct probability and
on the part of that weight on true atoms. Forecasts are therefore ordered once, and a bootstrap
replicate changes only these two arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimate import ScoreStatus
from calibration.grouping import Grouping
from calibration.labels import LabelPolicy, labeled_atoms
from calibration.validation import (
    Floats,
    Integers,
)
from factormodels.errors import InputError

T = TypeVar("T")

LOGIT_CLIP = 1e-6
"""Distance from 0 and 1 to which p is clipped for scores that need its logit."""


TIE_TOLERANCE = 1e-9
"""Relative tolerance of ties: probabilities are tied if both p and 1 - p differ by less. Rounding
and convergence tolerances can move posteriors that are equal by symmetry by this much."""


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Labeled probabilities in ascending order; tied probabilities share a point.

    Attributes:
        p: float64 (m,), the distinct probabilities, ascending; the smallest of each tie.
        first: int64 (m,), position of the first atom of each point among the ordered atoms.
        y: float64 (n,), labels in that order: 1 true, 0 false.
        weights: float64 (n,), weight of each atom, in that order.
        response: int64 (n,), number of each atom's response, in that order.
        n_responses: number of responses.
        clustered: whether responses were given; if not, every atom is a separate response.
        n_unlabeled: number of atoms that had no label.
    """

    p: Floats
    first: Integers
    y: Floats
    weights: Floats
    response: Integers
    n_responses: int
    clustered: bool
    n_unlabeled: int = 0
    _memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def sample(self, multiplicity: Floats | None = None) -> Sample:
        """Sample in which each response occurs `multiplicity` times.

        Args:
            multiplicity: float64 (n_responses,); None for the original data.
        """
        weights = self.weights
        if multiplicity is not None:
            weights = weights * multiplicity[self.response]
        true = weights * self.y
        if self.first.size < self.y.size:
            weights = np.add.reduceat(weights, self.first)
            true = np.add.reduceat(true, self.first)
        return Sample(self, weights, true)

    @property
    def sizes(self) -> Integers:
        """Number of atoms of each point, int64 (m,)."""
        return np.diff(np.append(self.first, self.y.size))

    @property
    def p_of_atoms(self) -> Floats:
        """Probability of each atom's point, float64 (n,)."""
        return np.repeat(self.p, self.sizes)

    @property
    def grouping(self) -> Grouping:
        """Grouping of the atoms by the number of their response."""
        sizes = np.bincount(self.response, minlength=self.n_responses)
        return Grouping(range(self.n_responses), self.response, sizes)

    def response_sums(self, values: Floats) -> Floats:
        """Sums of values of the atoms, (n,), over each response, float64 (n_responses,)."""
        totals = np.bincount(self.response, weights=values, minlength=self.n_responses)
        return totals.astype(np.float64, copy=False)

    def remember(self, key: Hashable, build: Callable[[], T]) -> T:
        """Return the result of `build`, which depends on `p` alone, cached for all samples."""
        if key not in self._memory:
            self._memory[key] = build()
        return self._memory[key]  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Sample:
    """Forecasts with the weights of one sample: the data, or a bootstrap replicate of it.

    Attributes:
        forecasts: the forecasts, which all samples share.
        weight: float64 (m,), weight of each distinct probability; 0 if not drawn.
        true: float64 (m,), the part of each weight on true atoms.
    """

    forecasts: Forecasts
    weight: Floats
    true: Floats

    @property
    def p(self) -> Floats:
        """The distinct probabilities, float64 (m,), ascending."""
        return self.forecasts.p

    @cached_property
    def false(self) -> Floats:
        """Weight on false atoms, float64 (m,)."""
        return self.weight - self.true

    @cached_property
    def total(self) -> float:
        """Total weight of the sample."""
        return float(self.weight.sum())

    @cached_property
    def total_true(self) -> float:
        """Weight on true atoms."""
        return float(self.true.sum())

    @cached_property
    def total_false(self) -> float:
        """Weight on false atoms."""
        return float(self.false.sum())

    @property
    def base_rate(self) -> float:
        """Share of true atoms."""
        return self.total_true / self.total

    @property
    def has_one_class(self) -> bool:
        """True if no atom is true, or no atom is false."""
        return self.total_true <= 0 or self.total_false <= 0

    @cached_property
    def weighted_p(self) -> Floats:
        """Weight times probability of each point, float64 (m,)."""
        return self.weight * self.p

    @cached_property
    def weight_below(self) -> Floats:
        """Weight of the points below each point, float64 (m,)."""
        return _sums_before(self.weight)

    @cached_property
    def true_below(self) -> Floats:
        """Weight on true atoms of the points below each point, float64 (m,)."""
        return _sums_before(self.true)

    @cached_property
    def present(self) -> Integers:
        """Positions of the points whose weight is above 0, int64."""
        return np.flatnonzero(self.weight)

    @property
    def is_constant(self) -> bool:
        """True if all atoms of the sample have the same probability."""
        return self.present.size < 2


def dot(first: Floats, second: Floats) -> float:
    """Dot product computed in the calling thread.

    BLAS would split a product of a million numbers among threads. Where each replicate already has
    a thread, these wait for each other longer than the product takes.
    """
    return float(np.einsum("i,i->", first, second))


def _sums_before(values: Floats) -> Floats:
    sums = np.empty_like(values)
    sums[0] = 0.0
    np.cumsum(values[:-1], out=sums[1:])
    return sums


def forecasts(
    p: ArrayLike,
    y: Any,
    weights: ArrayLike | None = None,
    responses: Any = None,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> Forecasts:
    """Labeled probabilities, checked and ordered.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), True or False, None where unlabeled.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        responses: response ids (n,), or None if every atom is a separate response.
        unlabeled: treatment of atoms without a label, as in `calibration.labels.apply_policy`.

    Raises:
        InputError: for bad arrays, no labeled atom, or different lengths.
    """
    atoms = labeled_atoms(p, y, unlabeled)
    counts = atoms.weights(weights)
    order = np.argsort(atoms.p, kind="stable")
    response, n_responses = order, atoms.p.size
    if responses is not None:
        grouping = atoms.grouping(responses)
        response = grouping.index[order]
        n_responses = len(grouping.responses)
    ordered = atoms.p[order]
    first = np.flatnonzero(_begins_a_point(ordered))
    return Forecasts(
        p=ordered[first],
        first=first,
        y=atoms.y[order],
        weights=counts[order],
        response=response,
        n_responses=n_responses,
        clustered=responses is not None,
        n_unlabeled=atoms.n_unlabeled,
    )


def with_ties(p: Floats) -> Floats:
    """Probabilities (n,), each replaced by the smallest of its tie."""
    order = np.argsort(p, kind="stable")
    begins = _begins_a_point(p[order])
    result = np.empty_like(p)
    result[order] = p[order][begins][np.cumsum(begins) - 1]
    return result


def _begins_a_point(ordered: Floats) -> NDArray[np.bool_]:
    # The tolerance is relative to p and to 1 - p, so that 0 and 1 are tied with no other number.
    within = np.minimum(ordered[:-1], 1 - ordered[1:])
    return np.append(True, np.diff(ordered) > TIE_TOLERANCE * within)[: ordered.size]


def pooled(
    p: ArrayLike,
    y: Any,
    weights: ArrayLike | None = None,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> Sample:
    """Sample of labeled probabilities, for scores without intervals.

    Raises:
        InputError: as `forecasts`.
    """
    return forecasts(p, y, weights, unlabeled=unlabeled).sample()


def clipped_logits(points: Forecasts, clip: float = LOGIT_CLIP) -> Floats:
    """Logit of each distinct probability moved into [clip, 1 - clip], (m,)."""

    return points.remember(("logits", clip), lambda: logits_of(points.p, clip))


def logits_of(p: Floats, clip: float) -> Floats:
    """Logit of probabilities moved into [clip, 1 - clip], elementwise."""
    inside = np.clip(p, clip, 1 - clip)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def was_clipped(sample: Sample, clip: float = LOGIT_CLIP) -> ScoreStatus:
    """``clipped`` if a p of the sample is outside [clip, 1 - clip], else ``ok``."""
    low, high = sample.p[sample.present[0]], sample.p[sample.present[-1]]
    return ScoreStatus.CLIPPED if low < clip or high > 1 - clip else ScoreStatus.OK


class Extremes(StrEnum):
    """Treatment of probabilities outside [clip, 1 - clip] in scores that need their logit."""

    CLIP = "clip"
    """Move them to the nearer end; the slope then depends on `clip`."""
    LEAVE_OUT = "leave-out"
    """Leave their atoms out, as ``val.prob`` of the R package rms does."""


def clipped_weight(sample: Sample, clip: float = LOGIT_CLIP) -> float:
    """Weight of the atoms whose p is outside [clip, 1 - clip]."""
    return float(sample.weight[(sample.p < clip) | (sample.p > 1 - clip)].sum())


def without_extremes(sample: Sample, clip: float = LOGIT_CLIP) -> Sample:
    """Sample without the atoms whose p is outside [clip, 1 - clip]."""
    inside = (sample.p >= clip) & (sample.p <= 1 - clip)
    return Sample(sample.forecasts, sample.weight * inside, sample.true * inside)


def logit_clip(clip: Any) -> float:
    """Check the bound on probabilities before their logit is taken.

    Raises:
        InputError: if it is not a number in (0, 1/2).
    """
    if isinstance(clip, bool) or not isinstance(clip, (int, float)) or not 0 < clip < 0.5:
        raise InputError(f"clip is {clip!r}; give a number between 0 and 0.5, such as 1e-6")
    return float(clip)
