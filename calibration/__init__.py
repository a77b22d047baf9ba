"""Calibration: arrays of probabilities, labels and response ids in; scores and curves out.

from calibration import summarise
summarise([0.9, 0.4, 0.7], [True, False, None], ["r1", "r1", "r2"]).brier
"""

from __future__ import annotations

from calibration.figures import reliability_diagram, save_figure
from calibration.labels import Labelled, LabelPolicy, apply_policy, label_array
from calibration.measures import (
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
from calibration.reliability import ReliabilityBins, reliability_bins
from calibration.scores import (
    accuracy,
    brier,
    f1_true,
    log_loss,
    mean_absolute_error_of_precision,
    precision_errors,
)
from calibration.summary import ResponseMeasures, Summary, measure_responses, summarise

__all__ = [
    "DECISION_TOLERANCE",
    "Decisions",
    "LabelPolicy",
    "Labelled",
    "ReliabilityBins",
    "ResponseMeasures",
    "Summary",
    "accuracy",
    "apply_policy",
    "brier",
    "choose_k",
    "decisions",
    "entropy_measure",
    "expected_precision",
    "f1_at_k",
    "f1_true",
    "factual_precision",
    "label_array",
    "log_loss",
    "mean_absolute_error_of_precision",
    "mean_surprisal",
    "measure_responses",
    "precision_errors",
    "recall_at_k",
    "reliability_bins",
    "reliability_diagram",
    "save_figure",
    "summarise",
]
