"""The interval of the difference of two methods in any score, over responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.forecasts import LOGIT_CLIP, Forecasts, ScoreStatus, forecasts, logit_clip
from calibration.grouping import group_by_response
from calibration.intervals import (
    DeviationScores,
    IntervalMethod,
    RatioSums,
    Statistic,
    jackknife_error,
    left_out,
    reach,
    redraw_noise,
    response_weights,
    student_quantile,
)
from calibration.labels import LabelPolicy, apply_policy
from calibration.scores.coverage import coverage_warning
from calibration.scores.definition import JudgedClaims, SampleSettings
from calibration.scores.many_samples import scores_of_samples
from calibration.scores.pointwise import LOSSES
from calibration.scores.ranking import auroc, clustered_auroc
from calibration.scores.registry import REGISTRY, response_k, sample_scores
from calibration.scores.score_intervals import NO_VARIATION, loss_sums
from calibration.scores.smooth import mesh_cells, mesh_deviations
from calibration.significance.paired import bootstrap_difference, paired_difference
from calibration.significance.sample_tests import difference_statistic
from calibration.tabular import Tabular
from calibration.validation import Floats, check_lengths, open_interval, whole_number
from factormodels.errors import InputError

Ends = tuple[float, float, float]
"""Lower and upper end of an interval, and the standard error."""

_NOTHING: Ends = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, repr=False)
class ScoreDifference(Tabular):
    """One score of two methods over the same responses; nan where a number is not defined.

    Attributes:
        score: name of the score, one of `calibration.scores.REGISTRY`.
        first: its value under the first method.
        second: under the second.
        difference: the first less the second.
        lower: lower end of the interval of the difference.
        upper: upper end.
        standard_error: standard error of the difference, clustered by response.
        level: nominal coverage of the interval.
        coverage: what such an interval covers in simulations where that is not its level, as
            `coverage_warning` gives it; else nan.
        method: how the interval is made.
        n_responses: number of responses.
        status: ``ok``; the status of the method whose score is not defined, such as ``infinite``
            or ``one_class``; or ``too_few_responses`` or ``no_variation``, where there is a
            difference alone.
    """

    score: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float
    standard_error: float
    level: float
    coverage: float
    method: str
    n_responses: int
    status: str


def score_difference(
    score: str,
    first: ArrayLike,
    second: ArrayLike,
    y: Any,
    responses: Any,
    *,
    k: str | float = "median",
    folds: Any = None,
    n_bins: int = 10,
    clip: float = LOGIT_CLIP,
    level: float = 0.95,
    n_bootstrap: int = 1000,
    seed: int = 0,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> ScoreDifference:
    """Difference of two methods in a score, with its interval paired by response.

    Args:
        score: name of the score, one of `calibration.scores.REGISTRY`.
        first: probabilities (n,) of one method.
        second: those of the other, of the same atoms.
        y: labels (n,), True or False, None where unlabelled.
        responses: response ids (n,).
        k: how the K of F1@K is chosen, as in `choose_k`.
        folds: fold of each atom, (n,), if p are cross-fitted: AUROC is then within folds.
        n_bins: number of bins of the scores that have bins.
        clip: p is moved into [clip, 1 - clip] where a score needs its logit.
        level: nominal coverage of the interval.
        n_bootstrap: number of replicates, where the interval is made of some.
        seed: seed of the replicates.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for an unknown score, bad arrays, lengths that differ, or bad settings.
    """
    if score not in REGISTRY:
        raise InputError(f"score is {score!r}; choose one of {', '.join(REGISTRY)}")
    level = open_interval(level, "level", 0, 1)
    settings = SampleSettings(whole_number(n_bins, "n_bins", 1), logit_clip(clip))
    n_bootstrap = whole_number(n_bootstrap, "n_bootstrap", 1)
    seed = whole_number(seed, "seed", 0)
    one, other = (apply_policy(p, y, policy=unlabelled) for p in (first, second))
    grouping = group_by_response(responses)
    check_lengths(first=one.kept.size, second=other.kept.size, responses=grouping.index.size)
    fold = None if folds is None or score != "auroc" else one.grouping(folds, "folds").index
    sides = [forecasts(p, y, None, responses, unlabelled) for p in (first, second)]
    kept = one.grouping(responses)
    method = REGISTRY[score].interval
    values, status = [], ScoreStatus.OK
    if method is IntervalMethod.DELTA and score not in LOSSES:
        judged = [JudgedClaims(each.p, each.y, kept, response_k(k, kept)) for each in (one, other)]
        sums = [REGISTRY[score].sums(each) for each in judged]
        values = [float(each.estimate()[0]) for each in sums]
    else:
        for side in sides:
            found = sample_scores(side.sample(), settings, (score,))[score]
            values.append(found.value)
            if not math.isfinite(found.value):
                status = found.status
        if fold is not None:
            values = [auroc(each.p, each.y, folds=fold) for each in (one, other)]
            status = ScoreStatus.OK if math.isfinite(values[0]) else ScoreStatus.ONE_CLASS
        if method is IntervalMethod.DELTA and status is ScoreStatus.OK:
            sums = [loss_sums(side, score) for side in sides]
    n_responses = sides[0].n_responses
    difference = values[0] - values[1] if all(map(math.isfinite, values)) else math.nan
    ends = _NOTHING
    if not math.isnan(difference) and n_responses > 1:
        if method is IntervalMethod.DELTA:
            method = IntervalMethod.BOOTSTRAP
            ends = _of_sums(sums[0], sums[1], n_bootstrap, seed, level)
        elif method is IntervalMethod.OBUCHOWSKI:
            k_of = response_k(1, kept)
            judged = [JudgedClaims(each.p, each.y, kept, k_of, fold) for each in (one, other)]
            ends = _of_auroc(judged[0], judged[1], difference, level)
        elif method in (IntervalMethod.INVERSION, IntervalMethod.JACKKNIFE):
            paired = None
            if method is IntervalMethod.INVERSION:
                paired = _paired_deviations(score, sides, settings)
            method = IntervalMethod.JACKKNIFE if paired is None else IntervalMethod.REDRAWN
            if paired is None:
                statistic = _statistic(score, sides, settings)
                ends = jackknife_ends(statistic, difference, n_responses, seed, level)
            else:
                draws = list(response_weights(n_responses, n_bootstrap, seed))
                ends = _by_redraws(paired, difference, draws, level)
    lower, upper, error = ends
    if n_responses < 2:
        status_text = "too_few_responses"
    elif status is ScoreStatus.OK and math.isnan(lower):
        status_text = "no_variation"
    else:
        status_text = str(status)
    return ScoreDifference(
        score=score,
        first=values[0],
        second=values[1],
        difference=difference,
        lower=lower,
        upper=upper,
        standard_error=error,
        level=level,
        coverage=math.nan
        if math.isnan(lower)
        else coverage_warning(score, n_responses, level, difference=True),
        method=str(method),
        n_responses=n_responses,
        status=status_text,
    )


def _paired_deviations(
    score: str, sides: Sequence[Forecasts], settings: SampleSettings
) -> list[DeviationScores] | None:
    """Deviations of two methods on the same atoms; None where a curve cannot be fitted."""
    if score == "smooth_ece":
        # On one mesh: what it rounds cancels in a difference.
        n_cells = max(map(mesh_cells, sides))
        return [mesh_deviations(side, n_cells) for side in sides]
    make = REGISTRY[score].deviations
    found = [] if make is None else [make(side, settings) for side in sides]
    known = [each for each in found if each is not None]
    return known if len(known) == len(sides) else None


def _of_sums(
    first: RatioSums, second: RatioSums, n_bootstrap: int, seed: int, level: float
) -> Ends:
    """The interval of `paired_bootstrap`."""
    found = bootstrap_difference(first, second, n_bootstrap=n_bootstrap, seed=seed, level=level)
    error = paired_difference(first, second)[1] if math.isfinite(found.lower) else math.nan
    return found.lower, found.upper, error


def _of_auroc(first: JudgedClaims, second: JudgedClaims, difference: float, level: float) -> Ends:
    found = clustered_auroc([first.p, second.p], first.y, first.grouping, first.folds)
    # Of two methods that rank alike it is 0 but for rounding.
    variance = float(np.array([1, -1]) @ found.covariance @ np.array([1, -1]))
    error = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan
    statistic, n_responses = difference_statistic(first, second, "auroc"), found.n_responses
    without, groups = left_out(statistic, n_responses, 0)
    influence = groups @ np.nan_to_num(difference - without)
    return _student(statistic, influence, difference, error, n_responses, level)


def jackknife_ends(
    statistic: Statistic, difference: float, n_responses: int, seed: int, level: float
) -> Ends:
    """Student's interval of a difference by the jackknife over responses.

    Args:
        statistic: the difference in samples of the responses, of response weights.
        difference: its value in the data.
        n_responses: number of responses, two or more.
        seed: seed of the groups that many responses are left out in.
        level: nominal coverage of the interval.
    """
    found, groups = left_out(statistic, n_responses, seed)
    error = float(jackknife_error(found)[0])
    influence = groups @ np.nan_to_num(difference - found)
    return _student(statistic, influence, difference, error, len(found), level)


def _by_redraws(
    scores: Sequence[DeviationScores],
    difference: float,
    draws: Sequence[Floats],
    level: float,
) -> Ends:
    """Student's interval of the standard deviation of both scores' redrawn deviations.

    Chance raises either score of the same labels, and alike: nothing is inverted. But samples of
    redrawn responses add it twice, so that deviations are recentred, as in
    `calibration.intervals.inversion`.
    """

    def values(shifts: Sequence[Floats]) -> Floats:
        one, other = (each.statistic(shift) for each, shift in zip(scores, shifts, strict=True))
        return np.asarray(one - other)

    def sampled(weights: Floats) -> Floats:
        noise = [redraw_noise(each, [weights], leverage=False) for each in scores]
        moved = values([each.deviation + own for each, own in zip(scores, noise, strict=True)])
        return (difference + moved - observed)[:, np.newaxis]

    observed = values([each.deviation[np.newaxis] for each in scores])
    drawn = values([each.direction + redraw_noise(each, draws) for each in scores])
    error = float(np.nanstd(drawn)) if np.isfinite(drawn).any() else math.nan
    without, groups = left_out(sampled, scores[0].weight.size, 0)
    influence = groups @ np.nan_to_num(difference - without)
    size = min(each.effective for each in scores)
    return _student(sampled, influence, difference, error, size, level)


def _student(
    statistic: Statistic,
    influence: Floats,
    difference: float,
    error: float,
    n_groups: float,
    level: float,
) -> Ends:
    """Student's interval, cut where no resample reaches; none without variation."""
    if not error > NO_VARIATION:
        return _NOTHING
    half = float(student_quantile(level, n_groups - 1)) * error
    ends = np.array([difference - half]), np.array([difference + half])
    lowest, highest = reach(statistic, influence, ends)
    ends = np.maximum(ends[0], lowest), np.minimum(ends[1], highest)
    if not ends[0][0] < ends[1][0]:
        # No resample moves it: the error is of rounding.
        return _NOTHING
    return float(ends[0][0]), float(ends[1][0]), error


def _statistic(score: str, sides: Sequence[Forecasts], settings: SampleSettings) -> Statistic:
    """The difference of two methods in samples of the same responses, of response weights."""
    one, other = (scores_of_samples(side, settings, (score,)) for side in sides)
    return lambda weights: one(weights) - other(weights)
