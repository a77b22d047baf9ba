"""Decompositions of a score into miscalibration, discrimination and uncertainty.

CORP (Dimitriadis, Gneiting and Jordan 2021) recalibrates by isotonic regression and needs no bins;
Murphy (1973) groups forecasts in bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.forecasts import (
    Estimate,
    Sample,
    ScoreStatus,
    dot,
    finite_or_infinite,
    pooled,
    undefined,
)
from calibration.labels import LabelPolicy
from calibration.scores.miscalibration.binning import Binned, equal_width
from calibration.scores.pointwise import LOSSES, mean_loss
from calibration.validation import Floats, Integers, whole_number
from factormodels.errors import InputError


@dataclass(frozen=True)
class CorpDecomposition:
    """score = miscalibration - discrimination + uncertainty, none of the three below 0.

    Attributes:
        score: the mean loss of the forecasts.
        miscalibration: score minus the mean loss of the recalibrated forecasts; may be inf.
        discrimination: uncertainty minus the mean loss of the recalibrated forecasts.
        uncertainty: the mean loss of the base rate as the forecast of every atom.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True)
class MurphyDecomposition:
    """score = reliability - resolution + uncertainty + within_bin, the score being Brier's.

    Attributes:
        score: the Brier score.
        reliability: mean squared distance of mean forecast and observed share over bins, weighted.
        resolution: mean squared distance of observed share and base rate over bins, weighted.
        uncertainty: base rate times one minus base rate.
        within_bin: what forecasts that differ within their bin add to the score.
        corrected: whether the first three are corrected for their bias, and may leave their range.
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_bin: float
    corrected: bool


@dataclass(frozen=True, eq=False)
class IsotonicFit:
    """Isotonic regression of labels on probabilities, as constant blocks of points.

    Attributes:
        value: float64 (b,), share of true atoms in each block, ascending.
        weight: float64 (b,), weight of each block.
        first: int64 (b,), position of each block's first point among the points of the sample
            that have weight.
    """

    value: Floats
    weight: Floats
    first: Integers


def isotonic_fit(sample: Sample) -> IsotonicFit:
    """Isotonic regression of a sample's labels on its probabilities."""
    from scipy.optimize import isotonic_regression

    weight, true = sample.weight, sample.true
    if sample.present.size < weight.size:
        weight, true = weight[sample.present], true[sample.present]
    fit = isotonic_regression(true / weight, weights=weight)
    first = fit.blocks[:-1]
    return IsotonicFit(
        # Sums over blocks again: a block of true atoms alone is then 1 exactly.
        value=np.add.reduceat(true, first) / np.add.reduceat(weight, first),
        weight=np.asarray(fit.weights),
        first=np.asarray(first, dtype=np.int64),
    )


def expected_loss(name: str, share: Any) -> Any:
    """Mean loss of the forecast `share` of atoms of which that share is true."""
    share = np.asarray(share, dtype=np.float64)
    if_true, if_false = LOSSES[name](share)
    with np.errstate(invalid="ignore"):
        # 0 times inf, where all atoms have the label that is forecast with certainty.
        return np.nan_to_num(share * if_true) + np.nan_to_num((1 - share) * if_false)


def uncertainty(name: str, base_rate: Floats, total: float) -> Floats:
    """The part of a score that the base rate decides, elementwise.

    Args:
        name: ``murphy_uncertainty``, the same ``_corrected``, ``corp_brier_uncertainty`` or
            ``corp_log_loss_uncertainty``.
        base_rate: shares of true atoms.
        total: number of atoms.
    """
    if name == "corp_log_loss_uncertainty":
        return np.asarray(expected_loss("log_loss", base_rate))
    corrected = total / (total - 1) if name.endswith("_corrected") else 1.0
    return corrected * base_rate * (1 - base_rate)


def corp_terms(sample: Sample, fit: IsotonicFit, name: str) -> CorpDecomposition:
    """Decomposition of a loss of `LOSSES`, given the isotonic fit of the sample."""
    score = mean_loss(sample, name)
    recalibrated = dot(fit.weight, expected_loss(name, fit.value)) / sample.total
    of_base_rate = float(expected_loss(name, sample.base_rate))
    return CorpDecomposition(score, score - recalibrated, of_base_rate - recalibrated, of_base_rate)


def corp_decomposition(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    score: str = "brier",
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> CorpDecomposition:
    """Score = miscalibration - discrimination + uncertainty, by isotonic regression.

    Dimitriadis, Gneiting and Jordan 2021: recalibrated forecasts are the isotonic
    regression of the labels on p, which is optimal for every proper score at once.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None.
        score: ``brier``, ``log_loss`` or ``spherical``, all of them losses.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, or another score.
    """
    if score not in LOSSES:
        raise InputError(f"score is {score!r}; choose one of {', '.join(LOSSES)}")
    sample = pooled(p, y, weights, unlabelled)
    return corp_terms(sample, isotonic_fit(sample), score)


def murphy_decomposition(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    n_bins: int = 10,
    corrected: bool = False,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> MurphyDecomposition:
    """Brier = reliability - resolution + uncertainty + within_bin over bins of equal width.

    Murphy 1973; within_bin, the variance of p within bins less twice its covariance with the
    label, from Stephenson, Coelho and Jolliffe 2008. The corrected terms (Ferro and Fricker 2012)
    keep the sum and remove the bias of shares that are estimated from few atoms, without cutting
    off what leaves the range of a term; a bin of one atom is not corrected.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None.
        n_bins: number of bins of equal width.
        corrected: whether to correct for bias; terms may then leave their range.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, or a bad `n_bins`.
    """
    sample = pooled(p, y, weights, unlabelled)
    return _murphy(sample, equal_width(sample, whole_number(n_bins, "n_bins", 1)), corrected)


def corp_scores(sample: Sample) -> dict[str, Estimate]:
    """CORP terms of the Brier score and the log loss."""
    fit = isotonic_fit(sample)
    estimates = {}
    for name in ("brier", "log_loss"):
        terms = corp_terms(sample, fit, name)
        estimates[f"corp_{name}_miscalibration"] = finite_or_infinite(terms.miscalibration)
        estimates[f"corp_{name}_discrimination"] = Estimate(terms.discrimination)
        estimates[f"corp_{name}_uncertainty"] = Estimate(terms.uncertainty)
    return estimates


def murphy_scores(sample: Sample, n_bins: int) -> dict[str, Estimate]:
    """Terms of the Murphy decomposition, as they are and corrected for bias."""
    binned = equal_width(sample, n_bins)
    plain = _murphy(sample, binned, corrected=False)
    estimates = {
        "murphy_reliability": Estimate(plain.reliability),
        "murphy_resolution": Estimate(plain.resolution),
        "murphy_uncertainty": Estimate(plain.uncertainty),
        "murphy_within_bin": Estimate(plain.within_bin),
    }
    corrected = ("reliability", "resolution", "uncertainty")
    if sample.total <= 1:
        return estimates | {
            f"murphy_{name}_corrected": undefined(ScoreStatus.TOO_FEW_ATOMS) for name in corrected
        }
    terms = _murphy(sample, binned, corrected=True)
    return estimates | {
        f"murphy_{name}_corrected": Estimate(getattr(terms, name)) for name in corrected
    }


def _murphy(sample: Sample, binned: Binned, corrected: bool) -> MurphyDecomposition:
    total, base_rate = sample.total, sample.base_rate
    score = mean_loss(sample, "brier")
    reliability = float(binned.weight @ (binned.mean_p - binned.observed) ** 2) / total
    resolution = float(binned.weight @ (binned.observed - base_rate) ** 2) / total
    uncertainty = base_rate * (1 - base_rate)
    # Sum over bins of the variance of p less twice its covariance with the label.
    spread = dot(sample.weighted_p, sample.p) - dot(binned.weight, binned.mean_p**2)
    shared = dot(sample.true, sample.p) - dot(binned.true, binned.mean_p)
    within_bin = (spread - 2 * shared) / total
    if corrected:
        several = binned.weight > 1
        weight, observed = binned.weight[several], binned.observed[several]
        noise = float((weight * observed * (1 - observed) / (weight - 1)).sum()) / total
        of_base_rate = uncertainty / (total - 1) if total > 1 else np.nan
        reliability -= noise
        resolution += of_base_rate - noise
        uncertainty += of_base_rate
    return MurphyDecomposition(score, reliability, resolution, uncertainty, within_bin, corrected)
