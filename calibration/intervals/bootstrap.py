"""Bootstrap over responses: replicates of many scores at once, and the intervals that they give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from calibration.forecasts import Forecasts, Sample
from calibration.intervals.resampling import response_weights
from calibration.validation import Floats

JACKKNIFE_GROUPS = 100
"""The jackknife of BCa leaves out responses in at most so many groups.

Sums over groups have the skewness of sums over responses, so that the acceleration is the same in
the mean; its standard error is about 0.4 / groups.
"""

Scores = Callable[[Sample], Floats]
"""Scores of a sample, float64 (k,), nan where not defined."""

_AHEAD = 2


def bootstrap(
    points: Forecasts, scores: Scores, n_bootstrap: int, seed: int, workers: int = 1
) -> Floats:
    """Return scores of bootstrap replicates that draw whole responses, (n_bootstrap, k).

    Args:
        points: the forecasts.
        scores: what to compute of each replicate; called from several threads if `workers` > 1.
        n_bootstrap: number of replicates.
        seed: seed of the draws; the same whatever the number of workers.
        workers: number of threads.
    """
    multiplicities = (
        row for block in response_weights(points.n_responses, n_bootstrap, seed) for row in block
    )
    return _stacked(points, scores, multiplicities, workers)


def jackknife(points: Forecasts, scores: Scores, seed: int, workers: int = 1) -> Floats:
    """Return scores of samples that each lack one group of responses, (n_groups, k).

    Groups are single responses where there are no more than `JACKKNIFE_GROUPS`, else about equal
    numbers of them at random.
    """
    n = points.n_responses
    n_groups = min(n, JACKKNIFE_GROUPS)
    group = np.random.default_rng(seed).permutation(np.arange(n) % n_groups)
    left_out = ((group != number).astype(np.float64) for number in range(n_groups))
    return _stacked(points, scores, left_out, workers)


def percentile_interval(replicates: Floats, level: float) -> tuple[float, float]:
    """Return the central quantiles of the replicates that are finite (Efron 1979)."""
    finite = replicates[np.isfinite(replicates)]
    if not finite.size:
        return math.nan, math.nan
    lower, upper = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def basic_interval(value: float, replicates: Floats, level: float) -> tuple[float, float]:
    """Return the percentile interval reflected at the value (Davison and Hinkley 1997).

    Where a score is biased upwards, as the plain calibration errors are, so are its replicates,
    twice: this interval moves down, the percentile interval up.
    """
    lower, upper = percentile_interval(replicates, level)
    return 2 * value - upper, 2 * value - lower


def bca_interval(
    value: float, replicates: Floats, left_out: Floats, level: float
) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval (Efron 1987).

    Args:
        value: the score of the data.
        replicates: scores of bootstrap replicates, (b,).
        left_out: scores of the jackknife, (g,).
        level: nominal coverage.

    Returns:
        Both ends, or nan where all replicates are on one side of the value.
    """
    from scipy.special import ndtr, ndtri

    finite = replicates[np.isfinite(replicates)]
    influence = left_out[np.isfinite(left_out)]
    if not finite.size or influence.size < 2 or not math.isfinite(value):
        return math.nan, math.nan
    if np.ptp(finite) == 0:
        return float(finite[0]), float(finite[0])
    # Ties count half, so that a score with few values is not called biased.
    below = ((finite < value).mean() + (finite <= value).mean()) / 2
    if not 0 < below < 1:
        return math.nan, math.nan
    bias = float(ndtri(below))
    influence = influence.mean() - influence
    spread = float((influence**2).sum())
    acceleration = float((influence**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    tails = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    shares = ndtr(bias + tails / (1 - acceleration * tails))
    lower, upper = np.quantile(finite, shares)
    return float(lower), float(upper)


def _stacked(
    points: Forecasts, scores: Scores, multiplicities: Iterator[Floats], workers: int
) -> Floats:
    def of_one(multiplicity: Floats) -> Floats:
        sample = points.sample(multiplicity)
        if sample.total <= 0:
            # Only atoms of weight 0 were drawn.
            return np.full_like(scores(points.sample()), np.nan)
        return scores(sample)

    if workers == 1:
        return np.array([of_one(multiplicity) for multiplicity in multiplicities])
    from concurrent.futures import ThreadPoolExecutor

    rows: list[Floats] = []
    with ThreadPoolExecutor(workers) as executor:
        # A few at a time: each waiting replicate holds an array of all responses.
        while batch := list(islice(multiplicities, _AHEAD * workers)):
            rows.extend(executor.map(of_one, batch))
    return np.array(rows)
