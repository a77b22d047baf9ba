"""Self-Known and Self-Unknown: a model's judgments of its own claims against human labels.

from calibration.self_knowledge import read_records, self_knowledge
self_knowledge(read_records("claims.jsonl"))["sigma"].estimate
"""

from __future__ import annotations

from calibration.intervals import Estimates, IntervalMethod, IntervalSettings
from calibration.self_knowledge.balance import in_sample_balance
from calibration.self_knowledge.claims import Average, Claims, Neither, as_claims
from calibration.self_knowledge.comparison import compare_conditions
from calibration.self_knowledge.formula import (
    SigmaStatus,
    rogan_gladen,
    sigma,
    sigma_status,
)
from calibration.self_knowledge.positions import (
    PositionTable,
    flip_rates,
    label_positions,
    self_knowledge,
)
from calibration.self_knowledge.prediction import out_of_sample, prediction_errors
from calibration.self_knowledge.refusals import (
    RefusalFilter,
    declining_clauses,
    filter_refusals,
)
from calibration.self_knowledge.trends import TrendStatus, position_trends
from factormodels.claims import ClaimLabel, ModelJudgment
from factormodels.io.claim_records import (
    ClaimRecord,
    Setting,
    read_records,
    write_records,
)

__all__ = [
    "Average",
    "ClaimLabel",
    "ClaimRecord",
    "Claims",
    "Estimates",
    "IntervalMethod",
    "IntervalSettings",
    "ModelJudgment",
    "Neither",
    "PositionTable",
    "RefusalFilter",
    "Setting",
    "SigmaStatus",
    "TrendStatus",
    "as_claims",
    "compare_conditions",
    "declining_clauses",
    "filter_refusals",
    "flip_rates",
    "in_sample_balance",
    "label_positions",
    "out_of_sample",
    "position_trends",
    "prediction_errors",
    "read_records",
    "rogan_gladen",
    "self_knowledge",
    "sigma",
    "sigma_status",
    "write_records",
]
