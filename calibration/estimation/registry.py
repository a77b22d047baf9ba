"""What can be estimated, by the name that a command has for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from calibration.estimation.calibration_errors import ece
from calibration.estimation.estimates import Inverted
from calibration.estimation.linear import Linearised
from calibration.estimation.quantiles import share_quantile
from calibration.estimation.quantities import (
    Quantity,
    accuracy,
    brier,
    f1_at_k,
    kept_precision,
    mean_share,
    share,
)
from calibration.estimation.ranking import auroc
from calibration.estimation.regression import Coefficient, logistic, ols

RATIOS: Mapping[str, Callable[..., Quantity]] = MappingProxyType(
    {
        "share": share,
        "mean-share": mean_share,
        "brier": brier,
        "f1-at-k": f1_at_k,
        "accuracy": accuracy,
        "kept-precision": kept_precision,
    }
)
"""Ratios of sums over claims, or responses."""

QUANTITIES: Mapping[str, Callable[..., Linearised | Inverted]] = MappingProxyType(
    {**RATIOS, "auroc": auroc, "ece": ece, "quantile": share_quantile}
)
"""Quantities of probabilities, labels and responses."""

REGRESSIONS: Mapping[str, Callable[..., list[Coefficient]]] = MappingProxyType(
    {"ols": ols, "logistic": logistic}
)
"""Regressions of labels on columns, which are several quantities each."""

OF_LABELS = ("share", "mean-share", "f1-at-k", "quantile", *REGRESSIONS)
"""Those that depend on labels alone: they are the same of all models of the same claims."""
