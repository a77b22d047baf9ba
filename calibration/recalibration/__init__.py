"""Recalibration: estimators in the manner of scikit-learn that map probabilities to better ones.

from calibration.recalibration import BestRecalibrator, BetaRecalibrator, cross_fit
better = cross_fit(BetaRecalibrator(), p, y, responses).p
chosen = cross_fit(BestRecalibrator(), p, y, responses).p  # in nested folds

They are regressors and transformers, like scikit-learn's ``IsotonicRegression``: X is one column
of probabilities, (n,) or (n, 1), and y the labels. `predict` returns recalibrated probabilities
(n,), `transform` the same in the shape of X, so that they chain in a pipeline. `score` is R^2 of
the labels, which for probabilities is one minus the Brier score over that of the base rate.

This package imports scikit-learn; `import calibration` does not import this package.
"""

from __future__ import annotations

from calibration.recalibration.base import Recalibrator
from calibration.recalibration.best import BestRecalibrator
from calibration.recalibration.by_name import AS_GIVEN, Recalibrations, recalibrations
from calibration.recalibration.cross_fitting import CrossFitted, cross_fit, response_folds
from calibration.recalibration.nonparametric import HistogramRecalibrator, IsotonicRecalibrator
from calibration.recalibration.parametric import (
    BetaRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibration.recalibration.venn_abers import VennAbersRecalibrator

RECALIBRATORS: dict[str, type[Recalibrator]] = {
    "platt": PlattRecalibrator,
    "temperature": TemperatureRecalibrator,
    "beta": BetaRecalibrator,
    "isotonic": IsotonicRecalibrator,
    "histogram": HistogramRecalibrator,
    "venn_abers": VennAbersRecalibrator,
    "best": BestRecalibrator,
}
"""The estimators by the names that configurations use."""

__all__ = [
    "AS_GIVEN",
    "RECALIBRATORS",
    "BestRecalibrator",
    "BetaRecalibrator",
    "CrossFitted",
    "HistogramRecalibrator",
    "IsotonicRecalibrator",
    "PlattRecalibrator",
    "Recalibrations",
    "Recalibrator",
    "TemperatureRecalibrator",
    "VennAbersRecalibrator",
    "cross_fit",
    "recalibrations",
    "response_folds",
]
