"""CORP decomposition of the Brier score into miscalibration, discrimination and uncertainty.

Forecasts are recalibrated by isotonic regression, without bins (Dimitriadis, Gneiting and Jordan
2021).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Estimate, ScoreStatus
from calibration.forecasts import Forecasts, Sample, dot, pooled
from calibration.intervals import DeviationScores, IntervalMethod, Scale
from calibration.labels import LabelPolicy
from calibration.scores.cells import Cells, neighbors
from calibration.scores.definition import SampleSettings, ScoreDefinition
from calibration.scores.families.logistic import curve_columns, fit_curve
from calibration.scores.families.pointwise import mean_loss
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats, Integers


@dataclass(frozen=True)
class CorpDecomposition:
    """Terms of score = miscalibration - discrimination + uncertainty, all at least 0.

    Attributes:
        score: Brier score of the forecasts.
        miscalibration: `score` minus the Brier score of the recalibrated forecasts.
        discrimination: `uncertainty` minus the Brier score of the recalibrated forecasts.
        uncertainty: Brier score of the base rate as the forecast of every atom.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True, eq=False)
class IsotonicFit:
    """Isotonic regression of labels on probabilities, as constant blocks of points.

    Attributes:
        value: float64 (b,), share of true atoms in each block, ascending.
        weight: float64 (b,), weight of each block.
        first: int64 (b,), position of each block's first point among the points with weight.
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
        # Sum over blocks again, so that a block of true atoms has a value of exactly 1.
        value=np.add.reduceat(true, first) / np.add.reduceat(weight, first),
        weight=np.asarray(fit.weights),
        first=np.asarray(first, dtype=np.int64),
    )


def corp_decomposition(
    p: ArrayLike, y: Any, *, weights: ArrayLike | None = None, unlabeled: str = LabelPolicy.EXCLUDE
) -> CorpDecomposition:
    """Decompose the Brier score as miscalibration - discrimination + uncertainty.

    The recalibrated forecasts are the isotonic regression of the labels on p, which is optimal for
    every proper score.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, or no labeled atom.
    """
    sample = pooled(p, y, weights, unlabeled)
    return corp_terms(sample, isotonic_fit(sample))


def corp_terms(sample: Sample, fit: IsotonicFit) -> CorpDecomposition:
    """Decompose the Brier score, given the isotonic fit of the sample."""
    score = mean_loss(sample, "brier")
    recalibrated = dot(fit.weight, _brier_of_share(fit.value)) / sample.total
    of_base_rate = float(_brier_of_share(np.array(sample.base_rate)))
    return CorpDecomposition(score, score - recalibrated, of_base_rate - recalibrated, of_base_rate)


def _brier_of_share(share: Floats) -> Floats:
    """Brier score of the forecast `share` if that share of atoms is true."""
    return share * (1 - share) ** 2 + (1 - share) * share**2


def _corp_scores(sample: Sample, _: SampleSettings) -> tuple[Estimate, ...]:
    terms = corp_terms(sample, isotonic_fit(sample))
    return (
        Estimate("corp_brier_miscalibration", terms.miscalibration),
        Estimate("corp_brier_discrimination", terms.discrimination),
        Estimate("corp_brier_uncertainty", terms.uncertainty),
    )


def _miscalibration(points: Forecasts, _: SampleSettings) -> DeviationScores:
    cells = Cells(points, neighbors(points))

    def scores(deviation: Floats) -> Floats:
        return _isotonic_gains(cells.weight, cells.mean_p + deviation / cells.weight, cells.mean_p)

    return _isotonic_direction(cells.from_calibration(scores), cells.weight, cells.mean_p)


def _discrimination(points: Forecasts, settings: SampleSettings) -> DeviationScores:
    """Deviations from the base rate, in the direction of the data's smooth calibration curve."""
    whole, cells = points.sample(), Cells(points, neighbors(points))
    base_rate = whole.base_rate

    def scores(deviation: Floats) -> Floats:
        return _isotonic_gains(cells.weight, base_rate + deviation / cells.weight, None)

    deviations = cells.from_base_rate(base_rate, scores)
    fit = None if whole.has_one_class else fit_curve(whole, whole, settings.clip)
    if fit is None or fit.status is not ScoreStatus.OK:
        return _isotonic_direction(deviations, cells.weight, base_rate)
    columns = curve_columns(whole, settings.clip)[: fit.coefficients.size]
    curve = sigmoid(fit.coefficients @ columns)
    # Discrimination is about the mean squared distance, so that increasing the distance by a share
    # increases the square by twice that share.
    squared = np.repeat((curve - base_rate) ** 2, points.sizes)
    mean = float((points.weights * squared).sum() / points.weights.sum())
    size = points.weights * (squared / max(mean, 1e-12) - 1) / 2
    return replace(
        deviations,
        direction=cells.weight * (cells.mean_of(curve) - base_rate),
        sums=cells.residuals(curve),
        size=points.response_sums(size),
    )


def _isotonic_direction(
    scores: DeviationScores, weight: Floats, forecast: Floats | float
) -> DeviationScores:
    """The scores, with the direction from the forecasts to the isotonic fit of the data."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(forecast + scores.deviation / weight, weights=weight).x
    return replace(scores, direction=weight * (fit - forecast))


def _isotonic_gains(weight: Floats, observed: Floats, forecast: Floats | None) -> Floats:
    """Reduction of the Brier score by isotonic recalibration, (...,).

    Args:
        weight: share of the weight in each cell, (n_cells,).
        observed: shares of true atoms, (..., n_cells), which noise may move outside [0, 1].
        forecast: probability of each cell; None for the overall share of true atoms.
    """
    from calibration.scores.kernels.samples import isotonic_gains

    rows = np.ascontiguousarray(observed.reshape(-1, weight.size))
    gains = np.empty(len(rows))
    before = np.zeros_like(weight) if forecast is None else forecast
    isotonic_gains(weight, rows, before, forecast is None, gains)
    return gains.reshape(observed.shape[:-1])


FAMILY = (
    ScoreDefinition(
        name="corp_brier_miscalibration",
        title="Miscalibration (Brier)",
        meaning="reduction of the Brier score by isotonic recalibration",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_sample=_corp_scores,
        deviations=_miscalibration,
        usual=2,
        column="MCB",
    ),
    ScoreDefinition(
        name="corp_brier_discrimination",
        title="Discrimination (Brier)",
        meaning="Brier score of the base rate minus that after recalibration",
        higher_is_better=True,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        range=(0.0, 0.25),
        of_sample=_corp_scores,
        deviations=_discrimination,
        usual=3,
        column="DSC",
    ),
    ScoreDefinition(
        name="corp_brier_uncertainty",
        title="Uncertainty (Brier)",
        meaning="Brier score of the base rate",
        higher_is_better=None,
        scale=Scale.NUMBER,
        interval=IntervalMethod.BASE_RATE,
        range=(0.0, 0.25),
        of_sample=_corp_scores,
        of_base_rate=lambda rates: rates * (1 - rates),
        of_labels=True,
        usual=4,
        column="UNC",
    ),
)
