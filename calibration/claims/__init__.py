"""Measures of FaStfact: counts of claims, their uncertainty, and agreement with human counts."""

from __future__ import annotations

from calibration.claims.agreement import (
    Agreement,
    ClaimEdits,
    claim_edits,
    label_agreement,
    token_similarity,
)
from calibration.claims.counts import (
    ClaimCounts,
    CountAlignment,
    count_alignment,
    f1_at_k_prime,
    gamma_like_f1_at_k,
    recall_at_k_prime,
)

__all__ = [
    "Agreement",
    "ClaimCounts",
    "ClaimEdits",
    "CountAlignment",
    "claim_edits",
    "count_alignment",
    "f1_at_k_prime",
    "gamma_like_f1_at_k",
    "label_agreement",
    "recall_at_k_prime",
    "token_similarity",
]
