"""Scores of claims with intervals, by the interval method of each score's definition."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Estimate, ScoreStatus, undefined
from calibration.forecasts import Forecasts
from calibration.grouping import Grouping, group_by_response
from calibration.intervals import (
    Ends,
    IntervalMethod,
    IntervalSettings,
    RatioSums,
    Scale,
    delta_interval,
    effective_number,
    estimate_all,
    inverted_intervals,
    jackknife,
    reach,
    response_weights,
)
from calibration.labels import LabelPolicy, apply_policy
from calibration.scores.coverage import coverage_warning
from calibration.scores.definition import JudgedClaims, SampleSettings, ScoreDefinition
from calibration.scores.families.ranking import clustered_auroc
from calibration.scores.many_samples import scores_of_samples
from calibration.scores.registry import REGISTRY, response_k, sample_scores
from calibration.validation import (
    Floats,
    Integers,
    check_lengths,
    label_array,
    probability_array,
    weight_array,
)

_STEP = 1e-6

_MOST_WORKERS = 4
"""Number of threads for scores that are computed sample by sample; it does not affect results."""

NO_VARIATION = 1e-12
"""Smallest width of an interval relative to the score; smaller widths are rounding errors of 0."""


def judged_claims(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    weights: ArrayLike | None = None,
    folds: Any = None,
    k: str | float = "median",
) -> JudgedClaims:
    """Check all claims of one method; missing labels become nan.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled; None if no claim has a label.
        responses: response ids (n,); None if every claim is a separate response.
        weights: weights (n,), the number of claims that each represents; None for 1 each.
        folds: fold of each claim, (n,), if `p` is cross-fitted.
        k: choice of the K of F1@K, as in `choose_k`.

    Raises:
        InputError: for bad arrays, different lengths, or an unknown `k`.
    """
    probabilities = probability_array(p)
    labels = np.full(probabilities.size, np.nan) if y is None else label_array(y)
    ids = np.arange(probabilities.size) if responses is None else responses
    grouping = group_by_response(ids)
    check_lengths(p=probabilities.size, y=labels.size, responses=grouping.index.size)
    fold = None
    if folds is not None:
        fold = group_by_response(folds, "folds").index
        check_lengths(p=probabilities.size, folds=fold.size)
    counts = None if weights is None else weight_array(weights, probabilities.size)
    return JudgedClaims(
        probabilities, labels, grouping, response_k(k, grouping), folds=fold, weights=counts
    )


def labeled_claims(
    every: JudgedClaims, unlabeled: str = LabelPolicy.EXCLUDE, k: str | float = "median"
) -> JudgedClaims | None:
    """Claims for scores that need labels; None if there are none.

    Args:
        every: all claims, with nan for missing labels.
        unlabeled: treatment of claims without a label, as in `apply_policy`.
        k: choice of the K of F1@K, as in `choose_k`.

    Raises:
        InputError: for an unknown policy, unlabeled claims under the policy "error", or weights
            that are all zero.
    """
    scored = apply_policy(every.p, every.y, unlabeled)
    if not scored.p.size:
        return None
    grouping = every.grouping if scored.kept.all() else every.grouping.of(scored.kept)
    return JudgedClaims(
        scored.p,
        scored.y,
        grouping,
        response_k(k, grouping),
        folds=None if every.folds is None else every.folds[scored.kept],
        weights=None if every.weights is None else scored.weights(every.weights),
    )


def estimates_of(
    claims: JudgedClaims,
    scores: Sequence[ScoreDefinition],
    intervals: IntervalSettings | None,
    settings: SampleSettings,
) -> dict[str, Estimate]:
    """Scores of claims with intervals, by name; AUROC is computed within folds if there are any.

    Args:
        claims: the claims; all must be labeled if a score needs labels.
        scores: the scores.
        intervals: replicates, seed and level of the intervals; None for no intervals.
        settings: settings of the scores of samples.
    """
    estimates: dict[str, Estimate] = {}
    of_samples = []
    n_responses = len(claims.grouping.responses)
    for score in scores:
        if score.ratio is not None:
            # Sequentially, because each score holds sums for every response.
            estimates[score.name] = _of_sums(score, score.value(claims), claims, intervals)
        elif score.within_folds is not None and claims.folds is not None:
            value = score.value(claims)
            if intervals is not None and math.isfinite(value.value):
                arguments = claims.p, claims.y, claims.grouping, claims.folds, claims.weights
                value = _of_auroc(value, *arguments, level=intervals.level)
            estimates[score.name] = value
        else:
            of_samples.append(score.name)
    if of_samples:
        points = claims.forecasts
        values = sample_scores(points.sample(), settings, of_samples)
        estimates |= values
        if intervals is not None and n_responses > 1:
            estimates |= _of_samples(points, values, intervals, settings)
    level = math.nan if intervals is None else intervals.level
    for name, each in estimates.items():
        covers = math.nan
        if math.isfinite(each.value) and REGISTRY[name].was_simulated(settings):
            covers = coverage_warning(name, n_responses, level)
        estimates[name] = replace(each, n=n_responses, coverage=covers)
    return {score.name: estimates[score.name] for score in scores}


def without_labels(scores: Sequence[ScoreDefinition]) -> dict[str, Estimate]:
    """Undefined estimates of scores that need labels, by name."""
    return {score.name: undefined(score.name, ScoreStatus.NO_LABELS) for score in scores}


def _of_sums(
    score: ScoreDefinition,
    value: Estimate,
    claims: JudgedClaims,
    intervals: IntervalSettings | None,
) -> Estimate:
    if intervals is None or not math.isfinite(value.value):
        return value
    ratio = score.sums(claims).named(score.name, score.scale)
    (estimate,) = estimate_all([ratio], replace(intervals, method=IntervalMethod.DELTA))
    return _with_interval(value, (estimate.lower, estimate.upper), estimate.standard_error)


def _of_samples(
    points: Forecasts,
    values: Mapping[str, Estimate],
    intervals: IntervalSettings,
    settings: SampleSettings,
) -> dict[str, Estimate]:
    """Add intervals to scores of samples; at least two responses are needed."""
    level, seed = intervals.level, intervals.seed
    estimates: dict[str, Estimate] = {}
    jackknifed = []
    for name, value in values.items():
        score = REGISTRY[name]
        if not math.isfinite(value.value):
            continue
        if score.interval is IntervalMethod.BASE_RATE:
            estimates[name] = _of_base_rate(value, score, points, level)
        elif score.interval is IntervalMethod.OBUCHOWSKI:
            arguments = points.p_of_atoms, points.y, points.grouping, None, points.weights
            estimates[name] = _of_auroc(value, *arguments, level=level)
        elif score.interval is IntervalMethod.JACKKNIFE:
            jackknifed.append(value)
        elif score.deviations is not None:
            deviations = score.deviations(points, settings)
            if deviations is not None:
                draws = response_weights(points.n_responses, intervals.n_bootstrap, seed)
                lower, upper, error = inverted_intervals(deviations, draws, level)
                estimates[name] = replace(value, lower=lower, upper=upper, standard_error=error)
    if jackknifed:
        estimates |= _by_jackknife(points, settings, jackknifed, level, seed)
    return {name: _within_range(each) for name, each in estimates.items()}


def _of_base_rate(
    value: Estimate, score: ScoreDefinition, points: Forecasts, level: float
) -> Estimate:
    """Interval of a score of the base rate: its values over the interval of the base rate."""
    of_base_rate = score.of_base_rate
    if of_base_rate is None:
        return value
    above, below = (
        points.response_sums(each)[:, np.newaxis]
        for each in (points.weights * points.y, points.weights)
    )
    (rate,) = estimate_all(
        [RatioSums(above, below)],
        IntervalSettings(IntervalMethod.DELTA, level=level),
    )
    lower, upper = float(rate.lower[0]), float(rate.upper[0])
    base_rate = float(rate.estimate[0])
    # The uncertainty increases up to a base rate of 1/2 and decreases beyond it.
    reached = of_base_rate(np.array([lower, upper, min(max(0.5, lower), upper)]))
    step = of_base_rate(np.clip(np.array([base_rate - _STEP, base_rate + _STEP]), 0, 1))
    error = abs(float(np.diff(step)[0])) / (2 * _STEP) * float(rate.standard_error[0])
    ends = float(reached.min()), float(reached.max())
    return replace(value, lower=ends[0], upper=ends[1], standard_error=error)


def _of_auroc(
    value: Estimate,
    p: Floats,
    y: Floats,
    grouping: Grouping,
    folds: Integers | None,
    weights: Floats | None,
    *,
    level: float,
) -> Estimate:
    """AUROC with Obuchowski's standard error and an interval symmetric in the logit, if any."""
    area, covariance = clustered_auroc([p], y, grouping, folds, weights)
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if not error[0] > NO_VARIATION:
        return value
    counted = np.ones(y.size) if weights is None else weights
    true, false = counted * y, counted * (1 - y)
    # The false claims, however few, determine as much of the area as the true claims.
    decided = grouping.sums(true / true.sum() + false / false.sum())
    size = effective_number(decided[:, np.newaxis])
    return _with_interval(value, delta_interval(area, error, size, level, Scale.UNIT), error)


def _by_jackknife(
    points: Forecasts,
    settings: SampleSettings,
    values: Sequence[Estimate],
    level: float,
    seed: int,
) -> dict[str, Estimate]:
    names = [each.name for each in values]
    estimates = np.array([each.value for each in values])
    workers = min(os.cpu_count() or 1, _MOST_WORKERS)
    statistic = scores_of_samples(points, settings, names, workers)
    error, influence, n_groups = jackknife(statistic, estimates, points.n_responses, seed)
    effective = effective_number(points.response_sums(points.weights)[:, np.newaxis])
    size = np.full(len(names), min(float(effective[0]), n_groups))
    ends = np.empty((2, len(names)))
    for scale in Scale:
        at = np.array([REGISTRY[name].scale is scale for name in names])
        ends[:, at] = delta_interval(estimates[at], error[at], size[at], level, scale)
    lowest, highest = reach(statistic, influence, (ends[0], ends[1]))
    ends = np.stack([np.maximum(ends[0], lowest), np.minimum(ends[1], highest)])
    return {
        each.name: _with_interval(each, (ends[0], ends[1]), error, column)
        for column, each in enumerate(values)
        if error[column] > NO_VARIATION * abs(estimates[column])
    }


def _with_interval(value: Estimate, ends: Ends, error: Floats, column: int = 0) -> Estimate:
    """The score with the interval of a column of `ends`, arrays (k,)."""
    lower, upper = (float(end[column]) for end in ends)
    return replace(value, lower=lower, upper=upper, standard_error=float(error[column]))


def _within_range(value: Estimate) -> Estimate:
    """Clip an interval to the range of its score; remove an interval of width 0.

    Resamples with equal values, as with perfectly separated claims, do not measure chance: an
    interval of width 0 would mean that the score is known exactly. This applies to every method.
    """
    lowest, highest = REGISTRY[value.name].range
    lower, upper = max(value.lower, lowest), min(value.upper, highest)
    if not upper - lower > NO_VARIATION * max(1.0, abs(lower), abs(upper)):
        return Estimate(value.name, value.value, status=value.status)
    return replace(value, lower=lower, upper=upper)
