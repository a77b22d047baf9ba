"""Interface of a quantity: its values, and the contributions of labeled and predicted items."""

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
    """A quantity of labels and of predictions, and what each item adds to it to first order.

    Attributes:
        observed: the value of the labels, of labeled items.
        sampled: value of the predictions of the same items.
        predicted: value of the predictions of all items.
        labels: float64 (n,), what the label of each item adds to `observed`; sums to 0.
        predictions: what its prediction adds to `sampled`.
        everywhere: what its prediction adds to `predicted`.
        shares: float64 (n,), the part of `observed` that each label decides; sums to 1.
        open_variance: variance of `observed` if labels are drawn as predicted.
        solved: the value, where it is no difference of the other three but a solution of its own.
        most_power: the largest weight of predictions that there can be.
        rounding: a standard error of no more is none: labels do not vary, or are fitted exactly.
    """

    observed: float
    sampled: float
    predicted: float
    labels: Floats
    predictions: Floats
    everywhere: Floats
    shares: Floats
    open_variance: float = 0.0
    solved: float = math.nan
    most_power: float = math.inf
    rounding: float = 1e-12

    def value(self, power: float) -> float:
        """The estimate with a weight of the predictions."""
        if not math.isnan(self.solved):
            return self.solved
        return self.observed - power * (self.sampled - self.predicted)


class Linearized(ABC):
    """A quantity to which labels and predictions add nearly linearly.

    Attributes:
        title: what it is called.
        grouping: the response of every item.
        weights: float64 (n,), number of items that each labeled one represents, up to a factor if
            all are equal; weights of unlabeled items are ignored.
        lowest: the least value there can be.
        highest: the largest.
        by_left_out: whether its error is estimated by leaving responses out: for a mean of losses,
            most of them small and a few large, so that few labels often include no large one, and
            for a fit.
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
        """True for labeled items, bool (n,)."""

    @property
    def sizes(self) -> Floats:
        """Contribution of each item to the size of its response, labeled or not, float64 (n,)."""
        return np.ones(self.labeled.size)

    @abstractmethod
    def linear(self, power: float) -> Linear:
        """Contribution of each item, at a weight of the predictions.

        Raises:
            InputError: if the labels leave it undefined.
        """


def placed(labeled: NDArray[np.bool_], values: Floats) -> Floats:
    """Values of the labeled items in the places of all items, (n,), 0 elsewhere."""
    of_all = np.zeros(labeled.size)
    of_all[labeled] = values
    return of_all
