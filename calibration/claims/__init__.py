"""Claims as FaStfact counts them: numbers of claims, agreement with people's, kinds of failure."""

from __future__ import annotations

from calibration.claims.agreement import (
    Agreement,
    ClaimEdits,
    claim_edits,
    label_agreement,
    mean_edits,
    token_similarity,
)
from calibration.claims.counts import (
    ClaimCounts,
    CountAlignment,
    count_alignment,
    f1_at_k_prime,
    fit_gamma,
    gamma_like_f1_at_k,
    recall_at_k_prime,
)
from calibration.claims.failures import (
    FailureCategory,
    FailureKind,
    FailureRow,
    failure_table,
    redundancy_failures,
)

__all__ = [
    "Agreement",
    "ClaimCounts",
    "ClaimEdits",
    "CountAlignment",
    "FailureCategory",
    "FailureKind",
    "FailureRow",
    "claim_edits",
    "count_alignment",
    "f1_at_k_prime",
    "failure_table",
    "fit_gamma",
    "gamma_like_f1_at_k",
    "label_agreement",
    "mean_edits",
    "recall_at_k_prime",
    "redundancy_failures",
    "token_similarity",
]
