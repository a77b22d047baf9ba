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
    ScoreStatus,
    forecasts,
    logit_clip,
)
from calibration.intervals import (
    IntervalMethod,
    basic_interval,
    bca_interval,
    jackknife_weights,
    of_samples,
    percentile_interval,
    replicates,
    response_weights,
)
from calibration.labels import LabelPolicy
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
from calibration.scores.registry import REGISTRY, interval_method
from calibration.scores.selective import selective_scores
from calibration.scores.smooth import smooth_scores
from calibration.tabular import TableOf
from calibration.validation import Floats, open_interval, whole_number
from factormodels.errors import InputError

TABLE_METHODS = (IntervalMethod.PERCENTILE, IntervalMethod.BASIC, IntervalMethod.BCA)
"""Methods of the intervals that a row can have."""


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
        n_unlabelled: number of atoms that had no label.
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
    n_unlabelled: int = 0

    @property
    def method(self) -> str:
        """The method of `interval`, as `calibration.scores.registry` prefers it for the score."""
        return str(interval_method(self.score, TABLE_METHODS))

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the score's interval, nan where there is none."""
        lower, upper = (getattr(self, f"{self.method}_{end}") for end in ("lower", "upper"))
        return lower, upper


class ScoreTable(TableOf[ScoreRow]):
    """Rows of scores, a tuple of `ScoreRow`."""

    __slots__ = ()


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

_FAMILIES: tuple[tuple[Family, tuple[str, ...]], ...] = (
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
        lambda sample, context: line_scores(sample, context.clip, context.line_start),
        (
            "calibration_slope",
            "calibration_intercept",
            "calibration_in_the_large",
        ),
    ),
    (
        lambda sample, context: flexible_scores(
            sample, context.whole, context.clip, context.curve_start
        ),
        (
            "ici",
            "e50",
            "e90",
            "emax",
        ),
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

SCORES: Mapping[str, str] = {
    name: REGISTRY[name].meaning for _, names in _FAMILIES for name in names
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
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> ScoreTable:
    """Every score of a set of forecasts, with intervals of a bootstrap over responses.

    A score that is not defined has a nan and a status that says why; it is no error.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), True or False, None where unlabelled.
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
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, an unknown score, or
            a bad setting.
    """
    points = forecasts(p, y, weights, responses, unlabelled)
    names = _chosen(scores)
    n_bootstrap = whole_number(n_bootstrap, "n_bootstrap", 0)
    seed = whole_number(seed, "seed", 0)
    level = open_interval(level, "level", 0, 1)
    n_bins = whole_number(n_bins, "n_bins", 1)
    clip = logit_clip(clip)
    workers = min(os.cpu_count() or 1, 4) if workers is None else workers
    workers = whole_number(workers, "workers", 1)
    families = [family for family, own in _FAMILIES if not set(own).isdisjoint(names)]

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
                n_unlabelled=points.n_unlabelled,
            )
        )
    return ScoreTable(rows)


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
    """Context in which fits to replicates begin where the fit to the data ended."""
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
        curve_start = fit.coefficients if fit.status is ScoreStatus.OK else None
    return _Context(context.whole, context.n_bins, context.clip, line_start, curve_start)
