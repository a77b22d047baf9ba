"""Scores of many samples of the same forecasts, for tests and intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.forecasts import Extremes, Forecasts, Sample, clipped_logits
from calibration.intervals import Statistic, of_samples
from calibration.scores.binning import equal_width_starts
from calibration.scores.definition import SampleSettings
from calibration.scores.families.logistic import MOST_POINTS, line_start
from calibration.scores.families.selective import verdict_ranking
from calibration.scores.registry import sample_scores
from calibration.validation import Floats

COMPILED = (
    *("corp_brier_miscalibration", "corp_brier_discrimination", "auroc", "ece"),
    *("calibration_slope", "calibration_intercept", "aurc"),
)
"""Scores computed by the kernel `score_samples`, in the order of its columns."""


def scores_of_samples(
    points: Forecasts, settings: SampleSettings, names: Sequence[str], workers: int = 1
) -> Statistic:
    """Return a statistic whose columns are scores of samples; undefined scores are nan.

    The numbers equal those of `sample_scores` up to rounding.

    Args:
        points: the forecasts.
        settings: settings of the scores.
        names: names of the scores, from `SAMPLE_SCORES`.
        workers: number of threads for scores that are computed sample by sample.
    """
    fits = points.p.size <= MOST_POINTS
    compiled = [name for name in names if name in COMPILED and (fits or "calib" not in name)]
    others = [name for name in names if name not in compiled]

    def one_by_one(sample: Sample) -> Floats:
        scores = sample_scores(sample, settings, others)
        return np.array([scores[name].value for name in others])

    rest = of_samples(points, one_by_one, workers)
    if not compiled:
        return rest
    places = [COMPILED.index(name) for name in compiled]
    columns = [[*compiled, *others].index(name) for name in names]

    def of_block(weights: Floats) -> Floats:
        values = _compiled(points, settings, places, weights)[:, places]
        if others:
            values = np.concatenate([values, rest(weights)], axis=1)
        return np.asarray(values[:, columns])

    return of_block


def _compiled(
    points: Forecasts, settings: SampleSettings, places: Sequence[int], multiplicity: Floats
) -> Floats:
    """Compiled scores of samples, (n_samples, 7); only the columns `places` are computed."""
    from calibration.scores.kernels.samples import N_SCORES, Atoms, Points, score_samples

    counted = np.ones(points.p.size)
    if settings.extremes is Extremes.LEAVE_OUT:
        counted[(points.p < settings.clip) | (points.p > 1 - settings.clip)] = 0.0
    ranking = verdict_ranking(points)
    scores = np.empty((len(multiplicity), N_SCORES))
    wanted = np.zeros(N_SCORES, dtype=np.bool_)
    fits = {COMPILED.index(name) for name in COMPILED if name.startswith("calibration")}
    start = np.zeros(2)
    if not fits.isdisjoint(places):
        start = line_start(points, settings).get("line", start)
    wanted[places] = True
    score_samples(
        Points(
            points.p,
            clipped_logits(points, settings.clip),
            counted,
            equal_width_starts(points.sample(), settings.n_bins),
            ranking.order,
            ranking.last,
            ranking.counts_false,
            points.first,
        ),
        Atoms(points.response, points.weights, points.y),
        start,
        np.ascontiguousarray(multiplicity, dtype=np.float64),
        wanted,
        scores,
    )
    return scores
