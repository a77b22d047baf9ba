"""Calibration: arrays of probabilities, labels and response ids in; scores and curves out.

from calibration import summarise
summarise([0.9, 0.4, 0.7], [True, False, None], ["r1", "r1", "r2"]).brier

Recalibration builds on scikit-learn, which is slow to load: `from calibration.recalibration import
PlattRecalibrator` says so.
"""

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
from calibration.claims.failures import Failure, FailureRow, failure_table, redundancy_failures
from calibration.curves import (
    CorpCurve,
    GroupCalibration,
    LabelHistogram,
    RiskCurve,
    corp_curve,
    group_calibration,
    interval_groups,
    label_histogram,
    risk_curve,
)
from calibration.curves.reliability import ReliabilityBins, reliability_bins
from calibration.figures import reliability_diagram, save_figure
from calibration.figures.curves import (
    corp_diagram,
    group_figure,
    risk_coverage_figure,
    score_histograms,
)
from calibration.labels import Labelled, LabelPolicy, apply_policy, label_array
from calibration.scores import (
    SCORES,
    ScoreRow,
    auprc,
    auroc,
    calibration_error,
    calibration_line,
    classwise_error,
    confidence_error,
    corp_decomposition,
    ece_sweep,
    flexible_calibration,
    hosmer_lemeshow,
    murphy_decomposition,
    risk_coverage,
    score_table,
    smooth_ece,
    spiegelhalter,
)
from calibration.scores.measures import (
    DECISION_TOLERANCE,
    Decisions,
    choose_k,
    decisions,
    entropy_measure,
    expected_precision,
    f1_at_k,
    factual_precision,
    mean_surprisal,
    recall_at_k,
)
from calibration.scores.pointwise import (
    accuracy,
    brier,
    f1_true,
    log_loss,
    mean_absolute_error_of_precision,
    precision_errors,
    spherical,
)
from calibration.scores.summary import ResponseMeasures, Summary, measure_responses, summarise

__all__ = [
    "DECISION_TOLERANCE",
    "SCORES",
    "Agreement",
    "ClaimCounts",
    "ClaimEdits",
    "CorpCurve",
    "CountAlignment",
    "Decisions",
    "Failure",
    "FailureRow",
    "GroupCalibration",
    "LabelHistogram",
    "LabelPolicy",
    "Labelled",
    "ReliabilityBins",
    "ResponseMeasures",
    "RiskCurve",
    "ScoreRow",
    "Summary",
    "accuracy",
    "apply_policy",
    "auprc",
    "auroc",
    "brier",
    "calibration_error",
    "calibration_line",
    "choose_k",
    "claim_edits",
    "classwise_error",
    "confidence_error",
    "corp_curve",
    "corp_decomposition",
    "corp_diagram",
    "count_alignment",
    "decisions",
    "ece_sweep",
    "entropy_measure",
    "expected_precision",
    "f1_at_k",
    "f1_at_k_prime",
    "f1_true",
    "factual_precision",
    "failure_table",
    "fit_gamma",
    "flexible_calibration",
    "gamma_like_f1_at_k",
    "group_calibration",
    "group_figure",
    "hosmer_lemeshow",
    "interval_groups",
    "label_agreement",
    "label_array",
    "label_histogram",
    "log_loss",
    "mean_absolute_error_of_precision",
    "mean_edits",
    "mean_surprisal",
    "measure_responses",
    "murphy_decomposition",
    "precision_errors",
    "recall_at_k",
    "recall_at_k_prime",
    "redundancy_failures",
    "reliability_bins",
    "reliability_diagram",
    "risk_coverage",
    "risk_coverage_figure",
    "risk_curve",
    "save_figure",
    "score_histograms",
    "score_table",
    "smooth_ece",
    "spherical",
    "spiegelhalter",
    "summarise",
    "token_similarity",
]
