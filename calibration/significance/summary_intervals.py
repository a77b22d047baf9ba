"""Intervals of the measures of a summary, over responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.grouping import Grouping, group_by_response
from calibration.intervals import (
    IntervalMethod,
    IntervalSettings,
    RatioEstimand,
    RatioSums,
    estimate_all,
)
from calibration.labels import LabelPolicy, apply_policy
from calibration.scores.definition import JudgedClaims
from calibration.scores.measures import DECISION_TOLERANCE
from calibration.scores.pointwise import LOSSES
from calibration.scores.registry import REGISTRY, response_k
from calibration.scores.summary import grouped_measures
from calibration.validation import Floats, check_lengths, label_array, probability_array
from factormodels.io.long_columns import piecewise

_MEANS = (
    *("precision", "f1_at_k", "expected_precision"),
    *("supported", "contradicted", "undecided", "entropy", "mean_surprisal"),
)
_POOLED = ("precision_mae", "f1", "accuracy", "brier", "log_loss")

WITH_INTERVALS = (*_MEANS, "human_precision", *_POOLED)
"""Measures of `calibration.scores.summary.Summary` that have an interval."""


def summary_intervals(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    unlabelled: str = LabelPolicy.EXCLUDE,
    k: str | float = "median",
    level: float = 0.95,
) -> dict[str, tuple[float, float]]:
    """(lower, upper) of every measure of `summarise` that has an interval, by name.

    What varies is the response: its claims are dependent. An end is nan where the measure is not
    defined or infinite, and where `estimate_all` gives none. No measure is negative, and so no end
    is: a linearised interval that reaches below 0 is cut there, which costs no coverage.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), as for `summarise`; None if there are none.
        responses: response ids (n,).
        unlabelled: what atoms without a label count as, as for `summarise`.
        k: how the K of F1@K is chosen.
        level: nominal coverage.

    Raises:
        InputError: as `summarise`.
    """
    probabilities = probability_array(p)
    labels = np.full(probabilities.size, np.nan) if y is None else label_array(y)
    grouping = group_by_response(responses)
    check_lengths(p=probabilities.size, y=labels.size, responses=grouping.index.size)
    intervals = _intervals(_means(probabilities, grouping, k), level)
    scored = apply_policy(probabilities, labels, policy=unlabelled)
    if scored.p.size:
        of_scored = grouping if scored.kept.all() else grouping.of(scored.kept)
        intervals |= _intervals(_scores(scored.p, scored.y, of_scored), level)
    return {name: intervals.get(name, (np.nan, np.nan)) for name in WITH_INTERVALS}


def _means(p: Floats, grouping: Grouping, k: str | float) -> Iterator[RatioEstimand]:
    own = grouped_measures(p, grouping, k, DECISION_TOLERANCE)
    return (_mean(name, getattr(own, name)) for name in _MEANS)


def _scores(p: Floats, y: Floats, grouping: Grouping) -> Iterator[RatioEstimand]:
    # The K of F1@K is asked for by the measures over all atoms alone.
    judged = JudgedClaims(p, y, grouping, response_k(1, grouping))
    yield _mean("human_precision", grouping.means(y))
    for name in _POOLED:
        if not (name == "log_loss" and _infinite(p, y)):
            yield RatioEstimand(name, REGISTRY[name].sums(judged), REGISTRY[name].scale)


def _infinite(p: Floats, y: Floats) -> bool:
    """Whether the log loss of some claim is."""

    def infinite(p: Floats, y: Floats) -> NDArray[np.bool_]:
        if_true, if_false = LOSSES["log_loss"](p)
        return np.isinf(np.where(y == 1, if_true, if_false))

    return bool(piecewise(infinite, p, y).any())


def _mean(name: str, values: Any) -> RatioEstimand:
    column = piecewise(lambda own: own.astype(np.float64)[:, np.newaxis], values)
    ones = piecewise(np.ones_like, column)
    return RatioEstimand(name, RatioSums(column, ones), REGISTRY[name].scale)


def _intervals(ratios: Iterator[RatioEstimand], level: float) -> dict[str, tuple[float, float]]:
    settings = IntervalSettings(IntervalMethod.DELTA, level=level)
    found = {}
    # One after the other: each has sums of every response.
    for ratio in ratios:
        if np.isfinite(ratio.sums.numerator).all():
            (each,) = estimate_all([ratio], settings)
            found[each.name] = (float(np.maximum(each.lower[0], 0.0)), float(each.upper[0]))
    return found
