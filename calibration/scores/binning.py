"""Sums over atoms in bins of equal width or of equal weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibration.forecasts import Sample
from calibration.scores.measures import DECISION_TOLERANCE
from calibration.validation import Floats, Integers
from factormodels.errors import InputError


@dataclass(frozen=True, eq=False)
class Binned:
    """Sums over the atoms of each bin that has weight.

    Attributes:
        weight: float64 (b,), weight of each bin, above 0.
        true: float64 (b,), weight on true atoms.
        sum_p: float64 (b,), weighted sum of p.
    """

    weight: Floats
    true: Floats
    sum_p: Floats

    @cached_property
    def observed(self) -> Floats:
        """Share of true atoms of each bin, float64 (b,)."""
        return self.true / self.weight

    @cached_property
    def mean_p(self) -> Floats:
        """Mean probability of each bin, float64 (b,)."""
        return self.sum_p / self.weight


def equal_width(sample: Sample, n_bins: int) -> Binned:
    """Sums over bins of equal width; a p on an edge belongs to the bin below it.

    The bins are those of `calibration.reliability_bins`: a p within 1e-9 above an edge counts as
    on it.
    """
    return _sums(sample, equal_width_starts(sample, n_bins))


def equal_width_starts(sample: Sample, n_bins: int) -> Integers:
    """Position of the first point of each bin of `equal_width`, int64 (b,)."""

    def begin() -> Integers:
        return _starts(sample.p, _inner_edges(n_bins))

    return sample.forecasts.remember(("equal width", n_bins), begin)


def equal_width_numbers(p: Floats, n_bins: int) -> Integers:
    """Bin of each probability, int64 (n,), numbered from 0 among the bins of `equal_width`."""
    return np.searchsorted(_inner_edges(n_bins) + DECISION_TOLERANCE, p, side="left")


def equal_mass(sample: Sample, n_bins: int) -> Binned:
    """Sums over bins of about equal weight, with equal probabilities in the same bin.

    Edges are quantiles of p in the sample; if every weight is 1, they are those of
    ``numpy.quantile``. There are fewer bins if edges coincide.
    """
    return _sums(sample, equal_mass_starts(sample, n_bins))


def equal_mass_starts(sample: Sample, n_bins: int) -> Integers:
    """Position of the first point of each bin of `equal_mass`, int64 (b,)."""
    ranks = (sample.total - 1) * np.arange(1, n_bins) / n_bins
    # Sums of weights are rounded: an integer rank must select the atom of that rank.
    rounding = 1e-12 * sample.total
    edge = np.searchsorted(sample.weight_below, ranks + rounding, side="right") - 1
    return _starts(sample.p, sample.p[np.maximum(edge, 0)])


def binned(sample: Sample, n_bins: int, strategy: str) -> Binned:
    """Sums over bins of the named strategy, ``uniform`` or ``quantile``.

    Raises:
        InputError: for another strategy.
    """
    if strategy == "uniform":
        return equal_width(sample, n_bins)
    if strategy == "quantile":
        return equal_mass(sample, n_bins)
    raise InputError(f"strategy is {strategy!r}; choose 'uniform' or 'quantile'")


def _inner_edges(n_bins: int) -> Floats:
    return np.linspace(0.0, 1.0, n_bins + 1)[1:-1]


def _starts(p: Floats, edges: Floats) -> Integers:
    """Position of the first point of each occupied bin, given ascending edges between bins."""
    above = np.searchsorted(p, edges + DECISION_TOLERANCE, side="right")
    starts = np.unique(np.concatenate([[0], above]))
    return starts[starts < p.size]


def _sums(sample: Sample, starts: Integers) -> Binned:
    weight = np.add.reduceat(sample.weight, starts)
    true = np.add.reduceat(sample.true, starts)
    sum_p = np.add.reduceat(sample.weighted_p, starts)
    occupied = weight > 0
    return Binned(weight[occupied], true[occupied], sum_p[occupied])
