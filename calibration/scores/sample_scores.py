"""Families of scores: what one pass over a sample of forecasts gives, and its names."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibration.forecasts import (
    LOGIT_CLIP,
    Estimate,
    Extremes,
    Forecasts,
    Sample,
    ScoreStatus,
    without_extremes,
)
from calibration.scores.miscalibration.calibration_error import calibration_errors
from calibration.scores.miscalibration.decomposition import corp_scores, murphy_scores
from calibration.scores.miscalibration.goodness_of_fit import (
    hosmer_lemeshow_scores,
    spiegelhalter_scores,
)
from calibration.scores.miscalibration.logistic_calibration import (
    Smoother,
    fit_curve,
    flexible_scores,
    line_scores,
)
from calibration.scores.miscalibration.smooth import smooth_scores
from calibration.scores.pointwise import proper_scores
from calibration.scores.ranking import ranking_scores
from calibration.scores.selective import selective_scores
from calibration.validation import Floats

_LINE_SCORES = ("calibration_slope", "calibration_intercept", "calibration_in_the_large")
_CURVE_SCORES = ("ici", "e50", "e90", "emax")


@dataclass(frozen=True, eq=False)
class ScoreContext:
    """What families of scores are computed with, beside the sample.

    Attributes:
        whole: the data, of which samples are replicates.
        n_bins: number of bins.
        clip: bound on p before its logit is taken.
        line_start: where logistic fits of a line begin, by name.
        curve_start: coefficients with which the fit of the curve begins, or None.
        extremes: what becomes of p outside [clip, 1 - clip] where a score needs its logit.
        smoother: how the flexible curve is fitted.
    """

    whole: Sample
    n_bins: int
    clip: float
    line_start: dict[str, Floats]
    curve_start: Floats | None
    extremes: Extremes = Extremes.CLIP
    smoother: Smoother = Smoother.SPLINE

    @property
    def logit_scores(self) -> frozenset[str]:
        """Names of the scores that take logits."""
        curved = self.smoother is Smoother.SPLINE
        return frozenset((*_LINE_SCORES, *(_CURVE_SCORES if curved else ())))

    def with_logits(self, sample: Sample) -> Sample:
        """The atoms of a sample that scores of logits are taken of."""
        if self.extremes is Extremes.LEAVE_OUT:
            return without_extremes(sample, self.clip)
        return sample

    def curved(self, sample: Sample) -> Sample:
        """The atoms of a sample that the flexible curve is fitted to."""
        return sample if self.smoother is Smoother.LOESS else self.with_logits(sample)


ScoreFamily = Callable[[Sample, ScoreContext], dict[str, Estimate]]

FAMILIES: tuple[tuple[ScoreFamily, tuple[str, ...]], ...] = (
    (
        lambda sample, _: proper_scores(sample),
        (
            "brier",
            "log_loss",
            "spherical",
        ),
    ),
    (
        lambda sample, context: murphy_scores(sample, context.n_bins),
        (
            "murphy_reliability",
            "murphy_resolution",
            "murphy_uncertainty",
            "murphy_within_bin",
            "murphy_reliability_corrected",
            "murphy_resolution_corrected",
            "murphy_uncertainty_corrected",
        ),
    ),
    (
        lambda sample, _: corp_scores(sample),
        (
            "corp_brier_miscalibration",
            "corp_brier_discrimination",
            "corp_brier_uncertainty",
            "corp_log_loss_miscalibration",
            "corp_log_loss_discrimination",
            "corp_log_loss_uncertainty",
        ),
    ),
    (
        lambda sample, context: calibration_errors(sample, context.n_bins),
        (
            "ece",
            "ece_equal_mass",
            "ece_debiased",
            "ece_sweep",
            "ece_classwise",
            "ece_confidence",
            "maximum_calibration_error",
            "rms_calibration_error",
            "rms_calibration_error_debiased",
        ),
    ),
    (
        lambda sample, _: smooth_scores(sample),
        ("smooth_ece",),
    ),
    (
        lambda sample, context: line_scores(
            context.with_logits(sample), context.clip, context.line_start
        ),
        _LINE_SCORES,
    ),
    (
        lambda sample, context: flexible_scores(
            context.curved(sample),
            context.curved(context.whole),
            context.clip,
            context.curve_start,
            context.smoother,
        ),
        _CURVE_SCORES,
    ),
    (
        lambda sample, _: spiegelhalter_scores(sample),
        (
            "spiegelhalter_z",
            "spiegelhalter_p",
        ),
    ),
    (
        lambda sample, context: hosmer_lemeshow_scores(sample, context.n_bins),
        (
            "hosmer_lemeshow",
            "hosmer_lemeshow_p",
        ),
    ),
    (
        lambda sample, _: ranking_scores(sample),
        (
            "auroc",
            "auprc",
        ),
    ),
    (
        lambda sample, _: selective_scores(sample),
        (
            "aurc",
            "excess_aurc",
            "aurc_claims",
            "excess_aurc_claims",
        ),
    ),
)

SAMPLE_SCORES = tuple(name for _, names in FAMILIES for name in names)
"""Names of the scores that a sample has, family by family."""


def context_of(
    points: Forecasts,
    names: Collection[str],
    n_bins: int = 10,
    clip: float = LOGIT_CLIP,
    extremes: Extremes = Extremes.CLIP,
    smoother: Smoother = Smoother.SPLINE,
) -> ScoreContext:
    """What scores of samples of these forecasts are computed with.

    Fits to samples begin where the fit to the data ended, if these scores have fits.

    Args:
        points: the forecasts.
        names: names of the scores.
        n_bins: number of bins, and of the groups of the Hosmer-Lemeshow test.
        clip: p is moved into [clip, 1 - clip] where a score needs its logit.
        extremes: whether those outside are moved or left out.
        smoother: how the flexible curve is fitted.
    """
    whole = points.sample()
    context = ScoreContext(whole, n_bins, clip, {}, None, extremes, smoother)
    wanted = {*names}
    if wanted.intersection(_LINE_SCORES):
        line = line_scores(context.with_logits(whole), clip)
        context = replace(context, line_start=_line_start(line))
    curved = context.curved(whole)
    if wanted.intersection(_CURVE_SCORES) and not curved.has_one_class:
        fit = fit_curve(curved, curved, clip)
        if fit.status is ScoreStatus.OK:
            context = replace(context, curve_start=fit.coefficients)
    return context


def sample_scores(
    sample: Sample, context: ScoreContext, names: Collection[str]
) -> dict[str, Estimate]:
    """Scores of a sample, by name.

    Args:
        sample: the sample.
        context: as `context_of` gives it.
        names: some of `SAMPLE_SCORES`.
    """
    found: dict[str, Estimate] = {}
    for family, own in FAMILIES:
        if not set(own).isdisjoint(names):
            found |= family(sample, context)
    return {name: found[name] for name in names}


def _line_start(estimates: Mapping[str, Estimate]) -> dict[str, Floats]:
    start = {}
    large, slope = estimates["calibration_in_the_large"], estimates["calibration_slope"]
    if math.isfinite(large.value):
        start["large"] = np.array([large.value])
    if math.isfinite(slope.value):
        start["line"] = np.array([estimates["calibration_intercept"].value, slope.value])
    return start
