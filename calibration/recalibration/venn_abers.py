"""Inductive Venn-Abers prediction: two probabilities, one of them calibrated."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibration.forecasts import Sample
from calibration.recalibration.base import Recalibrator
from calibration.validation import Floats

_Point = tuple[float, float]


class VennAbersRecalibrator(Recalibrator):
    """Inductive Venn-Abers predictor (Vovk, Petej and Fedorova 2015).

    A new atom is added to the atoms of the fit as false, and then as true. Isotonic regression
    gives its probabilities p0 and p1 in the two cases, with p0 <= p1. `predict` merges them to
    p1 / (1 - p0 + p1), which minimizes the regret in log loss (Vovk and Petej 2014).

    Attributes:
        points_: float64 (k,), the distinct probabilities of the fit, ascending.
        lower_: float64 (k,), p0 of a new atom from each point to below the next.
        upper_: float64 (k,), p1 of a new atom from above the previous point to each point.
    """

    def predict_multiprobability(self, X: Any) -> Floats:
        """Return p0 and p1, (n, 2), for probabilities X, (n,) or (n, 1).

        Raises:
            InputError: for bad probabilities.
            NotFittedError: before `fit`.
        """
        check_is_fitted(self)
        return self._pair(self._probabilities(X, reset=False))

    def _pair(self, p: Floats) -> Floats:
        # Below all points p0 is 0; above all points p1 is 1.
        lower = np.append(0.0, self.lower_)[np.searchsorted(self.points_, p, side="right")]
        upper = np.append(self.upper_, 1.0)[np.searchsorted(self.points_, p, side="left")]
        return np.stack([lower, upper], axis=1)

    def _learn(self, sample: Sample) -> None:
        present = sample.present
        weight, true = sample.weight[present], sample.true[present]
        self.points_ = sample.p[present]
        self.upper_ = with_a_true_atom(weight, true)
        # Adding a false atom is adding a true atom to the mirrored data.
        self.lower_ = 1 - with_a_true_atom(weight[::-1], (weight - true)[::-1])[::-1]

    def _map(self, p: Floats) -> Floats:
        lower, upper = self._pair(p).T
        merged: Floats = upper / (1 - lower + upper)
        return merged


def with_a_true_atom(weight: Floats, true: Floats) -> Floats:
    """Isotonic regression at each point with an additional true atom at that point, (k,).

    Isotonic regression is the slope of the greatest convex minorant of cumulative labels over
    cumulative weights. The additional atom at point i shifts all sums before i by (-1, -1); the
    result is the slope of the minorant's edge from the shifted sums to the others. As i increases,
    the slope of that edge increases, so that sums that have left the minorant never return to it,
    and a single pass suffices.

    Args:
        weight: weights of the points, (k,), above 0.
        true: the part of each weight on true atoms, (k,).
    """
    sums = list(zip(np.cumsum(weight).tolist(), np.cumsum(true).tolist(), strict=True))
    corners: list[_Point] = []
    for point in (*reversed(sums), (-1.0, -1.0)):
        _extend(corners, point)
    slopes = []
    for x, y in sums:
        (left_x, left_y), (right_x, right_y) = corners[-1], corners[-2]
        slopes.append((right_y - left_y) / (right_x - left_x))
        shifted = (x - 1.0, y - 1.0)
        if _turn(corners[-1], shifted, corners[-2]) > 0:
            corners.pop()
            _extend(corners, shifted)
    return np.array(slopes)


def _extend(corners: list[_Point], point: _Point) -> None:
    """Add a point to the left of a convex minorant, and remove the corners that it cuts off."""
    while len(corners) > 1 and _turn(point, corners[-1], corners[-2]) <= 0:
        corners.pop()
    corners.append(point)


def _turn(a: _Point, b: _Point, c: _Point) -> float:
    """Positive number if b is below the line from a to c, where a, b, c go from left to right."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
