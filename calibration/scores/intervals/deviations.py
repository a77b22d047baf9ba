"""Scores that chance alone raises, as functions of deviations from calibration or the base rate.

`calibration.intervals.inversion` makes their intervals; here stands in which cells of p responses
deviate, and what each score makes of the deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calibration.forecasts import Forecasts, ScoreStatus, clipped_logits
from calibration.intervals import DeviationScores, Functional
from calibration.scores.measures import DECISION_TOLERANCE
from calibration.scores.miscalibration.binning import (
    bin_numbers,
    equal_mass_starts,
    equal_width_starts,
)
from calibration.scores.miscalibration.calibration_error import n_sweep_bins
from calibration.scores.miscalibration.loess import loess_matrix
from calibration.scores.miscalibration.logistic import sigmoid
from calibration.scores.miscalibration.logistic_calibration import (
    Smoother,
    curve_columns,
    fit_curve,
)
from calibration.scores.miscalibration.smooth import mesh_smoothing, smooth_errors, smooth_scores
from calibration.scores.pointwise import LOSSES
from calibration.scores.sample_scores import ScoreContext
from calibration.validation import Floats, Integers

MOST_GROUPS = 256
"""Isotonic regressions and curves are of so many groups of neighbouring p at most."""

_NEARLY_CERTAIN = 1e-12

_LEAST_CELLS, _MOST_CELLS = 64, 512


def _equal_width(points: Forecasts, context: ScoreContext) -> DeviationScores:
    cells = _Cells(points, _numbered(points, equal_width_starts(context.whole, context.n_bins)))

    def scores(deviation: Floats, of_population: bool) -> Floats:
        distance = deviation / cells.weight
        reliability = (deviation * distance).sum(axis=-1)
        noise = 0.0 if of_population else (cells.weight * cells.noise(distance)).sum(axis=-1)
        return np.stack(
            [
                np.abs(deviation).sum(axis=-1),
                np.abs(distance).max(axis=-1),
                reliability,
                reliability - noise,
            ],
            axis=-1,
        )

    return cells.from_calibration(
        partial(scores, of_population=False), partial(scores, of_population=True)
    )


def _equal_mass(points: Forecasts, context: ScoreContext) -> DeviationScores:
    cells = _Cells(points, _numbered(points, equal_mass_starts(context.whole, context.n_bins)))

    def scores(deviation: Floats, of_population: bool) -> Floats:
        from scipy.special import ndtr

        distance = deviation / cells.weight
        ece, squared = np.abs(deviation).sum(axis=-1), (deviation * distance).sum(axis=-1)
        debiased, squared_debiased = ece, squared
        if not of_population:
            atoms = cells.weight * cells.total
            variance = cells.noise(distance)
            squared_debiased = squared - (cells.weight * variance).sum(axis=-1)
            spread = np.sqrt(variance * (atoms - 1) / atoms)
            ratio = np.minimum(np.abs(distance) / np.maximum(spread, 1e-9), 40)
            folded = spread * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
            folded += np.abs(distance) * (1 - 2 * ndtr(-ratio))
            debiased = 2 * ece - (cells.weight * folded).sum(axis=-1)
        # Below 0 a debiased square tells samples apart that count as 0 all of them.
        roots = [np.sign(each) * np.sqrt(np.abs(each)) for each in (squared, squared_debiased)]
        return np.stack([ece, debiased, *roots], axis=-1)

    return cells.from_calibration(
        partial(scores, of_population=False), partial(scores, of_population=True)
    )


def _sweep(points: Forecasts, context: ScoreContext) -> DeviationScores:
    starts = equal_mass_starts(context.whole, n_sweep_bins(context.whole))
    return _Cells(points, _numbered(points, starts)).from_calibration(_mean_absolute)


def _classwise(points: Forecasts, context: ScoreContext) -> DeviationScores:
    true = _Cells(points, _numbered(points, equal_width_starts(context.whole, context.n_bins)))
    false = _Cells(points, bin_numbers(1 - points.p, context.n_bins))
    one, other = (each.from_calibration(_mean_absolute) for each in (true, false))
    from scipy.sparse import hstack

    deviation = np.concatenate([one.deviation, other.deviation]) / 2
    return DeviationScores(
        deviation,
        deviation,
        hstack([one.sums, other.sums]).tocsr() / 2,
        one.weight,
        one.statistic,
        one.population,
    )


def _confidence(points: Forecasts, context: ScoreContext) -> DeviationScores:
    supported = points.p > 0.5 + DECISION_TOLERANCE
    numbers = bin_numbers(np.where(supported, points.p, 1 - points.p), context.n_bins)
    # A verdict of false is right where the label is lower than p.
    return _Cells(points, numbers, sign=np.where(supported, 1.0, -1.0)).from_calibration(
        _mean_absolute
    )


def _smooth(points: Forecasts, context: ScoreContext) -> DeviationScores:
    return _on_mesh(points, _mesh_cells(context))


def _mesh_cells(context: ScoreContext) -> int:
    """Number of cells of at most a quarter of the bandwidth, which is the error."""
    value = smooth_scores(context.whole)["smooth_ece"].value
    wanted: int = 2 ** int(np.ceil(np.log2(4 / max(value, 1e-6))))
    return min(max(wanted, _LEAST_CELLS), _MOST_CELLS)


def _on_mesh(points: Forecasts, n_cells: int) -> DeviationScores:
    """Residuals on a mesh of so many cells."""
    place = points.p * n_cells
    below = np.minimum(place.astype(np.int64), n_cells - 1)
    share = place - below
    halves = [
        _residual_sums(points, number, n_cells + 1, points.p, part)
        for number, part in ((below, 1 - share), (below + 1, share))
    ]
    sums, smoothing = halves[0] + halves[1], mesh_smoothing(n_cells)

    def scores(deviation: Floats) -> Floats:
        return smooth_errors(deviation, smoothing)[..., np.newaxis]

    return _scores(points, sums, scores)


def _corp_calibration(points: Forecasts, _: ScoreContext) -> DeviationScores:
    cells = _Cells(points, _groups(points))

    def scores(deviation: Floats) -> Floats:
        return _isotonic_terms(cells.weight, cells.mean_p + deviation / cells.weight, cells.mean_p)

    return _isotonic_direction(cells.from_calibration(scores), cells.weight, cells.mean_p)


def _corp_discrimination(points: Forecasts, context: ScoreContext) -> DeviationScores:
    """Populations with the smooth curve of the data, whose isotonic fit is biased as theirs is."""
    cells, base_rate = _Cells(points, _groups(points)), context.whole.base_rate

    def scores(deviation: Floats) -> Floats:
        return _isotonic_terms(cells.weight, base_rate + deviation / cells.weight, None)

    found = cells.from_base_rate(base_rate, scores)
    whole = context.whole
    fit = None if whole.has_one_class else fit_curve(whole, whole, context.clip)
    if fit is None or fit.status is not ScoreStatus.OK:
        return _isotonic_direction(found, cells.weight, base_rate)
    columns = curve_columns(whole, context.clip)[: fit.coefficients.size]
    curve = sigmoid(fit.coefficients @ columns)
    # Discrimination is of the order of the mean square: half a share more of it is that share more
    # of the distance.
    squared = np.repeat((curve - base_rate) ** 2, points.sizes)
    mean = float((points.weights * squared).sum() / points.weights.sum())
    size = points.weights * (squared / max(mean, 1e-12) - 1) / 2
    return replace(
        found,
        direction=cells.weight * (cells.mean_of(curve) - base_rate),
        sums=cells.residuals(curve),
        size=points.response_sums(size),
    )


def _resolution(points: Forecasts, context: ScoreContext) -> DeviationScores:
    cells = _Cells(points, _numbered(points, equal_width_starts(context.whole, context.n_bins)))
    base_rate = context.whole.base_rate

    def scores(deviation: Floats, of_population: bool) -> Floats:
        centred = deviation - cells.weight * deviation.sum(axis=-1, keepdims=True)
        resolution = (centred**2 / cells.weight).sum(axis=-1)
        if of_population:
            return np.stack([resolution, resolution], axis=-1)
        observed = base_rate + deviation / cells.weight
        noise = (cells.weight * cells.noise_of(observed)).sum(axis=-1)
        mean = np.clip(base_rate + deviation.sum(axis=-1), 0, 1)
        of_base_rate = mean * (1 - mean) / max(cells.total - 1, 1.0)
        return np.stack([resolution, resolution + of_base_rate - noise], axis=-1)

    return cells.from_base_rate(
        base_rate, partial(scores, of_population=False), partial(scores, of_population=True)
    )


def _curve(points: Forecasts, context: ScoreContext) -> DeviationScores | None:
    """Deviations of the coefficients of the flexible curve, linearised; of loess, of its values."""
    if context.smoother is Smoother.LOESS:
        return _loess(points)
    coefficients, sample = context.curve_start, context.curved(context.whole)
    if coefficients is None:
        return None
    columns = curve_columns(sample, context.clip)[: coefficients.size]
    calibrated = np.zeros(coefficients.size)
    if coefficients.size > 1:
        calibrated[1] = 1.0
    else:
        calibrated[0] = clipped_logits(points, context.clip)[sample.present[0]]
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
    groups = _Cells(points, _groups(points), counted=counted)
    design = groups.mean_of(columns)

    # Not the mean p of the group: without a shift the distance is 0.
    of_calibrated = sigmoid(calibrated @ design)

    def scores(shift: Floats) -> Floats:
        curves = sigmoid((calibrated + shift) @ design)
        return _distances(np.abs(curves - of_calibrated), groups.weight)

    return DeviationScores(
        deviation, deviation, influence + weight[:, np.newaxis] * deviation, weight, scores, scores
    )


def _loess(points: Forecasts) -> DeviationScores:
    groups = _Cells(points, _groups(points))
    smooth = loess_matrix(groups.mean_p, groups.weight * groups.total)

    def scores(deviation: Floats) -> Floats:
        curves = np.clip((groups.mean_p + deviation / groups.weight) @ smooth.T, 0, 1)
        return _distances(np.abs(curves - groups.mean_p), groups.weight)

    return groups.from_calibration(scores)


def _distances(distance: Floats, weight: Floats) -> Floats:
    """Mean, median, 90 % quantile and maximum of distances, (..., n_groups), as (..., 4)."""
    order = np.argsort(distance, axis=-1)
    ranked = np.take_along_axis(distance, order, axis=-1)
    reached = np.cumsum(weight[order], axis=-1)
    quantiles = [
        np.take_along_axis(ranked, (reached < share - 1e-9).sum(axis=-1)[..., np.newaxis], -1)
        for share in (0.5, 0.9)
    ]
    mean = (distance * weight).sum(axis=-1, keepdims=True)
    return np.concatenate([mean, *quantiles, ranked[..., -1:]], axis=-1)


DEVIATION_SCORES: Mapping[tuple[str, ...], Callable[..., DeviationScores | None]] = {
    (
        *("ece", "maximum_calibration_error"),
        *("murphy_reliability", "murphy_reliability_corrected"),
    ): _equal_width,
    (
        *("ece_equal_mass", "ece_debiased"),
        *("rms_calibration_error", "rms_calibration_error_debiased"),
    ): _equal_mass,
    ("smooth_ece",): _smooth,
    ("ece_sweep",): _sweep,
    ("ece_classwise",): _classwise,
    ("ece_confidence",): _confidence,
    ("corp_brier_miscalibration", "corp_log_loss_miscalibration"): _corp_calibration,
    ("corp_brier_discrimination", "corp_log_loss_discrimination"): _corp_discrimination,
    ("murphy_resolution", "murphy_resolution_corrected"): _resolution,
    ("ici", "e50", "e90", "emax"): _curve,
}
"""Scores that are functions of the same deviations, in the order of their columns."""


def paired_deviations(
    score: str, sides: Sequence[Forecasts], contexts: Sequence[ScoreContext]
) -> tuple[list[DeviationScores], int] | None:
    """Deviations of two methods on the same atoms, and in which column of theirs a score is.

    None where a curve cannot be fitted.
    """
    own, make = next(each for each in DEVIATION_SCORES.items() if score in each[0])
    if make is _smooth:
        # On one mesh: what it rounds cancels in a difference.
        n_cells = max(map(_mesh_cells, contexts))
        return [_on_mesh(side, n_cells) for side in sides], own.index(score)
    found = [make(side, context) for side, context in zip(sides, contexts, strict=True)]
    known = [each for each in found if each is not None]
    return (known, own.index(score)) if len(known) == len(found) else None


class _Cells:
    """Cells of points with the atoms of each, and residuals of responses in them."""

    def __init__(
        self,
        points: Forecasts,
        numbers: Integers,
        *,
        sign: Floats | None = None,
        counted: Floats | None = None,
    ) -> None:
        """Cells of given numbers, (m,).

        Args:
            points: the forecasts.
            numbers: cell of each point, (m,).
            sign: factor of the residuals of each point, (m,), or None.
            counted: weight of each atom, (n,); that of the forecasts if None.
        """
        weights = points.weights if counted is None else counted
        self._point_weight = np.add.reduceat(weights, points.first)
        heavy = self._point_weight > 0
        # Points without weight may be in any cell.
        numbers = np.where(heavy, numbers, numbers[np.argmax(heavy)])
        present, self._cell = np.unique(numbers, return_inverse=True)
        self._points, self._n_cells, self._sign = points, present.size, sign
        self.total = float(self._point_weight.sum())
        self.weight = self._sum(self._point_weight) / self.total
        self.mean_p = self.mean_of(points.p)

    def mean_of(self, values: Floats) -> Floats:
        """Mean over each cell of values of points, (..., m), as (..., n_cells)."""
        rows = [self._sum(self._point_weight * row) for row in np.atleast_2d(values)]
        means = np.stack(rows) / (self.weight * self.total)
        return np.asarray(means if values.ndim > 1 else means[0])

    def noise(self, distance: Floats) -> Floats:
        """Estimated variance of the share of true atoms at a distance from the mean probability."""
        return self.noise_of(self.mean_p + distance)

    def noise_of(self, observed: Floats) -> Floats:
        """Estimated variance of a share of true atoms, 0 in cells of a single atom."""
        atoms = self.weight * self.total
        inside = np.clip(observed, 0, 1)
        return np.where(atoms > 1, inside * (1 - inside) / np.maximum(atoms - 1, 1e-9), 0.0)

    def from_calibration(
        self, statistic: Functional, population: Functional | None = None
    ) -> DeviationScores:
        """Scores as functions of residuals y - p, as `DeviationScores` has them."""
        sums = _residual_sums(self._points, self._cell, self._n_cells, self._points.p, self._sign)
        return _scores(self._points, sums, statistic, population)

    def from_base_rate(
        self, base_rate: float, statistic: Functional, population: Functional | None = None
    ) -> DeviationScores:
        """Scores as functions of how far labels are from the base rate."""
        sums = self.residuals(np.full(self._points.p.size, base_rate))
        return _scores(self._points, sums, statistic, population)

    def residuals(self, forecast: Floats) -> Any:
        """Sums of y less a forecast of each point, (m,), sparse (n_responses, n_cells)."""
        return _residual_sums(self._points, self._cell, self._n_cells, forecast)

    def _sum(self, values: Floats) -> Floats:
        totals = np.bincount(self._cell, weights=values, minlength=self._n_cells)
        return totals.astype(np.float64, copy=False)


def _residual_sums(
    points: Forecasts,
    numbers: Integers,
    n_cells: int,
    forecast: Floats,
    factor: Floats | None = None,
) -> Any:
    """Sums of factor (y - forecast) over responses and cells, sparse (n_responses, n_cells).

    Args:
        points: the forecasts.
        numbers: cell of each point, (m,).
        n_cells: number of cells.
        forecast: of each point, (m,).
        factor: of each point, (m,); 1 if None.
    """
    from scipy.sparse import csr_array

    index = np.repeat(np.arange(points.p.size), points.sizes)
    values = points.weights * (points.y - forecast[index])
    if factor is not None:
        values = values * factor[index]
    shape = (points.n_responses, n_cells)
    # Entries that fall together are added.
    return csr_array((values, (points.response, numbers[index])), shape=shape)


def _scores(
    points: Forecasts, sums: Any, statistic: Functional, population: Functional | None = None
) -> DeviationScores:
    weight = points.response_sums(points.weights)
    deviation = np.asarray(sums.sum(axis=0)) / weight.sum()
    return DeviationScores(
        deviation,
        deviation,
        sums,
        weight,
        statistic,
        statistic if population is None else population,
    )


def _mean_absolute(deviation: Floats) -> Floats:
    return np.asarray(np.abs(deviation).sum(axis=-1, keepdims=True))


def _isotonic_direction(
    scores: DeviationScores, weight: Floats, forecast: Floats | float
) -> DeviationScores:
    """The scores of populations whose shares of true atoms are isotonic as the data's fit."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(forecast + scores.deviation / weight, weights=weight).x
    return replace(scores, direction=weight * (fit - forecast))


def _isotonic_terms(weight: Floats, observed: Floats, forecast: Floats | None) -> Floats:
    """What isotonic recalibration takes off the Brier score and the log loss, (..., 2).

    Args:
        weight: share of each cell, (n_cells,).
        observed: shares of true atoms, (..., n_cells), which noise may bring out of [0, 1].
        forecast: probability of each cell; None for the share of true atoms of all.
    """
    from calibration.scores.intervals.kernels.samples import isotonic_gains

    rows = np.ascontiguousarray(observed.reshape(-1, weight.size))
    # Noise would make a loss infinite at certain forecasts that are right.
    before = np.clip(0.5 if forecast is None else forecast, _NEARLY_CERTAIN, 1 - _NEARLY_CERTAIN)
    losses = [LOSSES[name](np.broadcast_to(before, weight.shape)) for name in ("brier", "log_loss")]
    if_true, if_false = (np.stack(each) for each in zip(*losses, strict=True))
    terms = np.empty((len(rows), 2))
    isotonic_gains(weight, rows, if_true, if_false, forecast is None, terms)
    return terms.reshape(*observed.shape[:-1], 2)


def _groups(points: Forecasts) -> Integers:
    """Group of each point, at most `MOST_GROUPS` of neighbours of about equal weight."""
    if points.p.size <= MOST_GROUPS:
        return np.arange(points.p.size)
    reached = np.cumsum(np.add.reduceat(points.weights, points.first))
    group = (reached / reached[-1] * MOST_GROUPS).astype(np.int64)
    return np.asarray(np.minimum(group, MOST_GROUPS - 1))


def _numbered(points: Forecasts, starts: Integers) -> Integers:
    """Number of the bin of each point, given where bins start."""
    return np.searchsorted(starts, np.arange(points.p.size), side="right") - 1
