"""Deviations of responses from calibration or from the base rate, in cells of p.

`calibration.intervals.inversion` uses these deviations for the intervals of scores that chance
alone raises. The file of each score defines the score as a function of the deviations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.forecasts import Forecasts
from calibration.intervals import DeviationScores, Functional
from calibration.validation import Floats, Integers

MOST_GROUPS = 256
"""Largest number of groups of neighboring p in isotonic regressions and curves."""


class Cells:
    """Cells of points, with their atoms and the residuals of responses."""

    def __init__(
        self,
        points: Forecasts,
        numbers: Integers,
        counted: Floats | None = None,
    ) -> None:
        """Assign points to cells.

        Args:
            points: the forecasts.
            numbers: cell of each point, (m,).
            counted: weight of each atom, (n,); None for the weights of the forecasts.
        """
        weights = points.weights if counted is None else counted
        self._point_weight = np.add.reduceat(weights, points.first)
        heavy = self._point_weight > 0
        # Points without weight may be in any cell.
        numbers = np.where(heavy, numbers, numbers[np.argmax(heavy)])
        present, self._cell = np.unique(numbers, return_inverse=True)
        self._points, self._n_cells = points, present.size
        self.total = float(self._point_weight.sum())
        self.weight = self._sum(self._point_weight) / self.total
        self.mean_p = self.mean_of(points.p)

    def mean_of(self, values: Floats) -> Floats:
        """Mean of values of points, (..., m), over each cell, (..., n_cells)."""
        rows = [self._sum(self._point_weight * row) for row in np.atleast_2d(values)]
        means = np.stack(rows) / (self.weight * self.total)
        return np.asarray(means if values.ndim > 1 else means[0])

    def noise(self, distance: Floats) -> Floats:
        """Estimated variance of the share of true atoms at a distance from the mean probability.

        It is 0 in cells of a single atom.
        """
        atoms = self.weight * self.total
        inside = np.clip(self.mean_p + distance, 0, 1)
        return np.where(atoms > 1, inside * (1 - inside) / np.maximum(atoms - 1, 1e-9), 0.0)

    def from_calibration(
        self, statistic: Functional, population: Functional | None = None
    ) -> DeviationScores:
        """`DeviationScores` of a score as a function of the residuals y - p."""
        sums = residual_sums(self._points, self._cell, self._n_cells, self._points.p)
        return deviation_scores(self._points, sums, statistic, population)

    def from_base_rate(self, base_rate: float, statistic: Functional) -> DeviationScores:
        """`DeviationScores` of a score as a function of the residuals from the base rate."""
        sums = self.residuals(np.full(self._points.p.size, base_rate))
        return deviation_scores(self._points, sums, statistic)

    def residuals(self, forecast: Floats) -> Any:
        """Sums of y minus the forecast of each point, (m,), sparse (n_responses, n_cells)."""
        return residual_sums(self._points, self._cell, self._n_cells, forecast)

    def _sum(self, values: Floats) -> Floats:
        totals = np.bincount(self._cell, weights=values, minlength=self._n_cells)
        return totals.astype(np.float64, copy=False)


def residual_sums(
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
        forecast: forecast of each point, (m,).
        factor: factor of each point, (m,); None for 1.
    """
    from scipy.sparse import csr_array

    index = np.repeat(np.arange(points.p.size), points.sizes)
    values = points.weights * (points.y - forecast[index])
    if factor is not None:
        values = values * factor[index]
    shape = (points.n_responses, n_cells)
    # The constructor adds duplicate entries.
    return csr_array((values, (points.response, numbers[index])), shape=shape)


def deviation_scores(
    points: Forecasts, sums: Any, statistic: Functional, population: Functional | None = None
) -> DeviationScores:
    """A score as a function of sums over the atoms of each response, (n_responses, n_cells)."""
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


def neighbors(points: Forecasts) -> Integers:
    """Group of each point, among at most `MOST_GROUPS` neighboring groups of about equal weight."""
    if points.p.size <= MOST_GROUPS:
        return np.arange(points.p.size)
    reached = np.cumsum(np.add.reduceat(points.weights, points.first))
    group = (reached / reached[-1] * MOST_GROUPS).astype(np.int64)
    return np.asarray(np.minimum(group, MOST_GROUPS - 1))


def numbered(points: Forecasts, starts: Integers) -> Integers:
    """Number of the bin of each point, given the first point of each bin."""
    return np.searchsorted(starts, np.arange(points.p.size), side="right") - 1
