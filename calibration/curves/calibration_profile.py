"""Calibration profile: what an annotated calibration plot shows of one method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.curves.histograms import LabelCurve, LabelHistogram, about, label_histogram
from calibration.curves.reliability_bins import ReliabilityBins, reliability_bins
from calibration.estimate import Estimate, ScoreStatus
from calibration.forecasts import LOGIT_CLIP, Sample, forecasts, logit_clip, logits_of
from calibration.intervals import IntervalSettings, of_samples, redrawn_interval
from calibration.labels import LabelPolicy
from calibration.scores.definition import SampleSettings
from calibration.scores.estimates import estimates_of, judged_claims, labelled_claims
from calibration.scores.families.logistic import curve_of, line_scores
from calibration.scores.logistic import sigmoid
from calibration.scores.registry import scores_named
from calibration.validation import Floats

ANNOTATED = ("brier", "auroc", "calibration_intercept", "calibration_slope", "e90")
"""Scores that are written on the plot unless it is told which."""

_GRID = 101


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationProfile(LabelCurve):
    """Curves of labels on p with their band, groups, and scores of one method.

    Attributes:
        at: float64 (g,), ascending probabilities from the least to the largest p.
        curve: float64 (g,), flexible curve: share of true atoms; nan where `status` says why.
        lower: float64 (g,), lower end of its pointwise band over responses.
        upper: float64 (g,), upper end.
        line: float64 (g,), logistic curve of slope and intercept; nan where there is none.
        bins: groups of about equal size.
        histogram: p of true and of false atoms.
        scores: scores with their intervals, by name.
        status: of the curve.
        n_atoms: number of labelled atoms.
    """

    columns: ClassVar = ("at", "curve", "lower", "upper", "line")

    at: Floats
    curve: Floats
    lower: Floats
    upper: Floats
    line: Floats
    bins: ReliabilityBins
    histogram: LabelHistogram
    scores: Mapping[str, Estimate]
    status: ScoreStatus
    n_atoms: int


def calibration_profile(
    p: ArrayLike,
    y: Any,
    *,
    responses: Any = None,
    scores: Sequence[str] = ANNOTATED,
    n_bins: int = 10,
    clip: float = LOGIT_CLIP,
    n_bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> CalibrationProfile:
    """What ``val.prob`` of R's rms and CalibrationCurves show, with responses redrawn whole.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        responses: response ids (n,), or None if atoms are independent.
        scores: names of the scores that are written on the plot.
        n_bins: number of groups.
        clip: p is moved into [clip, 1 - clip] where its logit is needed.
        n_bootstrap: number of replicates of the band.
        seed: seed of the replicates.
        level: nominal coverage, between 0 and 1.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, or a bad setting.
    """
    settings = SampleSettings(clip=logit_clip(clip))
    points = forecasts(p, y, responses=responses, unlabelled=unlabelled)
    intervals = IntervalSettings(n_bootstrap=n_bootstrap, seed=seed, level=level)
    whole = points.sample()
    at = np.linspace(points.p[0], points.p[-1], _GRID)

    def curve(sample: Sample) -> Floats:
        values, _ = curve_of(sample, settings)
        # Between the points that were drawn; the others have no curve of their own.
        drawn = sample.present
        return np.interp(at, points.p[drawn], values[drawn])

    lower, upper = np.full((2, at.size), np.nan)
    if points.n_responses > 1:
        lower, upper = redrawn_interval(of_samples(points, curve), points.n_responses, intervals)
    slope, intercept, _ = line_scores(whole, settings)
    claims = labelled_claims(judged_claims(p, y, responses), unlabelled)
    how: dict[str, Any] = {
        "responses": responses, "n_bootstrap": n_bootstrap, "seed": seed, "level": level,
        "unlabelled": unlabelled,
    }  # fmt: skip
    return CalibrationProfile(
        at=at,
        curve=curve(whole),
        lower=lower,
        upper=upper,
        line=sigmoid(intercept.value + slope.value * logits_of(at, settings.clip)),
        bins=reliability_bins(p, y, n_bins=n_bins, strategy="quantile", **how),
        histogram=label_histogram(p, y, unlabelled=unlabelled),
        scores={}
        if claims is None
        else estimates_of(claims, scores_named(scores), intervals, settings),
        status=curve_of(whole, settings)[1],
        level=level,
        **about(points),
    )
