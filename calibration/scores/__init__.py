"""Scores of probabilities against labels, one by one or all in a table with their intervals.

from calibration.scores import score_table
for row in score_table(p, y, responses=responses):
    ...

A weight is a number of atoms: an atom of weight 2 scores as the same atom given twice. Scores that
depend on how many atoms there are (debiased errors, tests, AURC) take the sum of weights for it.
"""

from __future__ import annotations

from calibration.forecasts import LOGIT_CLIP, Extremes, ScoreStatus
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
from calibration.scores.miscalibration.calibration_error import (
    calibration_error,
    ece_sweep,
)
from calibration.scores.miscalibration.decomposition import (
    CorpDecomposition,
    MurphyDecomposition,
    corp_decomposition,
    murphy_decomposition,
)
from calibration.scores.miscalibration.goodness_of_fit import (
    CalibrationTest,
    hosmer_lemeshow,
    spiegelhalter,
)
from calibration.scores.miscalibration.logistic_calibration import (
    CalibrationLine,
    FlexibleCalibration,
    Smoother,
    calibration_line,
    flexible_calibration,
)
from calibration.scores.miscalibration.smooth import smooth_ece
from calibration.scores.pointwise import (
    accuracy,
    brier,
    f1_true,
    log_loss,
    precision_errors,
    spherical,
)
from calibration.scores.ranking import auprc, auroc
from calibration.scores.registry import MEASURES, REGISTRY, ScoreDefinition
from calibration.scores.selective import RiskCoverage, risk_coverage
from calibration.scores.summary import (
    ResponseMeasures,
    Summary,
    measure_responses,
    summarise,
)
from calibration.scores.table import SCORES, ScoreRow, ScoreTable, score_table

__all__ = [
    "DECISION_TOLERANCE",
    "LOGIT_CLIP",
    "MEASURES",
    "REGISTRY",
    "SCORES",
    "CalibrationLine",
    "CalibrationTest",
    "CorpDecomposition",
    "Decisions",
    "Extremes",
    "FlexibleCalibration",
    "MurphyDecomposition",
    "ResponseMeasures",
    "RiskCoverage",
    "ScoreDefinition",
    "ScoreRow",
    "ScoreStatus",
    "ScoreTable",
    "Smoother",
    "Summary",
    "accuracy",
    "auprc",
    "auroc",
    "brier",
    "calibration_error",
    "calibration_line",
    "choose_k",
    "corp_decomposition",
    "decisions",
    "ece_sweep",
    "entropy_measure",
    "expected_precision",
    "f1_at_k",
    "f1_true",
    "factual_precision",
    "flexible_calibration",
    "hosmer_lemeshow",
    "log_loss",
    "mean_surprisal",
    "measure_responses",
    "murphy_decomposition",
    "precision_errors",
    "risk_coverage",
    "score_table",
    "smooth_ece",
    "spherical",
    "spiegelhalter",
    "summarise",
]
