"""Registry of the quantities that can be estimated, by their names in commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from calibration.estimation.calibration_errors import ece
from calibration.estimation.cross_prediction import FoldJudges, cross_predicted, cross_ranked
from calibration.estimation.estimates import Inverted
from calibration.estimation.linear import Linearized
from calibration.estimation.quantiles import quantile, share_quantile
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
from calibration.estimation.regression import Coefficient, logistic, mean, ols

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
"""Ratios of sums over claims or responses."""

QUANTITIES: Mapping[str, Callable[..., Linearized | Inverted]] = MappingProxyType(
    {**RATIOS, "auroc": auroc, "ece": ece, "quantile": share_quantile}
)
"""Quantities of probabilities, labels and responses."""

REGRESSIONS: Mapping[str, Callable[..., list[Coefficient]]] = MappingProxyType(
    {"ols": ols, "logistic": logistic}
)
"""Regressions of labels on columns, each with several quantities."""

OF_NUMBERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"mean": mean, "quantile": quantile, "ols": ols}
)
"""Quantities for which labels may be any numbers; means and quantiles are then of the numbers."""

OF_LABELS = ("share", "mean-share", "f1-at-k", "quantile", *REGRESSIONS)
"""Quantities of labels alone, which are the same for all models of the same claims."""


def quantity_by_judges(
    name: str, judges: FoldJudges, labels: Any, responses: Any, **options: Any
) -> Linearized | Inverted:
    """Return a quantity of `QUANTITIES` from judges of folds, so that no label counts twice.

    Judges of different folds have different levels. `cross_predicted` separates levels from
    residuals of claims, and the AUROC uses a common scale. The ECE, and the claims that a threshold
    keeps, depend on the levels; the interval of the ECE allows for their error.

    Args:
        name: name of the quantity.
        judges: the judges of its claims.
        labels: labels (n,), as in `share`.
        responses: response ids (n,).
        options: further arguments of the quantity.
    """
    if name in RATIOS and name != "kept-precision":
        ratio = RATIOS[name]
        return cross_predicted(lambda p: ratio(p, labels, responses, **options), judges, responses)
    if name == "auroc":
        return cross_ranked(judges, labels, responses, **options)
    if name == "ece":
        options |= {"taught": True}
    return QUANTITIES[name](judges.unseen(), labels, responses, **options)
