"""Few labels and many probabilities: estimates of what labels of all claims would give.

from calibration.estimation import estimate, share
estimate(share(p, y, responses))

    quantities   what is estimated: shares of true claims, Brier, F1@K
    estimates    intervals from labels and predictions, clustered by response; differences
    sampling     which claims or responses to label next, and what each then counts as
"""

from __future__ import annotations

from calibration.estimation.estimates import EstimateInterval, PoweredEstimate, difference, estimate
from calibration.estimation.quantities import (
    QUANTITIES,
    Quantity,
    brier,
    f1_at_k,
    mean_share,
    minus,
    share,
)
from calibration.estimation.sampling import (
    Unit,
    batch_weights,
    draw,
    inclusion_probabilities,
    planned_error,
    planned_freedom,
    spread,
)

__all__ = [
    "QUANTITIES",
    "EstimateInterval",
    "PoweredEstimate",
    "Quantity",
    "Unit",
    "batch_weights",
    "brier",
    "difference",
    "draw",
    "estimate",
    "f1_at_k",
    "inclusion_probabilities",
    "mean_share",
    "minus",
    "planned_error",
    "planned_freedom",
    "share",
    "spread",
]
