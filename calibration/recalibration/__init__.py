"""Recalibrators of probabilities, with the interface of scikit-learn estimators.

from calibration.recalibration import BestRecalibrator, BetaRecalibrator, cross_fit
better = cross_fit(BetaRecalibrator(), p, y, responses).p
chosen = cross_fit(BestRecalibrator(), p, y, responses).p  # in nested folds

Recalibrators are regressors and transformers, like scikit-learn's ``IsotonicRegression``. X is a
column of probabilities, (n,) or (n, 1), and y contains the labels. `predict` returns recalibrated
probabilities (n,); `transform` returns them in the shape of X, for use in a pipeline. `score`
returns R^2, which is 1 minus the ratio of the Brier score to the Brier score of the base rate.

This package imports scikit-learn; `import calibration` does not import this package.
"""

from __future__ import annotations

from calibration.recalibration.base import Recalibrator
from calibration.recalibration.best import BestRecalibrator
from calibration.recalibration.by_name import (
    AS_GIVEN,
    RECALIBRATORS,
    Recalibrations,
    recalibrations,
)
from calibration.recalibration.cross_fitting import CrossFitted, cross_fit, response_folds
from calibration.recalibration.nonparametric import HistogramRecalibrator, IsotonicRecalibrator
from calibration.recalibration.parametric import (
    BetaRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibration.recalibration.venn_abers import VennAbersRecalibrator

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
