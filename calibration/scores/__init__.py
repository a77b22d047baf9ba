"""Scores of probabilities against labels, one by one or all in a table with their intervals.

from calibration.scores import score_table
for row in score_table(p, y, responses=responses):
    ...

A weight is a number of atoms: an atom of weight 2 scores as the same atom given twice. Scores that
depend on how many atoms there are (debiased errors, tests, AURC) take the sum of weights for it.
"""

from __future__ import annotations

from calibration.forecasts import LOGIT_CLIP, Status
from calibration.scores.calibration_error import (
    calibration_error,
    classwise_error,
    confidence_error,
    ece_sweep,
)
from calibration.scores.decomposition import (
    CorpDecomposition,
    MurphyDecomposition,
    corp_decomposition,
    murphy_decomposition,
)
from calibration.scores.goodness_of_fit import CalibrationTest, hosmer_lemeshow, spiegelhalter
from calibration.scores.logistic_calibration import (
    CalibrationLine,
    FlexibleCalibration,
    calibration_line,
    flexible_calibration,
)
from calibration.scores.ranking import auprc, auroc
from calibration.scores.selective import RiskCoverage, risk_coverage
from calibration.scores.smooth import smooth_ece
from calibration.scores.table import SCORES, ScoreRow, score_table

__all__ = [
    "LOGIT_CLIP",
    "SCORES",
    "CalibrationLine",
    "CalibrationTest",
    "CorpDecomposition",
    "FlexibleCalibration",
    "MurphyDecomposition",
    "RiskCoverage",
    "ScoreRow",
    "Status",
    "auprc",
    "auroc",
    "calibration_error",
    "calibration_line",
    "classwise_error",
    "confidence_error",
    "corp_decomposition",
    "ece_sweep",
    "flexible_calibration",
    "hosmer_lemeshow",
    "murphy_decomposition",
    "risk_coverage",
    "score_table",
    "smooth_ece",
    "spiegelhalter",
]
