"""Intervals of the scores of a sample of forecasts, each by the method that the registry names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from calibration.forecasts import Estimate, Forecasts
from calibration.grouping import Grouping
from calibration.intervals import (
    IntervalMethod,
    IntervalSettings,
    RatioEstimand,
    RatioSums,
    Scale,
    delta_interval,
    effective_number,
    estimate_all,
    inverted_intervals,
    jackknife_error,
    left_out,
    reach,
    response_weights,
)
from calibration.scores.definition import SampleSettings
from calibration.scores.many_samples import scores_of_samples
from calibration.scores.pointwise import LOSSES, point_losses
from calibration.scores.ranking import clustered_auroc
from calibration.scores.registry import REGISTRY
from calibration.validation import Floats, Integers

_STEP = 1e-6

NO_VARIATION = 1e-12
"""Relative to the score: a smaller standard error is the rounding of one that is 0."""


class ScoreInterval(NamedTuple):
    """Interval of a score; nan where it has none.

    Attributes:
        lower: lower end.
        upper: upper end.
        standard_error: standard error of the score, clustered by response.
        n_undefined: number of resamples in which the score is not defined.
    """

    lower: float
    upper: float
    standard_error: float
    n_undefined: int = 0


NO_INTERVAL = ScoreInterval(math.nan, math.nan, math.nan)


def score_intervals(
    points: Forecasts,
    settings: SampleSettings,
    estimates: Mapping[str, Estimate],
    *,
    level: float,
    n_bootstrap: int,
    seed: int,
    workers: int = 1,
) -> dict[str, ScoreInterval]:
    """Interval over responses of every score, `NO_INTERVAL` where there is none.

    Args:
        points: the forecasts.
        settings: what scores of samples of them are computed with.
        estimates: the scores of the data, by name.
        level: nominal coverage.
        n_bootstrap: number of replicates of the methods that draw some.
        seed: seed of the replicates.
        workers: number of threads of the methods that score samples one by one.
    """
    found = dict.fromkeys(estimates, NO_INTERVAL)
    if points.n_responses < 2:
        return found
    names = [name for name, estimate in estimates.items() if math.isfinite(estimate.value)]
    by_method = {
        method: [name for name in names if REGISTRY[name].interval is method]
        for method in IntervalMethod
    }
    found |= _of_sums(points, by_method[IntervalMethod.DELTA], level)
    found |= _of_base_rate(points, by_method[IntervalMethod.BASE_RATE], level)
    found |= _of_auroc(points, by_method[IntervalMethod.OBUCHOWSKI], level)
    jackknifed = by_method[IntervalMethod.JACKKNIFE]
    found |= _by_jackknife(points, settings, jackknifed, estimates, level, seed, workers)
    for name in by_method[IntervalMethod.INVERSION]:
        make = REGISTRY[name].deviations
        if make is not None and (deviations := make(points, settings)) is not None:
            draws = response_weights(points.n_responses, n_bootstrap, seed)
            found[name] = ScoreInterval(*inverted_intervals(deviations, draws, level))
    return {name: _told(name, found[name]) for name in estimates}


def why_no_interval(value: float, lower: float, n_responses: int) -> str:
    """Why a score that has a value has no interval, in a few words; empty where it has one."""
    if not math.isfinite(value) or not math.isnan(lower):
        return ""
    return "fewer than two responses" if n_responses < 2 else "no redraw of the responses moves it"


def loss_sums(points: Forecasts, name: str) -> RatioSums:
    """A loss of `pointwise.LOSSES` as a ratio of sums over responses, one cell."""
    if_true, if_false = (np.repeat(each, points.sizes) for each in point_losses(points, name))
    # A loss that is infinite under the other label does not count: 0 times inf is nan.
    losses = np.where(points.y == 1, if_true, if_false)
    return _ratio(points, losses)


def auroc_interval(
    p: Floats,
    y: Floats,
    grouping: Grouping,
    level: float,
    *,
    folds: Integers | None = None,
    weights: Floats | None = None,
) -> ScoreInterval:
    """Interval of AUROC by Obuchowski's standard error, symmetric in the logit; none without one.

    Arguments are those of `clustered_auroc`, and the nominal coverage.
    """
    found = clustered_auroc([p], y, grouping, folds, weights)
    error = np.sqrt(np.maximum(np.diag(found.covariance), 0.0))
    if not error[0] > NO_VARIATION:
        return NO_INTERVAL
    counted = np.ones(y.size) if weights is None else weights
    size = effective_number(grouping.sums(counted)[:, np.newaxis])
    lower, upper = delta_interval(found.value, error, size, level, Scale.UNIT)
    return ScoreInterval(float(lower[0]), float(upper[0]), float(error[0]))


def _of_sums(points: Forecasts, names: Sequence[str], level: float) -> dict[str, ScoreInterval]:
    ratios = [
        RatioEstimand(name, loss_sums(points, name), REGISTRY[name].scale)
        for name in names
        if name in LOSSES
    ]
    return {
        each.name: ScoreInterval(
            float(each.lower[0]), float(each.upper[0]), float(each.standard_error[0])
        )
        for each in estimate_all(ratios, IntervalSettings(IntervalMethod.DELTA, level=level))
    }


def _of_base_rate(
    points: Forecasts, names: Sequence[str], level: float
) -> dict[str, ScoreInterval]:
    """Scores of the base rate alone take all values that its interval's base rates have."""
    if not names:
        return {}
    (rate,) = estimate_all(
        [RatioEstimand("base rate", _ratio(points, points.y))],
        IntervalSettings(IntervalMethod.DELTA, level=level),
    )
    lower, upper = float(rate.lower[0]), float(rate.upper[0])
    own = float(rate.estimate[0])
    found = {}
    for name in names:
        of_base_rate = REGISTRY[name].of_base_rate
        if of_base_rate is None:
            continue
        # The uncertainty rises up to a base rate of one half and falls beyond it.
        values = of_base_rate(np.array([lower, upper, min(max(0.5, lower), upper)]))
        step = of_base_rate(np.clip(np.array([own - _STEP, own + _STEP]), 0, 1))
        error = abs(float(np.diff(step)[0])) / (2 * _STEP) * float(rate.standard_error[0])
        found[name] = ScoreInterval(float(values.min()), float(values.max()), error)
    return found


def _of_auroc(points: Forecasts, names: Sequence[str], level: float) -> dict[str, ScoreInterval]:
    if not names:
        return {}
    sizes = np.bincount(points.response, minlength=points.n_responses)
    grouping = Grouping(tuple(range(points.n_responses)), points.response, sizes)
    p = np.repeat(points.p, points.sizes)
    return {names[0]: auroc_interval(p, points.y, grouping, level, weights=points.weights)}


def _by_jackknife(
    points: Forecasts,
    settings: SampleSettings,
    names: Sequence[str],
    estimates: Mapping[str, Estimate],
    level: float,
    seed: int,
    workers: int,
) -> dict[str, ScoreInterval]:
    if not names:
        return {}

    statistic = scores_of_samples(points, settings, names, workers)
    own = np.array([estimates[name].value for name in names])
    found, groups = left_out(statistic, points.n_responses, seed)
    error = jackknife_error(found)
    size = np.full(len(names), min(float(_effective(points)[0]), len(found)))
    ends = np.empty((2, len(names)))
    for scale in Scale:
        at = np.array([REGISTRY[name].scale is scale for name in names])
        ends[:, at] = delta_interval(own[at], error[at], size[at], level, scale)
    # A response moves a score as the group does that it is left out with.
    influence = groups @ np.nan_to_num(own - found)
    lowest, highest = reach(statistic, influence, (ends[0], ends[1]))
    ends = np.stack([np.maximum(ends[0], lowest), np.minimum(ends[1], highest)])
    undefined = (~np.isfinite(found)).sum(axis=0)
    return {
        name: ScoreInterval(
            float(ends[0, column]),
            float(ends[1, column]),
            float(error[column]),
            int(undefined[column]),
        )
        for column, name in enumerate(names)
        if error[column] > NO_VARIATION * abs(own[column])
    }


def _effective(points: Forecasts) -> Floats:
    return effective_number(points.response_sums(points.weights)[:, np.newaxis])


def _told(name: str, interval: ScoreInterval) -> ScoreInterval:
    """The interval without what no population can have; none if both ends are the same.

    Redraws that all have one value, as where claims are perfectly separated, measure no chance: a
    point would claim to know the score for certain. This holds of every method.
    """
    lowest, highest = REGISTRY[name].range
    lower, upper = max(interval.lower, lowest), min(interval.upper, highest)
    if not upper - lower > NO_VARIATION * max(1.0, abs(lower), abs(upper)):
        return NO_INTERVAL._replace(n_undefined=interval.n_undefined)
    return interval._replace(lower=lower, upper=upper)


def _ratio(points: Forecasts, values: Floats) -> RatioSums:
    above, below = (
        points.response_sums(each)[:, np.newaxis]
        for each in (points.weights * values, points.weights)
    )
    return RatioSums(above, below)
