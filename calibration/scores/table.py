"""The table of scores: every score of a set of forecasts, each with its intervals, as tidy rows."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.forecasts import (
    LOGIT_CLIP,
    Estimate,
    Sample,
    Status,
    forecasts,
    logit_clip,
)
from calibration.intervals import (
    basic_interval,
    bca_interval,
    jackknife_weights,
    of_samples,
    percentile_interval,
    replicates,
    response_weights,
)
from calibration.scores.calibration_error import calibration_errors
from calibration.scores.decomposition import corp_scores, murphy_scores
from calibration.scores.goodness_of_fit import hosmer_lemeshow_scores, spiegelhalter_scores
from calibration.scores.logistic_calibration import (
    fit_curve,
    flexible_scores,
    line_scores,
)
from calibration.scores.proper import proper_scores
from calibration.scores.ranking import ranking_scores
from calibration.scores.selective import selective_scores
from calibration.scores.smooth import smooth_scores
from calibration.validation import Floats, open_interval, whole_number
from factormodels.errors import InputError


@dataclass(frozen=True)
class ScoreRow:
    """One score of one set of forecasts; nan where a number is not defined.

    Attributes:
        score: name of the score, one of `SCORES`.
        value: the score.
        status: ``ok``; ``clipped`` if probabilities of 0 or 1 were moved to take their logit;
            ``infinite``; or why there is no value: ``one_class``, ``constant_forecast``,
            ``separated``, ``no_variance``, ``too_few_atoms``.
        standard_error: standard deviation of the replicates.
        percentile_lower: lower end of the percentile interval.
        percentile_upper: upper end of the percentile interval.
        basic_lower: lower end of the basic interval.
        basic_upper: upper end of the basic interval.
        bca_lower: lower end of the BCa interval; nan unless it was asked for.
        bca_upper: upper end of the BCa interval; nan unless it was asked for.
        level: nominal coverage of the intervals.
        resampled: what the bootstrap draws: ``responses``, or ``atoms`` if those were not given.
        n_atoms: number of atoms.
        n_responses: number of responses; the number of atoms if those were not given.
        n_bootstrap: number of bootstrap replicates.
        n_undefined: how many replicates had no finite value; intervals are of the others.
    """

    score: str
    value: float
    status: str
    standard_error: float
    percentile_lower: float
    percentile_upper: float
    basic_lower: float
    basic_upper: float
    bca_lower: float
    bca_upper: float
    level: float
    resampled: str
    n_atoms: int
    n_responses: int
    n_bootstrap: int
    n_undefined: int


@dataclass(frozen=True, eq=False)
class _Context:
    """What families of scores are computed with, beside the sample.

    Attributes:
        whole: the data, of which samples are replicates.
        n_bins: number of bins.
        clip: bound on p before its logit is taken.
        line_start: where logistic fits of a line begin, by name.
        curve_start: coefficients with which the fit of the curve begins, or None.
    """

    whole: Sample
    n_bins: int
    clip: float
    line_start: dict[str, Floats]
    curve_start: Floats | None


Family = Callable[[Sample, _Context], dict[str, Estimate]]

_FAMILIES: tuple[tuple[Family, Mapping[str, str]], ...] = (
    (
        lambda sample, _: proper_scores(sample),
        {
            "brier": "mean of (p - y)^2",
            "log_loss": "mean of -ln of the probability of the label, in nats",
            "spherical": "mean of one minus the spherical score",
        },
    ),
    (
        lambda sample, context: murphy_scores(sample, context.n_bins),
        {
            "murphy_reliability": "Brier score, part due to miscalibration of bins",
            "murphy_resolution": "Brier score, part that bins with other shares take off",
            "murphy_uncertainty": "Brier score of the base rate",
            "murphy_within_bin": "Brier score, part due to p that differ within bins",
            "murphy_reliability_corrected": "the same, corrected for bias",
            "murphy_resolution_corrected": "the same, corrected for bias",
            "murphy_uncertainty_corrected": "the same, corrected for bias",
        },
    ),
    (
        lambda sample, _: corp_scores(sample),
        {
            "corp_brier_miscalibration": "Brier score that isotonic recalibration takes off",
            "corp_brier_discrimination": "Brier score of the base rate less the recalibrated one",
            "corp_brier_uncertainty": "Brier score of the base rate",
            "corp_log_loss_miscalibration": "log loss that isotonic recalibration takes off",
            "corp_log_loss_discrimination": "log loss of the base rate less the recalibrated one",
            "corp_log_loss_uncertainty": "log loss of the base rate",
        },
    ),
    (
        lambda sample, context: calibration_errors(sample, context.n_bins),
        {
            "ece": "expected calibration error, bins of equal width",
            "ece_equal_mass": "expected calibration error, bins of equal weight",
            "ece_debiased": "the same, less the bias of a normal share",
            "ece_sweep": "expected calibration error, as many bins as keep shares ascending",
            "ece_classwise": "mean over classes of the error of their probability",
            "ece_confidence": "expected calibration error of the verdict's confidence",
            "maximum_calibration_error": "largest error over bins of equal width",
            "rms_calibration_error": "root mean square error, bins of equal weight",
            "rms_calibration_error_debiased": "the same, less the variance of shares",
        },
    ),
    (
        lambda sample, _: smooth_scores(sample),
        {"smooth_ece": "calibration error smoothed by a kernel as wide as itself"},
    ),
    (
        lambda sample, context: line_scores(sample, context.clip, context.line_start),
        {
            "calibration_slope": "slope of labels on logit p",
            "calibration_intercept": "intercept of the same fit",
            "calibration_in_the_large": "intercept if the slope is 1",
        },
    ),
    (
        lambda sample, context: flexible_scores(
            sample, context.whole, context.clip, context.curve_start
        ),
        {
            "ici": "mean distance of p from a flexible calibration curve",
            "e50": "median of that distance",
            "e90": "90 % quantile of that distance",
            "emax": "largest such distance",
        },
    ),
    (
        lambda sample, _: spiegelhalter_scores(sample),
        {
            "spiegelhalter_z": "Spiegelhalter's Z, atoms independent",
            "spiegelhalter_p": "its two-sided p-value",
        },
    ),
    (
        lambda sample, context: hosmer_lemeshow_scores(sample, context.n_bins),
        {
            "hosmer_lemeshow": "Hosmer-Lemeshow chi squared, atoms independent",
            "hosmer_lemeshow_p": "its p-value",
        },
    ),
    (
        lambda sample, _: ranking_scores(sample),
        {
            "auroc": "area under the ROC curve",
            "auprc": "average precision",
        },
    ),
    (
        lambda sample, _: selective_scores(sample),
        {
            "aurc": "area under the risk-coverage curve of verdicts",
            "excess_aurc": "the same, less the least that its errors allow",
            "aurc_claims": "area under the risk-coverage curve of claims kept by p",
            "excess_aurc_claims": "the same, less the least that its false claims allow",
        },
    ),
)

SCORES: Mapping[str, str] = {
    name: meaning for _, meanings in _FAMILIES for name, meaning in meanings.items()
}
"""What each score of a table means, by its name, in the order of the rows."""


def score_table(
    p: ArrayLike,
    y: Any,
    weights: ArrayLike | None = None,
    responses: Any = None,
    n_bootstrap: int = 1000,
    seed: int = 0,
    *,
    scores: Sequence[str] | None = None,
    level: float = 0.95,
    n_bins: int = 10,
    clip: float = LOGIT_CLIP,
    bca: bool = False,
    workers: int | None = None,
) -> tuple[ScoreRow, ...]:
    """Return every score of a set of forecasts, with intervals of a bootstrap over responses.

    A score that is not defined has a nan and a status that says why; it is no error.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), True or False; `apply_policy` decides first about unlabelled atoms.
        weights: how many atoms each counts as, (n,), or None for one each.
        responses: response ids (n,); without them the bootstrap draws atoms, and its intervals
            are too short where atoms of a response are alike.
        n_bootstrap: number of bootstrap replicates; 0 for no intervals.
        seed: seed of the bootstrap.
        scores: names of `SCORES`, or None for all of them.
        level: nominal coverage of the intervals, between 0 and 1.
        n_bins: number of bins, and of the groups of the Hosmer-Lemeshow test.
        clip: p is moved into [clip, 1 - clip] where a score needs its logit.
        bca: whether to give BCa intervals too, which take up to 100 more evaluations.
        workers: number of threads, or None for one per processor, 4 at most. The numbers do not
            depend on it.

    Raises:
        InputError: for bad arrays, lengths that differ, an unlabelled atom, an unknown score, or
            a bad setting.
    """
    points = forecasts(p, y, weights, responses)
    names = _chosen(scores)
    n_bootstrap = whole_number(n_bootstrap, "n_bootstrap", 0)
    seed = whole_number(seed, "seed", 0)
    level = open_interval(level, "level", 0, 1)
    n_bins = whole_number(n_bins, "n_bins", 1)
    clip = logit_clip(clip)
    workers = min(os.cpu_count() or 1, 4) if workers is None else workers
    workers = whole_number(workers, "workers", 1)
    families = [family for family, meanings in _FAMILIES if not meanings.keys().isdisjoint(names)]

    whole = points.sample()
    context = _Context(whole, n_bins, clip, {}, None)
    estimates: dict[str, Estimate] = {}
    for family in families:
        estimates |= family(whole, context)
    context = _warm(context, estimates)

    def values(sample: Sample) -> Floats:
        found: dict[str, Estimate] = {}
        for family in families:
            found |= family(sample, context)
        return np.array([found[name].value for name in names])

    drawn, left_out = np.empty((0, len(names))), np.empty((0, len(names)))
    if n_bootstrap and points.n_responses > 1:
        statistic = of_samples(points, values, workers)
        drawn = replicates(statistic, response_weights(points.n_responses, n_bootstrap, seed))
        if bca:
            left_out = replicates(statistic, jackknife_weights(points.n_responses, seed))
    value = np.array([estimates[name].value for name in names])
    ends = {
        "percentile": percentile_interval(drawn, level),
        "basic": basic_interval(value, drawn, level),
        "bca": bca_interval(value, drawn, left_out, level),
    }
    rows = []
    for column, name in enumerate(names):
        finite = drawn[np.isfinite(drawn[:, column]), column]
        known = math.isfinite(value[column]) and finite.size > 0
        rows.append(
            ScoreRow(
                score=name,
                value=estimates[name].value,
                status=str(estimates[name].status),
                standard_error=float(finite.std(ddof=1)) if known and finite.size > 1 else math.nan,
                **{
                    f"{method}_{side}": float(end[column]) if known else math.nan
                    for method, pair in ends.items()
                    for side, end in zip(("lower", "upper"), pair, strict=True)
                },
                level=level,
                resampled="responses" if points.clustered else "atoms",
                n_atoms=points.y.size,
                n_responses=points.n_responses,
                n_bootstrap=n_bootstrap,
                n_undefined=len(drawn) - finite.size,
            )
        )
    return tuple(rows)


def _chosen(scores: Sequence[str] | None) -> tuple[str, ...]:
    if scores is None:
        return tuple(SCORES)
    if isinstance(scores, str):
        raise InputError(f"scores is the text {scores!r}; give a list of names")
    for name in scores:
        if name not in SCORES:
            raise InputError(f"scores has {name!r}; choose some of {', '.join(SCORES)}")
    return tuple(dict.fromkeys(scores))


def _warm(context: _Context, estimates: Mapping[str, Estimate]) -> _Context:
    """Return the context in which fits to replicates begin where the fit to the data ended."""
    line_start = {}
    large = estimates.get("calibration_in_the_large")
    if large is not None and math.isfinite(large.value):
        line_start["large"] = np.array([large.value])
        slope = estimates["calibration_slope"]
        if math.isfinite(slope.value):
            intercept = estimates["calibration_intercept"].value
            line_start["line"] = np.array([intercept, slope.value])
    curve_start = None
    if "ici" in estimates and math.isfinite(estimates["ici"].value):
        fit = fit_curve(context.whole, context.whole, context.clip)
        curve_start = fit.coefficients if fit.status is Status.OK else None
    return _Context(context.whole, context.n_bins, context.clip, line_start, curve_start)
