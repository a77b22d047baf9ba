"""Scores of probabilities against labels, one by one or all in a table with their intervals.

from calibration.scores import score_table
for row in score_table(p, y, responses=responses):
    ...

A weight is a number of atoms: an atom of weight 2 scores as the same atom given twice. Scores that
depend on how many atoms there are (debiased errors, tests, AURC) take the sum of weights for it.
"""

from __future__ import annotations

from calibration.forecasts import LOGIT_CLIP, Extremes, ScoreStatus
from calibration.scores.calibration_error import calibration_error
from calibration.scores.decomposition import CorpDecomposition, corp_decomposition
from calibration.scores.definition import ScoreDefinition
from calibration.scores.logistic_calibration import CalibrationLine, calibration_line
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
)
from calibration.scores.pointwise import brier, log_loss
from calibration.scores.ranking import auprc, auroc
from calibration.scores.registry import DEFAULT_MEASURES, MEASURES, REGISTRY, USUAL_MEASURES
from calibration.scores.selective import RiskCoverage, risk_coverage
from calibration.scores.smooth import smooth_ece
from calibration.scores.summary import (
    EstimatedScore,
    ResponseMeasures,
    Summary,
    estimate_scores,
    measure_responses,
    summarise,
)
from calibration.scores.table import SCORES, ScoreRow, ScoreTable, score_table

__all__ = [
    "DECISION_TOLERANCE",
    "DEFAULT_MEASURES",
    "LOGIT_CLIP",
    "MEASURES",
    "REGISTRY",
    "SCORES",
    "USUAL_MEASURES",
    "CalibrationLine",
    "CorpDecomposition",
    "Decisions",
    "EstimatedScore",
    "Extremes",
    "ResponseMeasures",
    "RiskCoverage",
    "ScoreDefinition",
    "ScoreRow",
    "ScoreStatus",
    "ScoreTable",
    "Summary",
    "auprc",
    "auroc",
    "brier",
    "calibration_error",
    "calibration_line",
    "choose_k",
    "corp_decomposition",
    "decisions",
    "entropy_measure",
    "estimate_scores",
    "expected_precision",
    "f1_at_k",
    "factual_precision",
    "log_loss",
    "mean_surprisal",
    "measure_responses",
    "risk_coverage",
    "score_table",
    "smooth_ece",
    "summarise",
]
