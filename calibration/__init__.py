"""Calibration: probabilities, labels and response ids in; scores, intervals, curves and tests out.

from calibration import score
score([0.9, 0.4, 0.7], [True, False, None], ["r1", "r1", "r2"])["brier"].value

These are the names that one reaches for first; each folder exports the rest of its own:

    scores          every score, one by one; their registry
    intervals       the engine of all intervals over responses
    curves          reliability, risk and coverage, groups
    recalibration   maps from probabilities to better ones (scikit-learn, slow to load)
    estimation      few labels and many probabilities: shares, Brier, F1@K; what to label next
    claims          measures of sets of claims: counts, agreement, failures
    significance    paired tests and their corrections
    self_knowledge  what a model says of its own claims
    label_bias      what a model answers whatever it is asked, and probabilities without it
    figures         what a paper shows of all these
    scoring         `score`: models on the same claims, with intervals and tests between them
    cells           cells of a long frame: those that agree, pairs of them, the best
    learned_potentials  what labels teach: the one part that knows graphs
"""

from __future__ import annotations

from calibration.claims.counts import f1_at_k_prime
from calibration.curves import corp_curve, reliability_bins
from calibration.figures import reliability_diagram, save_figure
from calibration.labels import apply_policy
from calibration.scores import (
    auroc,
    brier,
    calibration_error,
    corp_decomposition,
    f1_at_k,
    factual_precision,
    log_loss,
)
from calibration.scoring import score

__all__ = [
    "apply_policy",
    "auroc",
    "brier",
    "calibration_error",
    "corp_curve",
    "corp_decomposition",
    "f1_at_k",
    "f1_at_k_prime",
    "factual_precision",
    "log_loss",
    "reliability_bins",
    "reliability_diagram",
    "save_figure",
    "score",
]
