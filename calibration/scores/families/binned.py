"""Expected calibration error over bins, plain and debiased."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Estimate, ScoreStatus, undefined
from calibration.forecasts import Forecasts, Sample, pooled
from calibration.intervals import DeviationScores, IntervalMethod, Scale
from calibration.labels import LabelPolicy
from calibration.scores.binning import (
    Binned,
    binned,
    equal_mass,
    equal_mass_starts,
    equal_width,
    equal_width_starts,
)
from calibration.scores.cells import Cells, numbered
from calibration.scores.definition import SampleSettings, ScoreDefinition
from calibration.validation import Floats, whole_number


def calibration_error(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    n_bins: int = 10,
    strategy: str = "uniform",
    debiased: bool = False,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> float:
    """Mean distance between mean probability and share of true atoms over bins.

    The expected calibration error (Naeini, Cooper and Hauskrecht 2015). Bins estimate shares from
    few atoms, which makes it too large; debiased it is less what a normal share would add in the
    mean (as the released code of Kumar, Liang and Ma 2019 simulates; here in closed form), and may
    be below 0.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None.
        n_bins: number of bins.
        strategy: ``uniform`` for bins of equal width, ``quantile`` for bins of equal weight.
        debiased: whether to remove the bias.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, or a bad setting.
    """
    sample = pooled(p, y, weights, unlabelled)
    bins = binned(sample, whole_number(n_bins, "n_bins", 1), strategy)
    return _mean_absolute_debiased(bins) if debiased else _mean_absolute(bins)


def _mean_absolute(bins: Binned) -> float:
    """Weighted mean over bins of |mean p - share of true atoms|."""
    return float(np.abs(bins.true - bins.sum_p).sum() / bins.weight.sum())


def _mean_absolute_debiased(bins: Binned) -> float:
    """`_mean_absolute` less what normal noise of the shares would add to it."""
    distance = np.abs(bins.mean_p - bins.observed)
    spread = np.sqrt(bins.observed * (1 - bins.observed) / bins.weight)
    ratio = np.divide(distance, spread, out=np.full_like(distance, np.inf), where=spread > 0)
    folded = _folded(distance, spread, ratio)
    return float(bins.weight @ (2 * distance - folded) / bins.weight.sum())


def _folded(distance: Floats, spread: Floats, ratio: Floats) -> Floats:
    """Mean of |N(distance, spread^2)|, which is distance itself without spread."""
    from scipy.special import ndtr

    folded = spread * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    return np.asarray(folded + distance * (1 - 2 * ndtr(-ratio)))


def _plain(sample: Sample, settings: SampleSettings) -> tuple[Estimate, ...]:
    return (Estimate("ece", _mean_absolute(equal_width(sample, settings.n_bins))),)


def _debiased(sample: Sample, settings: SampleSettings) -> tuple[Estimate, ...]:
    bins = equal_mass(sample, settings.n_bins)
    if (bins.weight <= 1).any():
        return (undefined("ece_debiased", ScoreStatus.TOO_FEW_ATOMS),)
    return (Estimate("ece_debiased", _mean_absolute_debiased(bins)),)


def _sum_of_distances(deviation: Floats) -> Floats:
    return np.asarray(np.abs(deviation).sum(axis=-1))


def _plain_deviations(points: Forecasts, settings: SampleSettings) -> DeviationScores:
    starts = equal_width_starts(points.sample(), settings.n_bins)
    return Cells(points, numbered(points, starts)).from_calibration(_sum_of_distances)


def _debiased_deviations(points: Forecasts, settings: SampleSettings) -> DeviationScores:
    starts = equal_mass_starts(points.sample(), settings.n_bins)
    cells = Cells(points, numbered(points, starts))

    def of_sample(deviation: Floats) -> Floats:
        distance = deviation / cells.weight
        atoms = cells.weight * cells.total
        spread = np.sqrt(cells.noise(distance) * (atoms - 1) / atoms)
        ratio = np.minimum(np.abs(distance) / np.maximum(spread, 1e-9), 40)
        folded = _folded(np.abs(distance), spread, ratio)
        return np.asarray(2 * _sum_of_distances(deviation) - (cells.weight * folded).sum(axis=-1))

    return cells.from_calibration(of_sample, _sum_of_distances)


FAMILY = (
    ScoreDefinition(
        name="ece",
        title="ECE",
        meaning="expected calibration error, bins of equal width",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_sample=_plain,
        usual=7,
        deviations=_plain_deviations,
    ),
    ScoreDefinition(
        name="ece_debiased",
        title="ECE, debiased",
        meaning="the same, bins of equal weight, less the bias of a normal share",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_sample=_debiased,
        deviations=_debiased_deviations,
    ),
)
