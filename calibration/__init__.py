"""Calibration: probabilities, labels and response ids in; scores, intervals, curves and tests out.

from calibration import score
score([0.9, 0.4, 0.7], [True, False, None], ["r1", "r1", "r2"])["brier"].value

This package exports the most common names. Its modules export all others:

    scores          functions for single scores, and their registry
    intervals       intervals over responses
    curves          reliability, risk and coverage, groups
    recalibration   recalibrators of probabilities (they import scikit-learn, which is slow)
    filtering       selection of claims to keep, with a guarantee
    estimation      estimates from few labels and many probabilities; claims to label next
    claims          measures of sets of claims: counts, agreement, failures
    significance    paired tests and their corrections
    self_knowledge  a model's judgments of its own claims
    label_bias      a model's bias toward some answers, and its correction
    figures         figures for papers
    scoring         `score`: scores of models on the same claims, with intervals and paired tests
    cells           comparison of the cells of a long frame
    learned_potentials  potentials learned from labels; the only module that uses graphs
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
