"""Tests of calibration that treat atoms as independent: Spiegelhalter, Hosmer and Lemeshow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from calibration.forecasts import (
    Estimate,
    Sample,
    ScoreStatus,
    dot,
    finite_or_infinite,
    pooled,
    undefined,
)
from calibration.labels import LabelPolicy
from calibration.scores.miscalibration.binning import equal_mass
from calibration.validation import whole_number


@dataclass(frozen=True)
class CalibrationTest:
    """A test of the hypothesis that forecasts are calibrated and atoms independent.

    Attributes:
        statistic: nan if `status` says that it is not defined.
        p_value: two-sided for a normal statistic, upper tail for one of chi squared.
        degrees_of_freedom: of chi squared; None for a normal statistic.
        status: ``ok``, ``infinite`` or ``no_variance``.
    """

    statistic: float
    p_value: float
    degrees_of_freedom: int | None
    status: ScoreStatus


def spiegelhalter(
    p: ArrayLike, y: Any, *, weights: ArrayLike | None = None, unlabelled: str = LabelPolicy.EXCLUDE
) -> CalibrationTest:
    """Spiegelhalter's Z, the standardised Brier score (Spiegelhalter 1986).

    Z = sum (y - p)(1 - 2p) / sqrt(sum (1 - 2p)^2 p (1 - p)), standard normal if the forecasts are
    calibrated and atoms independent; atoms of one response seldom are, so that |Z| is too large.
    Arguments and errors are those of `hosmer_lemeshow`.
    """
    scores = spiegelhalter_scores(pooled(p, y, weights, unlabelled))
    z = scores["spiegelhalter_z"]
    return CalibrationTest(z.value, scores["spiegelhalter_p"].value, None, z.status)


def hosmer_lemeshow(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    n_groups: int = 10,
    n_fitted: int = 0,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> CalibrationTest:
    """Hosmer-Lemeshow test over groups of about equal size (Hosmer and Lemeshow 1980).

    The statistic is the sum over groups of (true - sum p)^2 / (n q (1 - q)), q the mean of p in
    the group; its degrees of freedom are the number of groups less `n_fitted`. Atoms of equal p
    share a group, so that there may be fewer groups than asked for.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None.
        n_groups: number of groups.
        n_fitted: 0 for forecasts that these labels did not make, 2 for a logistic regression that
            was fitted to them.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, or a bad setting.
    """
    n_groups = whole_number(n_groups, "n_groups", 1)
    n_fitted = whole_number(n_fitted, "n_fitted", 0)
    return _hosmer_lemeshow(pooled(p, y, weights, unlabelled), n_groups, n_fitted)


def spiegelhalter_scores(sample: Sample) -> dict[str, Estimate]:
    """Spiegelhalter's Z of a sample and its two-sided p-value."""
    points = sample.forecasts

    def build() -> Any:
        slant = 1 - 2 * sample.p
        return slant, slant**2 * sample.p * (1 - sample.p)

    slant, variance = points.remember("spiegelhalter", build)
    spread = dot(sample.weight, variance)
    if spread <= 0:
        return dict.fromkeys(
            ("spiegelhalter_z", "spiegelhalter_p"), undefined(ScoreStatus.NO_VARIANCE)
        )
    z = dot(sample.true - sample.weighted_p, slant) / math.sqrt(spread)
    return {
        "spiegelhalter_z": Estimate(z),
        "spiegelhalter_p": Estimate(math.erfc(abs(z) / math.sqrt(2))),
    }


def hosmer_lemeshow_scores(sample: Sample, n_groups: int) -> dict[str, Estimate]:
    """Hosmer-Lemeshow statistic of a sample, of forecasts not fitted to it."""
    test = _hosmer_lemeshow(sample, n_groups, 0)
    return {
        "hosmer_lemeshow": Estimate(test.statistic, test.status),
        "hosmer_lemeshow_p": Estimate(
            test.p_value, ScoreStatus.OK if test.status is ScoreStatus.INFINITE else test.status
        ),
    }


def _hosmer_lemeshow(sample: Sample, n_groups: int, n_fitted: int) -> CalibrationTest:
    from scipy.special import chdtrc

    groups = equal_mass(sample, n_groups)
    variance = groups.weight * groups.mean_p * (1 - groups.mean_p)
    squared = (groups.true - groups.sum_p) ** 2
    certain = variance <= 0
    freedom = groups.weight.size - n_fitted
    # A group that is certain throughout refutes calibration with its first wrong atom.
    if (squared[certain] > 0).any():
        return CalibrationTest(math.inf, 0.0, max(freedom, 0), ScoreStatus.INFINITE)
    if certain.all() or freedom < 1:
        return CalibrationTest(math.nan, math.nan, max(freedom, 0), ScoreStatus.NO_VARIANCE)
    statistic = float((squared[~certain] / variance[~certain]).sum())
    estimate = finite_or_infinite(statistic)
    return CalibrationTest(statistic, float(chdtrc(freedom, statistic)), freedom, estimate.status)
