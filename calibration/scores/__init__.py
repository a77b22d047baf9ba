"""Functions for single scores of probabilities against labels, and the registry of scores.

from calibration.scores import REGISTRY, auroc, brier
auroc(p, y), REGISTRY["auroc"].meaning

A weight is a number of atoms: an atom of weight 2 counts as two equal atoms. Scores that depend on
the number of atoms (debiased errors, tests, AURC) use the sum of weights.
"""

from __future__ import annotations

from calibration.estimate import Estimate, ScoreStatus
from calibration.forecasts import LOGIT_CLIP, Extremes
from calibration.scores.definition import ScoreDefinition
from calibration.scores.families.binned import calibration_error
from calibration.scores.families.corp import CorpDecomposition, corp_decomposition
from calibration.scores.families.logistic import CalibrationLine, calibration_line
from calibration.scores.families.pointwise import brier, log_loss
from calibration.scores.families.ranking import auprc, auroc
from calibration.scores.families.smooth import smooth_ece
from calibration.scores.measures import (
    DECISION_TOLERANCE,
    choose_k,
    entropy_measure,
    expected_precision,
    f1_at_k,
    factual_precision,
    mean_surprisal,
)
from calibration.scores.registry import DEFAULT_MEASURES, MEASURES, REGISTRY, USUAL_SCORES
from calibration.scores.response_measures import measure_responses

__all__ = [
    "DECISION_TOLERANCE",
    "DEFAULT_MEASURES",
    "LOGIT_CLIP",
    "MEASURES",
    "REGISTRY",
    "USUAL_SCORES",
    "CalibrationLine",
    "CorpDecomposition",
    "Estimate",
    "Extremes",
    "ScoreDefinition",
    "ScoreStatus",
    "auprc",
    "auroc",
    "brier",
    "calibration_error",
    "calibration_line",
    "choose_k",
    "corp_decomposition",
    "entropy_measure",
    "expected_precision",
    "f1_at_k",
    "factual_precision",
    "log_loss",
    "mean_surprisal",
    "measure_responses",
    "smooth_ece",
]
