"""Share of true atoms in bins of the predicted probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.curves.histograms import LabelCurve, histogram
from calibration.grouping import Grouping
from calibration.intervals import IntervalSettings, RatioSums, redrawn_interval, wilson_interval
from calibration.labels import LabelPolicy, labeled_atoms
from calibration.scores.measures import DECISION_TOLERANCE
from calibration.validation import Floats, Integers, whole_number
from factormodels.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityBins(LabelCurve):
    """Predicted probability and observed share of true atoms in non-empty bins.

    Attributes:
        mean_predicted: float64 (m,), mean P of the atoms of each bin.
        observed: float64 (m,), share of true atoms of each bin.
        count: int64 (m,), number of atoms of each bin, above 0.
        lower: float64 (m,), lower end of the interval of `observed`.
        upper: float64 (m,), upper end of the interval of `observed`.
        edges: float64 (n_bins + 1,), edges of all bins, including empty bins.
        position: int64 (m,), index of each bin among the n_bins bins.
        histogram: int64 (21,), number of atoms with P in each of 21 equal parts of [0, 1].
        interval: ``wilson`` for independent atoms, ``bootstrap`` if responses were resampled.
    """

    columns: ClassVar = ("mean_predicted", "observed", "count", "lower", "upper")

    mean_predicted: Floats
    observed: Floats
    count: Integers
    lower: Floats
    upper: Floats
    edges: Floats
    position: Integers
    histogram: Integers
    interval: str

    @property
    def n_atoms(self) -> int:
        """The number of atoms over all bins."""
        return int(self.count.sum())


def reliability_bins(
    p: ArrayLike,
    y: Any,
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    responses: Any = None,
    n_bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> ReliabilityBins:
    """Points of a reliability diagram, with an interval for each.

    Bins are those of scikit-learn's ``calibration_curve``: a P on an edge belongs to the bin
    below it. A P up to 1e-9 above an edge counts as on it, so that atoms with P = 1/2 are in the
    same bin regardless of rounding. Empty bins are left out.

    Without `responses` the intervals are Wilson's, which assume independent atoms. With
    `responses`, intervals are percentiles of a bootstrap over whole responses. If all responses of
    a bin have the same share, a bootstrap interval would have width 0; Wilson's interval is used
    instead, with each response as an observation.

    Args:
        p: probabilities (n,) in [0, 1] that the atoms are true.
        y: labels (n,), True or False, None where unlabeled.
        n_bins: number of bins, at least 1.
        strategy: ``uniform`` for bins of equal width, ``quantile`` for bins of equal count.
        responses: response ids (n,), or None.
        n_bootstrap: number of bootstrap replicates, at least 1; used only with `responses`.
        seed: seed of the bootstrap.
        level: nominal coverage of the intervals, between 0 and 1.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, or settings outside these ranges.
    """
    atoms = labeled_atoms(p, y, unlabeled)
    probabilities, labels = atoms.p, atoms.y
    n_bins = whole_number(n_bins, "n_bins", 1)
    how = IntervalSettings(n_bootstrap=n_bootstrap, seed=seed, level=level)
    edges = _edges(probabilities, n_bins, strategy)
    inner = edges[1:-1] + DECISION_TOLERANCE
    index = np.searchsorted(inner, probabilities, side="left")
    counts = np.bincount(index, minlength=n_bins)
    position = np.flatnonzero(counts)
    count = counts[position]
    mean_predicted = np.bincount(index, weights=probabilities, minlength=n_bins)[position] / count
    observed = np.bincount(index, weights=labels, minlength=n_bins)[position] / count

    n_responses = None
    if responses is None:
        lower, upper = wilson_interval(observed, count, level)
    else:
        grouping = atoms.grouping(responses)
        n_responses = len(grouping.responses)
        occupied = np.searchsorted(position, index)
        sums = _bin_sums(labels, occupied, position.size, grouping)
        still = sums.is_still()
        lower, upper = (
            np.where(still, without_spread, end)
            for without_spread, end in zip(
                wilson_interval(observed, sums.touching(), level),
                redrawn_interval(sums.replicates, n_responses, how),
                strict=True,
            )
        )

    return ReliabilityBins(
        mean_predicted=mean_predicted,
        observed=observed,
        count=count,
        lower=lower,
        upper=upper,
        edges=edges,
        position=position,
        histogram=histogram(probabilities),
        level=level,
        interval="wilson" if responses is None else "bootstrap",
        n_responses=n_responses,
        n_unlabeled=atoms.n_unlabeled,
    )


def _edges(p: Floats, n_bins: int, strategy: str) -> Floats:
    fractions = np.linspace(0.0, 1.0, n_bins + 1)
    if strategy == "uniform":
        return fractions
    if strategy == "quantile":
        return np.percentile(p, fractions * 100)
    raise InputError(f"strategy is {strategy!r}; choose 'uniform' or 'quantile'")


def _bin_sums(y: Floats, index: Integers, n_bins: int, grouping: Grouping) -> RatioSums:
    """Numbers of true atoms and of atoms for each response and bin."""

    cells = grouping.index * n_bins + index
    n_cells = len(grouping.responses) * n_bins
    true = np.bincount(cells, weights=y, minlength=n_cells).astype(np.float64, copy=False)
    count = np.bincount(cells, minlength=n_cells).astype(np.float64)
    return RatioSums(true.reshape(-1, n_bins), count.reshape(-1, n_bins))
