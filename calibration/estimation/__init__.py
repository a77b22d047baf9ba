"""Estimates of quantities over all claims, from few labels and many probabilities.

from calibration.estimation import estimate, share
estimate(share(p, y, responses))

    quantities          shares of true claims, Brier, accuracy, precision of kept claims, F1@K
    ranking, calibration_errors, quantiles, regression   further quantities, a file each
    cross_prediction    predictions of judges trained on the labels, in folds of responses
    registry            all quantities by name
    estimates           intervals from labels and predictions, clustered by response; differences
    sampling            choice of claims or responses to label next, and weights of their labels
"""

from __future__ import annotations

from calibration.estimation.calibration_errors import ece
from calibration.estimation.cross_prediction import FoldJudges, cross_predicted
from calibration.estimation.estimates import EstimateInterval, PoweredEstimate, difference, estimate
from calibration.estimation.quantiles import quantile, share_quantile
from calibration.estimation.quantities import (
    Quantity,
    accuracy,
    brier,
    f1_at_k,
    kept_precision,
    mean_share,
    minus,
    share,
)
from calibration.estimation.ranking import auroc
from calibration.estimation.registry import (
    OF_LABELS,
    OF_NUMBERS,
    QUANTITIES,
    RATIOS,
    REGRESSIONS,
    quantity_by_judges,
)
from calibration.estimation.regression import logistic, mean, ols
from calibration.estimation.sampling import (
    CALIBRATED,
    Balance,
    ResidualLaw,
    Unit,
    balance,
    batch_weights,
    draw,
    inclusion_probabilities,
    observed_residuals,
    planned_error,
    planned_freedom,
    spread,
    stratified_order,
)

__all__ = [
    "CALIBRATED",
    "OF_LABELS",
    "OF_NUMBERS",
    "QUANTITIES",
    "RATIOS",
    "REGRESSIONS",
    "Balance",
    "EstimateInterval",
    "FoldJudges",
    "PoweredEstimate",
    "Quantity",
    "ResidualLaw",
    "Unit",
    "accuracy",
    "auroc",
    "balance",
    "batch_weights",
    "brier",
    "cross_predicted",
    "difference",
    "draw",
    "ece",
    "estimate",
    "f1_at_k",
    "inclusion_probabilities",
    "kept_precision",
    "logistic",
    "mean",
    "mean_share",
    "minus",
    "observed_residuals",
    "ols",
    "planned_error",
    "planned_freedom",
    "quantile",
    "quantity_by_judges",
    "share",
    "share_quantile",
    "spread",
    "stratified_order",
]
