"""Measures of one method, each with its one interval over responses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from calibration.forecasts import Extremes, ScoreStatus
from calibration.intervals import (
    IntervalMethod,
    IntervalSettings,
    RatioEstimand,
    estimate_all,
)
from calibration.scores.coverage import coverage_warning
from calibration.scores.definition import JudgedClaims, ScoreDefinition
from calibration.scores.score_intervals import auroc_interval
from calibration.scores.table import score_table


@dataclass(frozen=True)
class EstimatedMeasure:
    """One measure of one method; nan where a number is not defined.

    Attributes:
        value: the measure.
        lower: lower end of its interval over responses.
        upper: its upper end.
        status: ``ok``, ``clipped``, or why there is no value.
        coverage: what intervals of this measure cover where that is not what they promise, as
            `coverage_warning` gives it; else nan.
    """

    value: float
    lower: float
    upper: float
    status: ScoreStatus
    coverage: float = math.nan


def estimate_measures(
    claims: JudgedClaims,
    measures: Sequence[ScoreDefinition],
    settings: IntervalSettings,
    extremes: Extremes = Extremes.CLIP,
) -> Mapping[str, EstimatedMeasure]:
    """Every measure of one method by name, with its interval; AUROC within folds if there are any.

    Args:
        claims: labelled claims of the method.
        measures: the measures.
        settings: how intervals are made.
        extremes: what becomes of p of 0 and 1 where a measure needs their logit.
    """
    found = {}
    for measure in measures:
        value, status = measure.value(claims, extremes)
        found[measure.name] = EstimatedMeasure(value, math.nan, math.nan, status)
    defined = [each for each in measures if math.isfinite(found[each.name].value)]
    for name, (lower, upper) in _intervals(claims, defined, settings, extremes).items():
        coverage = coverage_warning(name, len(claims.grouping.responses), settings.level)
        found[name] = replace(found[name], lower=lower, upper=upper, coverage=coverage)
    return found


def _intervals(
    claims: JudgedClaims,
    measures: Sequence[ScoreDefinition],
    settings: IntervalSettings,
    extremes: Extremes,
) -> dict[str, tuple[float, float]]:
    found = {}
    ratios = [each for each in measures if each.ratio is not None]
    estimands = tuple(RatioEstimand(each.name, each.sums(claims), each.scale) for each in ratios)
    if estimands:
        # The one interval that a score has, whatever the settings are for other estimands.
        for each in estimate_all(estimands, replace(settings, method=IntervalMethod.DELTA)):
            found[each.name] = (float(each.lower[0]), float(each.upper[0]))
    others = [each.name for each in measures if each.ratio is None]
    if "auroc" in others and claims.folds is not None:
        own = auroc_interval(
            claims.p, claims.y, claims.grouping, settings.level, folds=claims.folds
        )
        found["auroc"] = own.lower, own.upper
        others.remove("auroc")
    if others:
        for row in score_table(
            claims.p,
            claims.y,
            responses=claims.grouping.index,
            scores=others,
            n_bootstrap=settings.n_bootstrap,
            seed=settings.seed,
            level=settings.level,
            extremes=extremes,
        ):
            found[row.score] = row.interval
    return found
