"""Slope and intercept of logistic calibration, and errors of a flexible calibration curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Estimate, ScoreStatus, undefined
from calibration.forecasts import (
    LOGIT_CLIP,
    Extremes,
    Forecasts,
    Sample,
    clipped_logits,
    clipped_weight,
    logit_clip,
    pooled,
    was_clipped,
)
from calibration.intervals import DeviationScores, IntervalMethod, Scale
from calibration.labels import LabelPolicy
from calibration.scores.cells import Cells, neighbors
from calibration.scores.definition import SampleSettings, ScoreDefinition
from calibration.scores.logistic import (
    ROWS_AT_ONCE,
    LogisticFit,
    combined,
    fit_logistic,
    sigmoid,
)
from calibration.scores.mesh_sums import LAGRANGE, Mesh, mesh_of
from calibration.validation import Floats, member_named

_LINE = ("calibration_slope", "calibration_intercept", "calibration_in_the_large")

KNOT_QUANTILES = (0.05, 0.35, 0.65, 0.95)
"""Quantiles of the atoms at the knots of the flexible curve (Harrell 2015, section 2.4.6)."""

MOST_POINTS = 1 << 17
"""Largest number of distinct probabilities for which logistic regressions do not use a mesh."""

N_CELLS = 1 << 15
"""Number of cells of that mesh of logits."""


@dataclass(frozen=True)
class CalibrationLine:
    """Logistic regression of labels on logit p; undefined numbers are nan.

    Attributes:
        slope: b of logit P(true) = a + b logit p; 1 if calibrated, below 1 if p is too extreme.
        intercept: a of the same fit; 0 if calibrated.
        in_the_large: a of logit P(true) = a + logit p; above 0 if p is too low on average.
        status: status of slope and intercept: ``ok``, ``clipped``, ``one_class``,
            ``constant_forecast`` or ``separated``.
        in_the_large_status: ``ok``, ``clipped`` or ``one_class``.
        n_clipped: number of atoms whose p is outside [clip, 1 - clip], moved or left out.
    """

    slope: float
    intercept: float
    in_the_large: float
    status: ScoreStatus
    in_the_large_status: ScoreStatus
    n_clipped: float = 0


def calibration_line(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    clip: float = LOGIT_CLIP,
    extremes: str = Extremes.CLIP,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> CalibrationLine:
    """Slope and intercept of the logistic regression of labels on logit p.

    The regression is from Cox 1958; Van Calster et al. 2016 interpret the three numbers.
    Probabilities of 0 and 1 have no logit. If they are moved, the slope depends on `clip`; if they
    are left out, the slope does not describe them. `n_clipped` is their number.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        clip: p is moved into [clip, 1 - clip] before its logit is taken.
        extremes: treatment of p outside that range: ``clip`` or ``leave-out``.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, no labeled atom, or a bad setting.
    """
    settings = SampleSettings(
        clip=logit_clip(clip), extremes=member_named(Extremes, extremes, "extremes")
    )
    sample = pooled(p, y, weights, unlabeled)
    slope, intercept, large = line_scores(sample, settings)
    return CalibrationLine(
        slope=slope.value,
        intercept=intercept.value,
        in_the_large=large.value,
        status=slope.status,
        in_the_large_status=large.status,
        n_clipped=clipped_weight(sample, settings.clip),
    )


LineScores = tuple[Estimate, Estimate, Estimate]
"""Slope, intercept, and the intercept if the slope is 1."""


def line_scores(sample: Sample, settings: SampleSettings) -> LineScores:
    """Calibration slope, intercept and calibration in the large of a sample."""
    start = line_start(sample.forecasts, settings)
    return _line_scores(settings.with_logits(sample), settings.clip, start)


def line_start(points: Forecasts, settings: SampleSettings) -> dict[str, Floats]:
    """Initial coefficients of fits of a line to samples, by name: the coefficients of the data."""

    def build() -> dict[str, Floats]:
        line = _line_scores(_whole(points, settings), settings.clip, {})
        slope, intercept, large = (each.value for each in line)
        start = {} if np.isnan(large) else {"large": np.array([large])}
        if not np.isnan(slope):
            start["line"] = np.array([intercept, slope])
        return start

    return points.remember(("line start", settings), build)


def _whole(points: Forecasts, settings: SampleSettings) -> Sample:
    """Sample of all data, without extremes if the settings leave them out."""
    return points.remember(
        ("whole", settings.clip, settings.extremes), lambda: settings.with_logits(points.sample())
    )


def _line_scores(sample: Sample, clip: float, start: dict[str, Floats]) -> LineScores:
    slope, intercept, in_the_large = _LINE
    if sample.has_one_class:
        no_slope, no_intercept, no_shift = (
            undefined(name, ScoreStatus.ONE_CLASS) for name in _LINE
        )
        return no_slope, no_intercept, no_shift
    status = was_clipped(sample, clip)
    rows = _rows(sample, clip)
    large = fit_logistic(
        rows.columns[:1],
        rows.weight,
        rows.true,
        offset=rows.columns[1],
        start=start.get("large"),
    )
    shift = Estimate(in_the_large, float(large.coefficients[0]), status=status)
    refused = None
    if sample.is_constant:
        refused = ScoreStatus.CONSTANT_FORECAST
    elif any(threshold_parts(sample)):
        refused = ScoreStatus.SEPARATED
    else:
        fit = fit_logistic(rows.columns, rows.weight, rows.true, start=start.get("line"))
        refused = None if fit.status is ScoreStatus.OK else fit.status
    if refused is not None:
        return undefined(slope, refused), undefined(intercept, refused), shift
    a, b = (float(value) for value in fit.coefficients)
    return Estimate(slope, b, status=status), Estimate(intercept, a, status=status), shift


def _curve_scores(sample: Sample, settings: SampleSettings) -> tuple[Estimate, ...]:
    """E90 (Austin and Steyerberg 2019): the 90% quantile of the distance from the curve."""
    sample = settings.with_logits(sample)
    curve, status = curve_of(sample, settings)
    if status not in (ScoreStatus.OK, ScoreStatus.CLIPPED):
        return (undefined("e90", status),)
    reach = weighted_quantile(np.abs(curve - sample.p), sample.weight, 0.9)
    return (Estimate("e90", reach, status=status),)


def curve_of(sample: Sample, settings: SampleSettings) -> tuple[Floats, ScoreStatus]:
    """Flexible curve of a sample at its points, (m,), with a status that explains nan.

    The curve is a logistic regression on a restricted cubic spline of logit p with four knots, at
    the 5, 35, 65 and 95% quantiles of the atoms of the data. If fewer than three knots differ, the
    regression is on logit p alone (Harrell 2015).
    """
    points, clip = sample.forecasts, settings.clip
    whole, start = _whole(points, settings), curve_start(points, settings)
    nothing = np.full(sample.p.size, np.nan)
    if sample.has_one_class:
        return nothing, ScoreStatus.ONE_CLASS
    fit = fit_curve(sample, whole, clip, start)
    if fit.status is not ScoreStatus.OK:
        return nothing, fit.status
    columns = _curve_columns(whole, clip, clipped_logits(sample.forecasts, clip), "points")
    columns = columns[: fit.coefficients.size]
    curve = np.empty_like(sample.p)
    for begin in range(0, curve.size, ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        curve[rows] = sigmoid(combined(fit.coefficients, columns[:, rows]))
    return curve, was_clipped(sample, clip)


def curve_start(points: Forecasts, settings: SampleSettings) -> Floats | None:
    """Coefficients of the data's flexible curve, at which fits to samples start, or None."""

    def build() -> Floats | None:
        whole = _whole(points, settings)
        if whole.has_one_class:
            return None
        fit = fit_curve(whole, whole, settings.clip)
        return fit.coefficients if fit.status is ScoreStatus.OK else None

    return points.remember(("curve start", settings), build)


def fit_curve(
    sample: Sample, whole: Sample, clip: float, start: Floats | None = None
) -> LogisticFit:
    """Fit a logistic regression on the spline of logit p with the knots of `whole`."""
    rows = _rows(sample, clip)
    kind = "points" if rows.weight is sample.weight else "mesh"
    columns = _curve_columns(whole, clip, rows.columns[1], kind)
    if sample.is_constant:
        columns = columns[:1]
    elif sample.present.size < columns.shape[0]:
        columns = columns[:2]
    if columns.shape[0] > 1 and any(threshold_parts(sample)):
        return LogisticFit(np.empty(0), ScoreStatus.SEPARATED)
    if start is not None and start.size != columns.shape[0]:
        start = None
    return fit_logistic(columns, rows.weight, rows.true, start=start)


def weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    """Smallest value at which the cumulative weight reaches a share, in (0, 1].

    Args:
        values: numbers, (m,).
        weight: their weights, (m,), at least 0.
        share: share of the weight.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    # Sums of weights are rounded: an atom that reaches the share exactly must be selected.
    index = np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))
    return float(values[order[index]])


def restricted_cubic_spline(x: Floats, knots: Floats) -> Floats:
    """Nonlinear columns of a cubic spline that is linear beyond its outer knots.

    Harrell 2015, section 2.4.5, scaled by the squared distance of the outer knots.

    Args:
        x: values (m,).
        knots: at least 3 knots, ascending.

    Returns:
        float64 (number of knots - 2, m).
    """
    last, before = knots[-1], knots[-2]
    beyond_last = np.maximum(x - last, 0) ** 3
    beyond_before = np.maximum(x - before, 0) ** 3
    columns = [
        np.maximum(x - knot, 0) ** 3
        - beyond_before * (last - knot) / (last - before)
        + beyond_last * (before - knot) / (last - before)
        for knot in knots[:-2]
    ]
    scaled: Floats = np.stack(columns) / (last - knots[0]) ** 2
    return scaled


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a logistic regression on logit p: the points of a sample, or a mesh of logits.

    Attributes:
        columns: float64 (2, r), ones and logits.
        weight: float64 (r,), weight of each row.
        true: float64 (r,), the part of each weight on true atoms.
    """

    columns: Floats
    weight: Floats
    true: Floats


def _rows(sample: Sample, clip: float) -> _Rows:
    """Rows of the regression: the points, or for many points a mesh with the same sums.

    The error of cubic interpolation with mesh width h is less than 0.03 h^4 times the fourth
    derivative. With h below 28/32768 that is 2e-14 times numbers of order 1.
    """
    points = sample.forecasts
    logits = clipped_logits(points, clip)
    if logits.size <= MOST_POINTS:
        columns = points.remember(("line", clip), lambda: np.stack([np.ones_like(logits), logits]))
        return _Rows(columns, sample.weight, sample.true)

    def build() -> tuple[Mesh, Floats]:
        width = (logits[-1] - logits[0]) / N_CELLS
        nodes = logits[0] + width * np.arange(-1, N_CELLS + 2)
        places = np.clip((logits - logits[0]) / width, 0, N_CELLS)
        return mesh_of(places, N_CELLS), np.stack([np.ones_like(nodes), nodes])

    mesh, columns = points.remember(("mesh", clip), build)
    return _Rows(
        columns, mesh.deposit(sample.weight, LAGRANGE), mesh.deposit(sample.true, LAGRANGE)
    )


def curve_columns(whole: Sample, clip: float) -> Floats:
    """Columns of the flexible curve at the points of a sample, (k, m), with the sample's knots."""
    return _curve_columns(whole, clip, clipped_logits(whole.forecasts, clip), "points")


def _curve_columns(whole: Sample, clip: float, logits: Floats, kind: str) -> Floats:
    """Columns of the flexible curve at logits: ones, logits, and those of the spline."""

    def build() -> Floats:
        line = np.stack([np.ones_like(logits), logits])
        reached = (whole.weight_below + whole.weight) / whole.total
        index = np.searchsorted(reached, np.asarray(KNOT_QUANTILES) - 1e-12)
        at_points = clipped_logits(whole.forecasts, clip)
        knots = np.unique(at_points[np.minimum(index, at_points.size - 1)])
        if knots.size < 3:
            return line
        return np.concatenate([line, restricted_cubic_spline(logits, knots)])

    # Data without extremes have different knots.
    return whole.forecasts.remember(("curve", clip, kind, whole.total), build)


def threshold_parts(sample: Sample) -> tuple[bool, bool]:
    """Return whether a threshold on p has all true atoms above it, and whether all below it.

    Atoms of either class may tie at the threshold. Both classes must have atoms.
    """
    true, false = np.flatnonzero(sample.true > 0), np.flatnonzero(sample.false > 0)
    return bool(true[0] >= false[-1]), bool(false[0] >= true[-1])


def _curve_deviations(points: Forecasts, settings: SampleSettings) -> DeviationScores | None:
    """Linearized deviations of the coefficients of the flexible curve."""
    coefficients, sample = curve_start(points, settings), _whole(points, settings)
    if coefficients is None:
        return None
    columns = curve_columns(sample, settings.clip)[: coefficients.size]
    calibrated = np.zeros(coefficients.size)
    if coefficients.size > 1:
        calibrated[1] = 1.0
    else:
        calibrated[0] = clipped_logits(points, settings.clip)[sample.present[0]]
    curve = sigmoid(coefficients @ columns)
    information = np.einsum("im,jm->ij", columns * (sample.weight * curve * (1 - curve)), columns)
    index = np.repeat(np.arange(points.p.size), points.sizes)
    counted = points.weights * (sample.weight > 0)[index]
    weight = points.response_sums(counted)
    residual = counted * (points.y - curve[index])
    gradient = np.stack(
        [points.response_sums(residual * column[index]) for column in columns], axis=1
    )
    influence = gradient @ np.linalg.pinv(information) * weight.sum()
    deviation = coefficients - calibrated
    groups = Cells(points, neighbors(points), counted)
    design = groups.mean_of(columns)

    # Use this curve instead of the groups' mean p, so that the distance is 0 without a shift.
    of_calibrated = sigmoid(calibrated @ design)

    def scores(shift: Floats) -> Floats:
        curves = sigmoid((calibrated + shift) @ design)
        distance = np.abs(curves - of_calibrated)
        order = np.argsort(distance, axis=-1)
        reached = np.cumsum(groups.weight[order], axis=-1)
        first_reached = (reached < 0.9 - 1e-9).sum(axis=-1)[..., np.newaxis]
        ranked = np.take_along_axis(distance, order, axis=-1)
        return np.take_along_axis(ranked, first_reached, -1)[..., 0]

    return DeviationScores(
        deviation, deviation, influence + weight[:, np.newaxis] * deviation, weight, scores, scores
    )


FAMILY = (
    *(
        ScoreDefinition(
            name=name,
            title=title,
            meaning=meaning,
            higher_is_better=None,
            scale=Scale.NUMBER,
            interval=IntervalMethod.JACKKNIFE,
            range=(-np.inf, np.inf),
            of_sample=line_scores,
            of_logits=True,
            usual=usual,
            column=title.lower(),
        )
        for name, title, meaning, usual in (
            (_LINE[0], "Slope", "slope of labels on logit p", 8),
            (_LINE[1], "Intercept", "intercept of that logistic fit", 9),
            (_LINE[2], "In the large", "intercept if the slope is 1", 0),
        )
    ),
    ScoreDefinition(
        name="e90",
        title="E90",
        meaning="90% quantile of the distance of p from a flexible calibration curve",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_sample=_curve_scores,
        deviations=_curve_deviations,
        of_logits=True,
    ),
)
