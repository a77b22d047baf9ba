"""Calibration errors over bins: expected (ECE), maximum (MCE), average (ACE), and debiased.

Let d_b be the distance between the mean probability and the share of true atoms of bin b, and w_b
its share of the weight. Then ECE = sum_b w_b d_b, MCE = max_b d_b, and ACE is the mean of d_b over
non-empty bins. ECE and MCE are from Naeini, Cooper and Hauskrecht 2015, ACE from Neumann,
Zisserman and Vedaldi 2018. The adaptive calibration error of Nixon et al. 2019 is the ECE over bins
of equal mass.
"""

from __future__ import annotations

from collections.abc import Callable
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
from calibration.validation import Floats, Integers, whole_number
from factormodels.errors import InputError

NORMS = ("expected", "maximum", "average")
"""Names of norms: mean over atoms, maximum over bins, mean over bins."""


def calibration_error(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    n_bins: int = 10,
    strategy: str = "uniform",
    norm: str = "expected",
    debiased: bool = False,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> float:
    """Distance between mean probability and share of true atoms, over bins.

    The error is biased upwards, because bins estimate shares from few atoms. The debiased error
    subtracts the expected bias of normally distributed shares and may be negative. The released
    code of Kumar, Liang and Ma 2019 simulates this bias; here it is computed in closed form.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        n_bins: number of bins.
        strategy: ``uniform`` for bins of equal width, ``quantile`` for bins of equal weight.
        norm: ``expected`` for the mean over atoms (ECE), ``maximum`` for the worst bin (MCE),
            ``average`` for the mean over bins (ACE).
        debiased: whether to remove the bias of the expected error.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, no labeled atom, or a bad setting.
    """
    if norm not in NORMS:
        raise InputError(f"norm is {norm!r}; choose one of {', '.join(map(repr, NORMS))}")
    if debiased and norm != "expected":
        raise InputError(
            f"norm is {norm!r}, and only the expected error is debiased; leave one out"
        )
    sample = pooled(p, y, weights, unlabeled)
    bins = binned(sample, whole_number(n_bins, "n_bins", 1), strategy)
    return _debiased_error(bins) if debiased else _error_of(bins, norm)


def _error(deviation: Floats, share: Floats, norm: str) -> Floats:
    """Calibration error under a norm.

    Args:
        deviation: mean probability minus share of true atoms, times `share`, (..., b).
        share: share of the weight in each bin, (b,).
        norm: one of `NORMS`.
    """
    if norm == "expected":
        return np.asarray(np.abs(deviation).sum(axis=-1))
    distance = np.abs(deviation) / share
    return np.asarray(distance.max(axis=-1) if norm == "maximum" else distance.mean(axis=-1))


def _error_of(bins: Binned, norm: str) -> float:
    total = bins.weight.sum()
    return float(_error((bins.true - bins.sum_p) / total, bins.weight / total, norm))


def _debiased_error(bins: Binned) -> float:
    """Expected error minus its bias under normal noise of the shares."""
    distance = np.abs(bins.mean_p - bins.observed)
    spread = np.sqrt(bins.observed * (1 - bins.observed) / bins.weight)
    ratio = np.divide(distance, spread, out=np.full_like(distance, np.inf), where=spread > 0)
    folded = _folded(distance, spread, ratio)
    return float(bins.weight @ (2 * distance - folded) / bins.weight.sum())


def _folded(distance: Floats, spread: Floats, ratio: Floats) -> Floats:
    """Mean of |N(distance, spread^2)|; equals `distance` if `spread` is 0."""
    from scipy.special import ndtr

    folded = spread * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    return np.asarray(folded + distance * (1 - 2 * ndtr(-ratio)))


def _of_equal_width(sample: Sample, settings: SampleSettings) -> tuple[Estimate, ...]:
    bins = equal_width(sample, settings.n_bins)
    names = {"ece": "expected", "mce": "maximum", "ace": "average"}
    return tuple(Estimate(name, _error_of(bins, norm)) for name, norm in names.items())


def _of_equal_mass(sample: Sample, settings: SampleSettings) -> tuple[Estimate, ...]:
    bins = equal_mass(sample, settings.n_bins)
    plain = Estimate("ece_equal_mass", _error_of(bins, "expected"))
    if (bins.weight <= 1).any():
        return plain, undefined("ece_debiased", ScoreStatus.TOO_FEW_ATOMS)
    return plain, Estimate("ece_debiased", _debiased_error(bins))


def _deviations(
    norm: str, starts: Callable[[Sample, int], Integers]
) -> Callable[[Forecasts, SampleSettings], DeviationScores]:
    """Return the deviations of a calibration error over the bins that `starts` returns."""

    def deviations(points: Forecasts, settings: SampleSettings) -> DeviationScores:
        cells = Cells(points, numbered(points, starts(points.sample(), settings.n_bins)))
        return cells.from_calibration(lambda deviation: _error(deviation, cells.weight, norm))

    return deviations


def _debiased_deviations(points: Forecasts, settings: SampleSettings) -> DeviationScores:
    starts = equal_mass_starts(points.sample(), settings.n_bins)
    cells = Cells(points, numbered(points, starts))

    def plain(deviation: Floats) -> Floats:
        return _error(deviation, cells.weight, "expected")

    def of_sample(deviation: Floats) -> Floats:
        distance = deviation / cells.weight
        atoms = cells.weight * cells.total
        spread = np.sqrt(cells.noise(distance) * (atoms - 1) / atoms)
        ratio = np.minimum(np.abs(distance) / np.maximum(spread, 1e-9), 40)
        folded = _folded(np.abs(distance), spread, ratio)
        return np.asarray(2 * plain(deviation) - (cells.weight * folded).sum(axis=-1))

    return cells.from_calibration(of_sample, plain)


FAMILY = (
    ScoreDefinition(
        name="ece",
        title="ECE",
        meaning="expected calibration error, bins of equal width",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_bins=True,
        of_sample=_of_equal_width,
        usual=7,
        deviations=_deviations("expected", equal_width_starts),
    ),
    ScoreDefinition(
        name="ece_equal_mass",
        title="ECE, equal mass",
        meaning="expected calibration error, bins of equal weight",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_bins=True,
        of_sample=_of_equal_mass,
        deviations=_deviations("expected", equal_mass_starts),
    ),
    ScoreDefinition(
        name="mce",
        title="MCE",
        meaning="maximum calibration error over bins of equal width",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_bins=True,
        of_sample=_of_equal_width,
        deviations=_deviations("maximum", equal_width_starts),
    ),
    ScoreDefinition(
        name="ace",
        title="ACE",
        meaning="average calibration error over bins of equal width",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_bins=True,
        of_sample=_of_equal_width,
        deviations=_deviations("average", equal_width_starts),
    ),
    ScoreDefinition(
        name="ece_debiased",
        title="ECE, debiased",
        meaning="expected calibration error with equal mass, minus its bias",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_bins=True,
        of_sample=_of_equal_mass,
        deviations=_debiased_deviations,
    ),
)
