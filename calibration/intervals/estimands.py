"""Estimands: smooth functions of ratios of sums over responses.

A share of claims is a sum over responses divided by another sum. Claims of one response are
dependent, so the sums of responses are the independent units: their linearized contributions
(influences) give standard errors, and redrawn responses give bootstrap replicates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.intervals.methods import Scale, effective_number
from calibration.intervals.replicates import Ends, reach
from calibration.validation import Floats, Integers


class Estimand(ABC):
    """Interface of an estimand for intervals, with a value in each of n_cells cells.

    Attributes:
        name: name of the estimand.
        scale: range of its values.
    """

    name: str
    scale: Scale

    @abstractmethod
    def estimate(self) -> Floats:
        """Estimate, (n_cells,); nan if it is not defined."""

    @abstractmethod
    def influence(self) -> Floats:
        """Linearized contribution of each response, (n_responses, n_cells)."""

    @abstractmethod
    def replicates(self, weights: Floats) -> Floats:
        """Estimate in each replicate of response weights, (n_replicates, n_cells)."""

    @abstractmethod
    def touching(self) -> Integers:
        """Number of responses that contribute to the estimate, (n_cells,)."""

    @abstractmethod
    def effective(self) -> Floats:
        """Number of responses of equal size with the same information, (n_cells,)."""

    def still_share(self) -> Floats:
        """Estimate if it is a share that redrawing cannot change, else nan, (n_cells,)."""
        return np.full(self.touching().size, np.nan)

    def reach(self, wanted: Ends) -> Ends:
        """Smallest and largest estimate of redrawn responses, (n_cells,) each, as in `reach`."""
        return reach(self.replicates, self.influence(), wanted)


@dataclass(frozen=True, eq=False)
class RatioSums(Estimand):
    """A ratio of sums in each cell, such as the share of supported claims in a bin of positions.

    Attributes:
        numerator: float64 (n_responses, n_cells), the sum over each response.
        denominator: float64 (n_responses, n_cells), not negative.
        name: name of the estimand.
        scale: range of its values.
    """

    numerator: Floats
    denominator: Floats
    name: str = ""
    scale: Scale = Scale.PROBABILITY

    def named(self, name: str, scale: Scale = Scale.PROBABILITY) -> RatioSums:
        """Return this ratio with a name and a range of values."""
        return replace(self, name=name, scale=scale)

    def estimate(self) -> Floats:
        """Ratio of the totals, (n_cells,); nan if the denominator is 0."""
        return _divided(self.numerator.sum(axis=0), self.denominator.sum(axis=0))

    def influence(self) -> Floats:
        estimate, total = self.estimate(), self.denominator.sum(axis=0)
        return _divided(self.numerator - estimate * self.denominator, total)

    def replicates(self, weights: Floats) -> Floats:
        return _divided(weights @ self.numerator, weights @ self.denominator)

    def touching(self) -> Integers:
        """Number of responses with a positive denominator, (n_cells,)."""
        return np.asarray((self.denominator > 0).sum(axis=0))

    def effective(self) -> Floats:
        return effective_number(self.denominator)

    def reach(self, wanted: Ends | None = None) -> Ends:  # noqa: ARG002
        """Smallest and largest ratio of a response, (n_cells,) each; resamples are between them."""
        ratios = _divided(self.numerator, self.denominator)
        defined = self.denominator > 0
        return (
            ratios.min(axis=0, where=defined, initial=np.inf),
            ratios.max(axis=0, where=defined, initial=-np.inf),
        )

    def is_still(self) -> NDArray[np.bool_]:
        """Mask of the cells in which redrawing responses cannot change the ratio, (n_cells,)."""
        lowest, highest = self.reach()
        return np.asarray(lowest >= highest)

    def still_share(self) -> Floats:
        share = self.is_still() & (self.scale is Scale.PROBABILITY)
        return np.where(share, self.estimate(), np.nan)


@dataclass(frozen=True, eq=False)
class Smooth(Estimand):
    """A differentiable function of ratios.

    Attributes:
        name: name of the estimand.
        parts: the ratios.
        value: the function of their values, elementwise; nan if it is not defined.
        slopes: its partial derivatives with respect to the ratios, elementwise.
        scale: range of its values.
    """

    name: str
    parts: tuple[RatioSums, ...]
    value: Callable[..., Floats]
    slopes: Callable[..., tuple[Floats, ...]]
    scale: Scale = Scale.PROBABILITY

    def estimate(self) -> Floats:
        return self.value(*(part.estimate() for part in self.parts))

    def influence(self) -> Floats:
        slopes = self.slopes(*(part.estimate() for part in self.parts))
        terms = [slope * part.influence() for slope, part in zip(slopes, self.parts, strict=True)]
        return np.asarray(sum(terms[1:], start=terms[0]))

    def replicates(self, weights: Floats) -> Floats:
        return self.value(*(part.replicates(weights) for part in self.parts))

    def touching(self) -> Integers:
        return np.asarray(np.min([part.touching() for part in self.parts], axis=0))

    def effective(self) -> Floats:
        return np.asarray(np.min([part.effective() for part in self.parts], axis=0))


class PairedDifference(Estimand):
    """The second estimand minus the first, over the same responses in the same order."""

    scale = Scale.NUMBER

    def __init__(self, first: Estimand, second: Estimand) -> None:
        self.first, self.second, self.name = first, second, first.name

    def estimate(self) -> Floats:
        return self.second.estimate() - self.first.estimate()

    def influence(self) -> Floats:
        return self.second.influence() - self.first.influence()

    def replicates(self, weights: Floats) -> Floats:
        return self.second.replicates(weights) - self.first.replicates(weights)

    def touching(self) -> Integers:
        return np.minimum(self.first.touching(), self.second.touching())

    def effective(self) -> Floats:
        return np.minimum(self.first.effective(), self.second.effective())


def _divided(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)
