"""Methods of intervals: from an estimate, its replicates or its standard error to two ends.

Every function works column by column: k estimates with replicates (b, k) get two arrays (k,), nan
where there is no interval.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.validation import Floats, Integers

Ends = tuple[Floats, Floats]
"""Lower and upper ends of intervals, float64 (k,) each."""


class Scale(StrEnum):
    """What values an estimand can take, which decides on what scale its interval is symmetric."""

    PROBABILITY = "probability"
    NUMBER = "number"


class IntervalMethod(StrEnum):
    """How an interval over responses is made."""

    BOOTSTRAP = "bootstrap"
    """Percentiles of replicates, expanded for few responses (`expanded_percentile_interval`)."""
    DELTA = "delta"
    """The linearised standard error and Student's t (`delta_interval`)."""
    PERCENTILE = "percentile"
    """Percentiles of replicates (`percentile_interval`)."""
    BASIC = "basic"
    """The same, reflected at the estimate (`basic_interval`)."""
    BCA = "bca"
    """The same, corrected for bias and skewness (`bca_interval`)."""


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
        touching: (k,), number of responses that bear on each estimate; under 2 there is no
            interval.
        level: nominal coverage.
    """
    from scipy.special import ndtr

    # Percentiles are too narrow by the factor that Student's t and R - 1 mend in a mean of R.
    factor = np.sqrt(touching / np.maximum(touching - 1, 1))
    tails = ndtr(-student_quantile(level, touching - 1) * factor)
    return _quantiles(replicates, tails, 1 - tails)


def basic_interval(value: ArrayLike, replicates: Floats, level: float) -> Ends:
    """Percentile intervals reflected at the values, (k,) (Davison and Hinkley 1997).

    Where a score is biased upwards, as the plain calibration errors are, so are its replicates,
    twice: this interval moves down, the percentile interval up.
    """
    lower, upper = percentile_interval(replicates, level)
    twice = 2 * np.asarray(value, dtype=np.float64)
    return twice - upper, twice - lower


def bca_interval(value: ArrayLike, replicates: Floats, left_out: Floats, level: float) -> Ends:
    """Bias-corrected and accelerated intervals (Efron 1987).

    Args:
        value: (k,), the scores of the data.
        replicates: (b, k), those of bootstrap replicates.
        left_out: (g, k), those of the jackknife.
        level: nominal coverage.

    Returns:
        Both ends, nan where all replicates are on one side of the value.
    """
    from scipy.special import ndtr, ndtri

    values = np.asarray(value, dtype=np.float64)
    ends = np.full((2, values.size), np.nan)
    for column in np.flatnonzero(np.isfinite(values)):
        drawn, influence = _finite(replicates[:, column]), _finite(left_out[:, column])
        if not drawn.size or influence.size < 2:
            continue
        if np.ptp(drawn) == 0:
            ends[:, column] = drawn[0]
            continue
        # Ties count half, so that a score with few values is not called biased.
        below = ((drawn < values[column]).mean() + (drawn <= values[column]).mean()) / 2
        if not 0 < below < 1:
            continue
        bias = float(ndtri(below))
        influence = influence.mean() - influence
        spread = float((influence**2).sum())
        acceleration = float((influence**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
        tails = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
        ends[:, column] = np.quantile(drawn, ndtr(bias + tails / (1 - acceleration * tails)))
    return ends[0], ends[1]


def studentised_interval(value: float, error: float, drawn: Floats, level: float) -> Ends:
    """Interval of one estimate from replicates of its t statistic (Efron 1979, Hall 1988).

    Args:
        value: the estimate.
        error: its standard error.
        drawn: (b, 1), each replicate's distance from the estimate over its own standard error.
        level: nominal coverage.
    """
    lower, upper = percentile_interval(drawn, level)
    return value - upper * error, value - lower * error


def delta_interval(
    estimate: Floats, error: Floats, touching: Integers, level: float, scale: Scale
) -> Ends:
    """Intervals of the linearised standard error by Student's t; symmetric in the logit of shares.

    Args:
        estimate: (k,).
        error: (k,), the standard errors, as `clustered_standard_error` gives them.
        touching: (k,), number of responses that bear on each estimate.
        level: nominal coverage.
        scale: what values the estimates can take.
    """
    reach = student_quantile(level, touching - 1) * error
    if scale is Scale.NUMBER:
        return estimate - reach, estimate + reach
    with np.errstate(divide="ignore", invalid="ignore"):
        logit = np.log(estimate) - np.log1p(-estimate)
        reach = reach / (estimate * (1 - estimate))
        return _expit(logit - reach), _expit(logit + reach)


def wilson_interval(share: Any, trials: Any, level: float) -> Ends:
    """Wilson's intervals of shares of independent trials, (k,) (Wilson 1927)."""
    from scipy.special import ndtri

    # statsmodels' proportion_confint gives the same bits (a test says so) and takes a second to
    # import.
    n = np.asarray(trials, dtype=np.float64)
    p = np.asarray(share, dtype=np.float64) * n / n
    z = -ndtri((1 - level) / 2.0)
    scale = 1 + z**2 / n
    centre = (p + z**2 / (2 * n)) / scale
    reach = z * np.sqrt(p * (1.0 - p) / n + z**2 / (4.0 * n**2)) / scale
    return np.asarray(np.clip(centre - reach, 0, 1)), np.asarray(np.clip(centre + reach, 0, 1))


def clustered_standard_error(influence: Floats, touching: Integers) -> Floats:
    """Square root of R/(R-1) times the sum of psi^2, (k,), over R responses; nan where R < 2.

    Args:
        influence: (n_responses, k), linearised contributions psi that sum to 0.
        touching: (k,), the number R of responses that bear on each estimate.
    """
    count = touching.astype(np.float64)
    factor = np.where(count > 1, count / np.maximum(count - 1, 1), np.nan)
    return np.asarray(np.sqrt(factor * (influence**2).sum(axis=0)))


def student_quantile(level: float, degrees: Any) -> Floats:
    """Two-sided quantile of Student's t, elementwise; nan without degrees of freedom."""
    from scipy.special import stdtrit

    freedom = np.asarray(degrees, dtype=np.float64)
    return np.asarray(stdtrit(np.where(freedom > 0, freedom, np.nan), (1 + level) / 2))


def _quantiles(replicates: Floats, lower: ArrayLike, upper: ArrayLike) -> Ends:
    """Two quantiles of the finite replicates of each column, nan where none is or a share is."""
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
