"""Interface of quantities, with the contributions of labeled and predicted items."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import Grouping
from calibration.validation import Floats


@dataclass(frozen=True, eq=False)
class Linear:
    """Values of a quantity by labels and by predictions, and first-order contributions of the
    items.

    Attributes:
        observed: value from the labels of the labeled items.
        sampled: value from the predictions of the same items.
        predicted: value from the predictions of all items.
        labels: float64 (n,), contribution of each item's label to `observed`; sums to 0.
        predictions: contribution of its prediction to `sampled`.
        everywhere: contribution of its prediction to `predicted`.
        shares: float64 (n,), share of each label in `observed`; sums to 1.
        open_variance: variance of `observed` if labels are drawn with the predicted probabilities.
        training_variance: variance of `observed` that residuals do not show, because the labels
            also trained the judges; see `cross_prediction`.
        solved: the value, if it is the solution of an equation and not a combination of the other
            three; else nan.
        most_power: largest possible weight of the predictions.
        rounding: largest standard error that counts as 0, since labels do not vary or are fitted
            exactly.
    """

    observed: float
    sampled: float
    predicted: float
    labels: Floats
    predictions: Floats
    everywhere: Floats
    shares: Floats
    open_variance: float = 0.0
    training_variance: float = 0.0
    solved: float = math.nan
    most_power: float = math.inf
    rounding: float = 1e-12

    def value(self, power: float) -> float:
        """Estimate with a weight of the predictions."""
        if not math.isnan(self.solved):
            return self.solved
        return self.observed - power * (self.sampled - self.predicted)


class Linearized(ABC):
    """A quantity that is approximately linear in labels and predictions.

    Attributes:
        title: name of the quantity.
        grouping: the response of every item.
        weights: float64 (n,), number of items that each labeled one represents, up to a factor if
            all are equal; weights of unlabeled items are ignored.
        lowest: smallest possible value.
        highest: largest possible value.
        by_left_out: whether its standard error is the jackknife's. This applies to fits, and to
            means of losses, since a small sample of labels often includes none of the few large
            losses.
    """

    title: str
    grouping: Grouping
    weights: Floats
    lowest: float
    highest: float
    by_left_out: bool

    @property
    @abstractmethod
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the labeled items, bool (n,)."""

    @property
    def sizes(self) -> Floats:
        """Contribution of each item, labeled or not, to the size of its response, float64 (n,)."""
        return np.ones(self.labeled.size)

    @abstractmethod
    def linear(self, power: float) -> Linear:
        """Contributions of the items, given the weight of the predictions.

        Raises:
            InputError: if the labels do not determine the quantity.
        """


def placed(labeled: NDArray[np.bool_], values: Floats) -> Floats:
    """Values of the labeled items in an array over all items, (n,), 0 elsewhere."""
    of_all = np.zeros(labeled.size)
    of_all[labeled] = values
    return of_all
