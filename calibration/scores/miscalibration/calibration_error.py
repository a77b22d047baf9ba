"""Calibration error over bins: expected, root mean square, maximum, debiased, by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.forecasts import Estimate, Sample, ScoreStatus, pooled, undefined
from calibration.labels import LabelPolicy
from calibration.scores.measures import DECISION_TOLERANCE
from calibration.scores.miscalibration.binning import (
    Binned,
    bin_numbers,
    binned,
    equal_mass,
    equal_mass_starts,
    equal_width,
)
from calibration.validation import Floats, Integers, whole_number
from factormodels.errors import InputError

MOST_SWEEP_BINS = 1000
"""Where `ece_sweep` stops adding bins; shares of so many bins hardly ever ascend throughout."""

ROUNDING = 1e-9
"""A share that is less than this below the one before it still ascends: sums are rounded."""


def calibration_error(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    n_bins: int = 10,
    strategy: str = "uniform",
    norm: str = "l1",
    debiased: bool = False,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> float:
    """Distance between mean probability and share of true atoms over bins.

    ``l1`` is the expected calibration error (Naeini, Cooper and Hauskrecht 2015), ``l2`` the root
    mean square one, ``max`` the largest over bins. Bins estimate shares from few atoms, which makes
    all three too large; debiased errors subtract an estimate of that. For ``l2`` it is the variance
    of each share (Kumar, Liang and Ma 2019, section 5; the root of a negative estimate is 0), where
    bins of one atom count 0. For ``l1`` it is what a normal share would add in the mean (as their
    released code simulates; here in closed form), and the result may be below 0.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None.
        n_bins: number of bins.
        strategy: ``uniform`` for bins of equal width, ``quantile`` for bins of equal weight.
        norm: ``l1``, ``l2`` or ``max``.
        debiased: whether to remove the bias of ``l1`` or ``l2``.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, a bad setting, or
            ``max`` debiased.
    """
    sample = pooled(p, y, weights, unlabelled)
    bins = binned(sample, whole_number(n_bins, "n_bins", 1), strategy)
    errors = {
        ("l1", False): mean_absolute,
        ("l2", False): root_mean_square,
        ("max", False): largest,
        ("l1", True): mean_absolute_debiased,
        ("l2", True): root_mean_square_debiased,
    }
    if (norm, debiased) not in errors:
        raise InputError(
            f"norm is {norm!r} with debiased={debiased!r}; choose 'l1' or 'l2', or 'max' without "
            "debiasing"
        )
    return errors[norm, debiased](bins)


def ece_sweep(
    p: ArrayLike, y: Any, *, weights: ArrayLike | None = None, unlabelled: str = LabelPolicy.EXCLUDE
) -> float:
    """Expected calibration error over as many bins as keep shares ascending.

    Bins are of equal weight; the largest number of them is taken up to which the shares of true
    atoms ascend from bin to bin, 1000 at most (Roelofs, Cain, Shlens and Mozer 2022, algorithm 1).
    Arguments and errors are those of `calibration_error`.
    """
    return mean_absolute(sweep_bins(pooled(p, y, weights, unlabelled)))


def mean_absolute(bins: Binned) -> float:
    """Weighted mean over bins of |mean p - share of true atoms|."""
    return float(np.abs(bins.true - bins.sum_p).sum() / bins.weight.sum())


def root_mean_square(bins: Binned) -> float:
    """Root of the weighted mean over bins of (mean p - share of true atoms)^2."""
    squared = (bins.mean_p - bins.observed) ** 2
    return float(np.sqrt(bins.weight @ squared / bins.weight.sum()))


def largest(bins: Binned) -> float:
    """Largest |mean p - share of true atoms| over bins."""
    return float(np.abs(bins.mean_p - bins.observed).max())


def root_mean_square_debiased(bins: Binned) -> float:
    """`root_mean_square` less the variance of each share, 0 where that is negative."""
    several = bins.weight > 1
    observed = bins.observed[several]
    squared = (bins.mean_p[several] - observed) ** 2
    squared -= observed * (1 - observed) / (bins.weight[several] - 1)
    return float(np.sqrt(max(bins.weight[several] @ squared / bins.weight.sum(), 0.0)))


def mean_absolute_debiased(bins: Binned) -> float:
    """`mean_absolute` less what normal noise of the shares would add to it."""
    from scipy.special import ndtr

    distance = np.abs(bins.mean_p - bins.observed)
    spread = np.sqrt(bins.observed * (1 - bins.observed) / bins.weight)
    # The mean of |N(distance, spread^2)|, which is distance itself without spread.
    ratio = np.divide(distance, spread, out=np.full_like(distance, np.inf), where=spread > 0)
    folded = spread * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    folded += distance * (1 - 2 * ndtr(-ratio))
    return float(bins.weight @ (2 * distance - folded) / bins.weight.sum())


def sweep_bins(sample: Sample) -> Binned:
    """Bins of `ece_sweep`."""
    return equal_mass(sample, n_sweep_bins(sample))


def n_sweep_bins(sample: Sample) -> int:
    """Number of bins of `ece_sweep`."""
    n_bins = 1
    for more in range(2, min(MOST_SWEEP_BINS, sample.present.size) + 1):
        starts = equal_mass_starts(sample, more)
        weight = np.diff(np.append(sample.weight_below[starts], sample.total))
        true = np.diff(np.append(sample.true_below[starts], sample.total_true))
        if (np.diff(true[weight > 0] / weight[weight > 0]) < -ROUNDING).any():
            break
        n_bins = more
    return n_bins


def verdict_bins(sample: Sample, n_bins: int) -> Binned:
    """Bins of the confidence of the verdict, where ``true`` is weight on right verdicts.

    The verdict is true if p > 1/2, and its confidence max(p, 1 - p) (Guo, Pleiss, Sun and
    Weinberger 2017, equation 3).
    """

    def build() -> _Runs:
        supported = sample.p > 0.5 + DECISION_TOLERANCE
        return _runs(np.where(supported, sample.p, 1 - sample.p), supported, n_bins)

    return _sums(sample, sample.forecasts.remember(("verdict bins", n_bins), build), n_bins)


def false_class_bins(sample: Sample, n_bins: int) -> Binned:
    """Bins of 1 - p, where ``true`` is weight on false atoms (Kull et al. 2019).

    They are not mirrored bins of p where an atom is on an edge, which always belongs to the bin
    below.
    """

    def build() -> _Runs:
        return _runs(1 - sample.p, np.zeros(sample.p.size, dtype=bool), n_bins)

    return _sums(sample, sample.forecasts.remember(("false class bins", n_bins), build), n_bins)


def calibration_errors(sample: Sample, n_bins: int) -> dict[str, Estimate]:
    """Every calibration error over bins of a sample."""
    width, mass = equal_width(sample, n_bins), equal_mass(sample, n_bins)
    ece = mean_absolute(width)
    estimates = {
        "ece": Estimate(ece),
        "ece_equal_mass": Estimate(mean_absolute(mass)),
        "ece_sweep": Estimate(mean_absolute(sweep_bins(sample))),
        "ece_classwise": Estimate((ece + mean_absolute(false_class_bins(sample, n_bins))) / 2),
        "ece_confidence": Estimate(mean_absolute(verdict_bins(sample, n_bins))),
        "maximum_calibration_error": Estimate(largest(width)),
        "rms_calibration_error": Estimate(root_mean_square(mass)),
    }
    debiased = {
        "ece_debiased": mean_absolute_debiased,
        "rms_calibration_error_debiased": root_mean_square_debiased,
    }
    if (mass.weight <= 1).any():
        return estimates | {name: undefined(ScoreStatus.TOO_FEW_ATOMS) for name in debiased}
    return estimates | {name: Estimate(error(mass)) for name, error in debiased.items()}


@dataclass(frozen=True, eq=False)
class _Runs:
    """Points in a row that share a bin and a verdict.

    Attributes:
        first: int64 (r,), position of the first point of each run.
        bin: int64 (r,), bin of each run.
        supported: bool (r,), whether the probability is p (else 1 - p, of the atom being false).
    """

    first: Integers
    bin: Integers
    supported: NDArray[np.bool_]


def _runs(values: Floats, supported: NDArray[np.bool_], n_bins: int) -> _Runs:
    index = bin_numbers(values, n_bins)
    changes = (np.diff(index) != 0) | (np.diff(supported) != 0)
    first = np.flatnonzero(np.append(True, changes))
    return _Runs(first, index[first], supported[first])


def _sums(sample: Sample, runs: _Runs, n_bins: int) -> Binned:
    weight = np.add.reduceat(sample.weight, runs.first)
    true = np.add.reduceat(sample.true, runs.first)
    sum_p = np.add.reduceat(sample.weighted_p, runs.first)
    true = np.where(runs.supported, true, weight - true)
    sum_p = np.where(runs.supported, sum_p, weight - sum_p)

    def by_bin(sums: Floats) -> Floats:
        return np.bincount(runs.bin, weights=sums, minlength=n_bins).astype(np.float64, copy=False)

    totals = by_bin(weight)
    kept = totals > 0
    return Binned(totals[kept], by_bin(true)[kept], by_bin(sum_p)[kept])
