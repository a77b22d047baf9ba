"""Quantities that can be estimated, by their names in commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from calibration.estimation.calibration_errors import ece
from calibration.estimation.cross_prediction import FoldJudges, cross_predicted
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
"""Ratios of sums over claims, or responses."""

QUANTITIES: Mapping[str, Callable[..., Linearized | Inverted]] = MappingProxyType(
    {**RATIOS, "auroc": auroc, "ece": ece, "quantile": share_quantile}
)
"""Quantities of probabilities, labels and responses."""

REGRESSIONS: Mapping[str, Callable[..., list[Coefficient]]] = MappingProxyType(
    {"ols": ols, "logistic": logistic}
)
"""Regressions of labels on columns, which are several quantities each."""

OF_NUMBERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"mean": mean, "quantile": quantile, "ols": ols}
)
"""Those that labels may be numbers of any size for; means and quantiles are then of the numbers."""

OF_LABELS = ("share", "mean-share", "f1-at-k", "quantile", *REGRESSIONS)
"""Those that depend on labels alone: they are the same of all models of the same claims."""


def quantity_by_judges(
    name: str, judges: FoldJudges, labels: Any, responses: Any, **options: Any
) -> Linearized | Inverted:
    """Return a quantity of `QUANTITIES` by the judges of folds, so that no label counts twice.

    Judges of folds differ in their levels. `cross_predicted` separates the levels from surprises
    about claims, and the AUROC uses one scale. In the ECE and in the claims that a threshold keeps,
    levels count.

    Args:
        name: name of the quantity.
        judges: the judges of its claims.
        labels: labels (n,), as `share` takes them.
        responses: response ids (n,).
        options: further arguments of the quantity.
    """
    if name in RATIOS and name != "kept-precision":
        ratio = RATIOS[name]
        return cross_predicted(lambda p: ratio(p, labels, responses, **options), judges, responses)
    p = judges.on_one_scale() if name == "auroc" else judges.unseen()
    return QUANTITIES[name](p, labels, responses, **options)
