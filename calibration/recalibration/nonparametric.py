"""Nonparametric recalibration: isotonic regression and histogram binning."""

from __future__ import annotations

import numpy as np

from calibration.forecasts import Sample
from calibration.recalibration.base import Recalibrator
from calibration.scores.binning import equal_mass_starts
from calibration.scores.measures import DECISION_TOLERANCE
from calibration.validation import Floats, whole_number
from factormodels.errors import InputError


class IsotonicRecalibrator(Recalibrator):
    """Isotonic regression of labels on p (Zadrozny and Elkan 2002), by scikit-learn.

    The map is linear between the probabilities of the fit and constant beyond them.

    Attributes:
        regression_: the fitted ``sklearn.isotonic.IsotonicRegression``.
    """

    def _learn(self, sample: Sample) -> None:
        from sklearn.isotonic import IsotonicRegression

        present = sample.present
        weight = sample.weight[present]
        self.regression_ = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        self.regression_.fit(sample.p[present], sample.true[present] / weight, weight)

    def _map(self, p: Floats) -> Floats:
        mapped: Floats = self.regression_.predict(p)
        return mapped


class HistogramRecalibrator(Recalibrator):
    """Histogram binning: the share of true atoms of each bin (Zadrozny and Elkan 2001).

    Args:
        n_bins: number of bins; fewer are used if equal probabilities fill several bins.
        strategy: ``quantile`` for bins of equal weight, ``uniform`` for bins of equal width.

    Attributes:
        edges_: float64 (b - 1,), the inner edges; a p on an edge belongs to the bin below it.
        values_: float64 (b,), recalibrated probability of each bin; the center of an empty bin.
    """

    def __init__(self, n_bins: int = 10, strategy: str = "quantile") -> None:
        self.n_bins = n_bins
        self.strategy = strategy

    def _learn(self, sample: Sample) -> None:
        n_bins = whole_number(self.n_bins, "n_bins", 1)
        if self.strategy == "quantile":
            starts = equal_mass_starts(sample, n_bins)
            edges = sample.p[starts[1:] - 1]
        elif self.strategy == "uniform":
            edges = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
        else:
            raise InputError(f"strategy is {self.strategy!r}; choose 'quantile' or 'uniform'")
        self.edges_ = edges
        index = self._bin_of(sample.p)
        weight = np.bincount(index, weights=sample.weight, minlength=edges.size + 1)
        true = np.bincount(index, weights=sample.true, minlength=edges.size + 1)
        ends = np.concatenate([[0.0], edges, [1.0]])
        middle = (ends[:-1] + ends[1:]) / 2
        self.values_ = np.divide(true, weight, out=middle, where=weight > 0)

    def _map(self, p: Floats) -> Floats:
        mapped: Floats = self.values_[self._bin_of(p)]
        return mapped

    def _bin_of(self, p: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        return np.searchsorted(self.edges_ + DECISION_TOLERANCE, p, side="left")
