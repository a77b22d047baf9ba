"""Intervals over responses for the difference between two methods in any score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Difference, ScoreStatus
from calibration.forecasts import Forecasts
from calibration.intervals import (
    DeviationScores,
    IntervalMethod,
    IntervalSettings,
    RatioSums,
    Statistic,
    jackknife,
    reach,
    redraw_noise,
    response_weights,
    student_quantile,
)
from calibration.labels import LabelPolicy
from calibration.scores.coverage import coverage_warning
from calibration.scores.definition import (
    DEFAULT_SETTINGS,
    JudgedClaims,
    SampleSettings,
    ScoreDefinition,
)
from calibration.scores.estimates import NO_VARIATION, judged_claims, labeled_claims
from calibration.scores.families.ranking import clustered_auroc
from calibration.scores.families.smooth import mesh_cells, mesh_deviations
from calibration.scores.many_samples import scores_of_samples
from calibration.scores.registry import REGISTRY
from calibration.significance.bootstrap import bootstrap_difference
from calibration.significance.ratio_differences import paired_difference
from calibration.significance.sample_differences import difference_statistic
from calibration.validation import Floats
from factormodels.errors import InputError
from factormodels.nouns import counted

Ends = tuple[float, float, float]
"""Lower and upper end of an interval, and the standard error."""

_NOTHING: Ends = (math.nan, math.nan, math.nan)


def score_difference(
    score: str,
    first: ArrayLike,
    second: ArrayLike,
    y: Any,
    responses: Any,
    *,
    k: str | float = "median",
    folds: Any = None,
    level: float = 0.95,
    n_bootstrap: int = 1000,
    seed: int = 0,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> Difference:
    """Difference between two methods in a score, with an interval paired by response.

    Args:
        score: name of a score in `calibration.scores.REGISTRY`.
        first: probabilities (n,) of one method.
        second: probabilities (n,) of the other method, for the same atoms.
        y: labels (n,), True or False, None where unlabeled.
        responses: response ids (n,).
        k: choice of the K of F1@K, as in `choose_k`.
        folds: fold of each atom, (n,), if probabilities are cross-fitted. AUROC then compares atoms
            within folds.
        level: nominal coverage of the interval.
        n_bootstrap: number of replicates, if the interval uses a bootstrap.
        seed: seed of the replicates.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for an unknown score, bad arrays, different lengths, or bad settings.
    """
    if score not in REGISTRY:
        raise InputError(f"score is {score!r}; choose one of {', '.join(REGISTRY)}")
    settings = IntervalSettings(n_bootstrap=n_bootstrap, seed=seed, level=level)
    sides = []
    for p in (first, second):
        every = judged_claims(p, y, responses, folds=folds, k=k)
        sides.append(labeled_claims(every, unlabeled, k))
    of_first, of_second = sides
    if of_first is None or of_second is None:
        raise InputError(f"none of the {counted(every.p.size, 'atom')} has a label; label some")
    return difference_of(REGISTRY[score], of_first, of_second, settings)


def difference_of(
    score: ScoreDefinition,
    first: JudgedClaims,
    second: JudgedClaims,
    intervals: IntervalSettings,
    settings: SampleSettings = DEFAULT_SETTINGS,
) -> Difference:
    """Difference between two methods in a score, with an interval; their claims may differ.

    Args:
        score: the score.
        first: labeled claims under one method.
        second: labeled claims under the other, of the same responses in the same order.
        intervals: level, replicates and seed of the interval.
        settings: settings of the scores of samples.
    """
    of_first, of_second = (score.value(side, settings) for side in (first, second))
    undefined = [each.status for each in (of_first, of_second) if not math.isfinite(each.value)]
    difference = Difference(
        score.name,
        math.nan if undefined else of_first.value - of_second.value,
        status=undefined[-1] if undefined else ScoreStatus.OK,
        n=len(first.grouping.responses),
        first=of_first.value,
        second=of_second.value,
        method=str(score.interval),
    )
    if undefined:
        return difference
    if difference.n < 2:
        return replace(difference, status=ScoreStatus.TOO_FEW)
    method, (lower, upper, error) = _interval(
        score, first, second, difference.value, intervals, settings
    )
    difference = replace(
        difference, lower=lower, upper=upper, standard_error=error, method=str(method)
    )
    if math.isnan(lower):
        return replace(difference, status=ScoreStatus.NO_VARIATION)
    if _same_claims(first, second) and score.was_simulated(settings):
        # Coverage was not simulated for methods with different claims.
        covers = coverage_warning(score.name, difference.n, intervals.level, difference=True)
        difference = replace(difference, coverage=covers)
    return difference


def _same_claims(first: JudgedClaims, second: JudgedClaims) -> bool:
    return np.array_equal(first.grouping.index, second.grouping.index) and np.array_equal(
        first.y, second.y
    )


def _interval(
    score: ScoreDefinition,
    first: JudgedClaims,
    second: JudgedClaims,
    difference: float,
    intervals: IntervalSettings,
    settings: SampleSettings,
) -> tuple[IntervalMethod, Ends]:
    """The method of the interval, and the interval."""
    seed, level = intervals.seed, intervals.level
    n_responses = len(first.grouping.responses)
    if score.ratio is not None:
        return IntervalMethod.BOOTSTRAP, _of_sums(score.sums(first), score.sums(second), intervals)
    if not _same_claims(first, second):
        statistic = difference_statistic(first, second, score.name, settings)
        ends = jackknife_ends(statistic, difference, n_responses, seed, level)
        return IntervalMethod.JACKKNIFE, ends
    if score.interval is IntervalMethod.OBUCHOWSKI:
        return score.interval, _of_auroc(first, second, difference, level)
    if score.interval is IntervalMethod.BASE_RATE:
        return score.interval, _NOTHING
    sides = [first.forecasts, second.forecasts]
    if (paired := _paired_deviations(score, sides, settings)) is not None:
        draws = list(response_weights(n_responses, intervals.n_bootstrap, seed))
        return IntervalMethod.REDRAWN, _by_redraws(paired, difference, draws, level)
    statistic = _statistic(score.name, sides, settings)
    ends = jackknife_ends(statistic, difference, n_responses, seed, level)
    return IntervalMethod.JACKKNIFE, ends


def _paired_deviations(
    score: ScoreDefinition, sides: Sequence[Forecasts], settings: SampleSettings
) -> list[DeviationScores] | None:
    """Deviations of two methods on the same atoms; None if the score has none or lacks a curve."""
    if score.name == "smooth_ece":
        # Use the same mesh for both, so that rounding errors cancel in the difference.
        n_cells = max(map(mesh_cells, sides))
        return [mesh_deviations(side, n_cells) for side in sides]
    make = score.deviations
    deviations = [] if make is None else [make(side, settings) for side in sides]
    known = [each for each in deviations if each is not None]
    return known if len(known) == len(sides) else None


def _of_sums(first: RatioSums, second: RatioSums, settings: IntervalSettings) -> Ends:
    """Interval of `paired_bootstrap`, with the linearized standard error."""
    difference = bootstrap_difference(
        *(first, second),
        n_bootstrap=settings.n_bootstrap,
        seed=settings.seed,
        level=settings.level,
    )
    return difference.lower, difference.upper, paired_difference(first, second)[1]


def _of_auroc(first: JudgedClaims, second: JudgedClaims, difference: float, level: float) -> Ends:
    _, covariance = clustered_auroc(
        [first.p, second.p], first.y, first.grouping, first.folds, first.weights
    )
    # For two methods with the same ranking it is 0 up to rounding.
    variance = float(np.array([1, -1]) @ covariance @ np.array([1, -1]))
    error = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan
    statistic = difference_statistic(first, second, "auroc", DEFAULT_SETTINGS)
    n_responses = len(first.grouping.responses)
    _, influence, _ = jackknife(statistic, np.array([difference]), n_responses, 0)
    return _student(statistic, influence, difference, error, n_responses, level)


def jackknife_ends(
    statistic: Statistic, difference: float, n_responses: int, seed: int, level: float
) -> Ends:
    """Student's interval of a difference by the jackknife over responses.

    Args:
        statistic: function from response weights to the difference.
        difference: its value in the data.
        n_responses: number of responses, at least 2.
        seed: seed of the assignment to groups, used with many responses.
        level: nominal coverage of the interval.
    """
    error, influence, n_groups = jackknife(statistic, np.array([difference]), n_responses, seed)
    return _student(statistic, influence, difference, float(error[0]), n_groups, level)


def _by_redraws(
    scores: Sequence[DeviationScores],
    difference: float,
    draws: Sequence[Floats],
    level: float,
) -> Ends:
    """Student's interval from the standard deviation of redrawn differences.

    Chance raises both scores by about the same amount, so that no test is inverted. Redrawn samples
    contain chance twice; deviations are therefore recentered, as in
    `calibration.intervals.inversion`.
    """

    def values(shifts: Sequence[Floats]) -> Floats:
        of_first, of_second = (
            each.statistic(shift) for each, shift in zip(scores, shifts, strict=True)
        )
        return np.asarray(of_first - of_second)

    def sampled(weights: Floats) -> Floats:
        noise = [redraw_noise(each, [weights], leverage=False) for each in scores]
        moved = values(
            [each.deviation + redrawn for each, redrawn in zip(scores, noise, strict=True)]
        )
        return (difference + moved - observed)[:, np.newaxis]

    observed = values([each.deviation[np.newaxis] for each in scores])
    drawn = values([each.direction + redraw_noise(each, draws) for each in scores])
    error = float(np.nanstd(drawn)) if np.isfinite(drawn).any() else math.nan
    _, influence, _ = jackknife(sampled, np.array([difference]), scores[0].weight.size, 0)
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
    """Student's interval, clipped to the range of resamples; nan without variation."""
    if not error > NO_VARIATION:
        return _NOTHING
    half = float(student_quantile(level, n_groups - 1)) * error
    ends = np.array([difference - half]), np.array([difference + half])
    lowest, highest = reach(statistic, influence, ends)
    ends = np.maximum(ends[0], lowest), np.minimum(ends[1], highest)
    if not ends[0][0] < ends[1][0]:
        # No resample changes the difference: the error is due to rounding.
        return _NOTHING
    return float(ends[0][0]), float(ends[1][0]), error


def _statistic(score: str, sides: Sequence[Forecasts], settings: SampleSettings) -> Statistic:
    """Return the difference between two methods as a function of response weights."""
    of_first, of_second = (scores_of_samples(side, settings, (score,)) for side in sides)
    return lambda weights: of_first(weights) - of_second(weights)
