"""Methods of intervals, which use an estimate with its replicates or its standard error.

Every function works column by column: for k estimates with replicates (b, k), it returns two arrays
(k,), nan without an interval.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.intervals.replicates import Ends
from calibration.validation import Floats, Integers


class Scale(StrEnum):
    """Range of an estimand, which determines the scale on which its interval is symmetric."""

    PROBABILITY = "probability"
    """Shares of counted items: symmetric in the logit; Wilson's if redraws do not vary."""
    UNIT = "unit"
    """Other numbers in [0, 1]: symmetric in the logit."""
    POSITIVE = "positive"
    """Nonnegative numbers: symmetric in the logarithm."""
    NUMBER = "number"
    """All other numbers: symmetric around the estimate."""


class IntervalMethod(StrEnum):
    """Method for an interval over responses."""

    DELTA = "delta"
    """The linearized standard error and Student's t (`delta_interval`)."""
    BOOTSTRAP = "bootstrap"
    """Percentiles of replicates, expanded for few responses (`expanded_percentile_interval`)."""
    JACKKNIFE = "jackknife"
    """The jackknife standard error over responses, and Student's t."""
    OBUCHOWSKI = "obuchowski"
    """Obuchowski's standard error of an AUROC of clustered atoms, and Student's t in the logit."""
    BASE_RATE = "base_rate"
    """The values of a function of the base rate over the interval of the base rate."""
    INVERSION = "inversion"
    """Populations that bootstrap tests do not reject (`calibration.intervals.inversion`)."""
    REDRAWN = "redrawn"
    """For differences of scores with such intervals: the standard deviation of recentered redraws
    of both scores, and Student's t."""


def percentile_interval(replicates: Floats, level: float) -> Ends:
    """Central quantiles of the replicates that are finite (Efron 1979).

    Args:
        replicates: (b, k).
        level: nominal coverage.
    """
    return _quantiles(replicates, (1 - level) / 2, (1 + level) / 2)


def expanded_percentile_interval(replicates: Floats, touching: Integers, level: float) -> Ends:
    """Percentile intervals, expanded for few responses (Hesterberg 2015, American Statistician 69).

    Args:
        replicates: (b, k).
        touching: (k,), number of responses that contribute to each estimate; below 2 there is no
            interval.
        level: nominal coverage.
    """
    tails = expanded_tail(touching, level)
    return _quantiles(replicates, tails, 1 - tails)


def expanded_tail(touching: Any, level: float) -> Floats:
    """Share of replicates beyond either end of `expanded_percentile_interval`, elementwise."""
    from scipy.special import ndtr

    # For a mean of R numbers, percentiles lack the factors of Student's t and of R/(R - 1).
    count = np.asarray(touching, dtype=np.float64)
    factor = np.sqrt(count / np.maximum(count - 1, 1))
    return np.asarray(ndtr(-student_quantile(level, count - 1) * factor))


def delta_interval(
    estimate: Floats, error: Floats, effective: Floats, level: float, scale: Scale
) -> Ends:
    """Intervals of the linearized standard error by Student's t, symmetric on a scale.

    Args:
        estimate: (k,).
        error: (k,), the standard errors, as `clustered_standard_error` returns them.
        effective: (k,), number of responses of equal size with the same information as the
            responses behind each estimate, as `effective_number` returns it.
        level: nominal coverage.
        scale: range of the estimates.
    """
    reach = student_quantile(level, effective - 1) * error
    if scale is Scale.NUMBER:
        return estimate - reach, estimate + reach
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if scale is Scale.POSITIVE:
            factor = np.exp(reach / estimate)
            return estimate / factor, estimate * factor
        logit = np.log(estimate) - np.log1p(-estimate)
        reach = reach / (estimate * (1 - estimate))
        return _expit(logit - reach), _expit(logit + reach)


def wilson_interval(share: Any, trials: Any, level: float) -> Ends:
    """Wilson's intervals of shares of independent trials, (k,) (Wilson 1927).

    The ends equal those of `proportion_confint` of statsmodels to the last bit. Its import takes
    0.8 s of processor time; `score` and `estimate` need these intervals for shares of 0 and 1.
    """
    from scipy.special import ndtri

    n = np.asarray(trials, dtype=np.float64)
    p = np.asarray(share, dtype=np.float64) * n / n
    z = -ndtri((1 - level) / 2.0)
    scale = 1 + z**2 / n
    center = (p + z**2 / (2 * n)) / scale
    reach = z * np.sqrt(p * (1.0 - p) / n + z**2 / (4.0 * n**2)) / scale
    return np.asarray(np.clip(center - reach, 0, 1)), np.asarray(np.clip(center + reach, 0, 1))


def clustered_standard_error(influence: Floats, touching: Integers) -> Floats:
    """Square root of R/(R-1) times the sum of psi^2, (k,), over R responses; nan if R < 2.

    Args:
        influence: (n_responses, k), linearized contributions psi that sum to 0.
        touching: (k,), the number R of responses that contribute to each estimate.
    """
    count = touching.astype(np.float64)
    factor = np.where(count > 1, count / np.maximum(count - 1, 1), np.nan)
    return np.asarray(np.sqrt(factor * np.square(influence).sum(axis=0)))


def effective_number(weight: Floats) -> Floats:
    """Number of responses of equal size with the same information as these, (k,) (Kish 1965).

    Args:
        weight: size of each response, (n_responses, k), at least 0.
    """
    squares = np.square(weight).sum(axis=0)
    return np.asarray(weight.sum(axis=0) ** 2 / np.where(squares > 0, squares, 1.0))


MOST_LEVERAGE = 0.9
"""Maximum leverage in corrections of residuals: a value that one response determines has none."""


def satterthwaite_freedom(residuals: Floats, by_design: float) -> float:
    """Degrees of freedom of a variance Σ r², at most `by_design`.

    Satterthwaite's number is 2 (E v)²/Var v of the variance v = Σ r², here 3 (Σ r²)²/Σ r⁴ - 2 and
    at least 1: Var v is 2/3 of the expected Σ r⁴ for normal r, and E v² exceeds (E v)² by the same
    amount (Pan and Wall 2002). If a few responses have most of the variance, it is hardly more than
    one.

    Args:
        residuals: contribution r of each response to the estimate, (n_responses,).
        by_design: degrees of freedom for any residuals.
    """
    squares = np.square(residuals)
    fourth = float(squares @ squares)
    if not fourth > 0.0:
        return by_design
    return min(by_design, max(3.0 * float(squares.sum()) ** 2 / fourth - 2.0, 1.0))


RARE_KIND = 0.05
"""If a sample may lack a kind of response with a larger share, the coverage of its intervals is
uncertain.

In simulations (`notebooks/questions/skewed_responses.py`), intervals have their nominal coverage if
the number of responses excludes such a kind.
"""


RARE_KIND_OF_ERRORS = 0.0125
"""The same for calibration errors, which sum errors without their sign.

If a few responses have most of the error, as where one answer in ten is invented, a sample with few
of them has both a small error and a narrow interval. In the same simulations 80 responses cover in
.88 of draws, 240 in .95.
"""


def unseen_share(effective: float, level: float) -> float:
    """Largest share of a kind of response that may be absent from a sample.

    It is 1 - (1 - level)^(1/n): a kind with a larger share is absent from n independent responses
    with a probability below 1 minus the level.

    Args:
        effective: the number n of responses of equal size with the same information, above 0.
        level: nominal coverage.
    """
    return -math.expm1(math.log1p(-level) / effective)


def missing_kind_warning(
    intervals: str, effective: float, level: float, *, whose: str = "", unit: str = "responses"
) -> str:
    """Return the warning that labels may lack a kind of response, one sentence.

    Args:
        intervals: the intervals that it is about, as subject of the sentence.
        effective: as in `unseen_share`.
        level: nominal coverage.
        whose: the quantity whose labels are counted, if quantities differ.
        unit: plural noun of the sampled units.
    """
    of = f" for {whose}" if whose else ""
    size = f"{effective:.1f}".removesuffix(".0")
    return (
        f"{intervals} suppose that no kind of {unit.removesuffix('s')} is missing from the labels, "
        f"which{of} are worth {size} {unit} of equal size: a kind with a share of up to "
        f"{unseen_share(effective, level):.0%} may be missing."
    )


def student_quantile(level: float, degrees: Any) -> Floats:
    """Two-sided quantile of Student's t, elementwise; nan without degrees of freedom."""
    from scipy.special import stdtrit

    freedom = np.asarray(degrees, dtype=np.float64)
    return np.asarray(stdtrit(np.where(freedom > 0, freedom, np.nan), (1 + level) / 2))


def _quantiles(replicates: Floats, lower: ArrayLike, upper: ArrayLike) -> Ends:
    """Two quantiles of the finite replicates of each column; nan if there are none, or a share is
    nan.
    """
    ends = np.full((2, replicates.shape[1]), np.nan)
    shares = np.stack(np.broadcast_arrays(lower, upper, ends[0])[:2])
    for column in np.flatnonzero(~np.isnan(shares).any(axis=0)):
        drawn = _finite(replicates[:, column])
        if drawn.size:
            ends[:, column] = np.quantile(drawn, shares[:, column])
    return ends[0], ends[1]


def _finite(values: Floats) -> Floats:
    finite: Floats = values[np.isfinite(values)]
    return finite


def _expit(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))
