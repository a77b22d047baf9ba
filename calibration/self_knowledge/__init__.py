"""Self-Known and Self-Unknown: what a model says of its own claims, against what people say.

from calibration.self_knowledge import read_records, self_knowledge
self_knowledge(read_records("claims.jsonl"))["sigma"].estimate
"""

from __future__ import annotations

from calibration.intervals import Estimates, IntervalMethod, IntervalSettings
from calibration.self_knowledge.association import association
from calibration.self_knowledge.balance import in_sample_balance
from calibration.self_knowledge.claims import Average, Claims, Neither, as_claims
from calibration.self_knowledge.comparison import compare_conditions
from calibration.self_knowledge.formula import (
    SigmaStatus,
    clipped,
    emq,
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
from calibration.self_knowledge.prediction import (
    label_shift,
    out_of_sample,
    prediction_errors,
    transfer_errors,
)
from calibration.self_knowledge.refusals import (
    RefusalFilter,
    declining_clauses,
    filter_refusals,
)
from calibration.self_knowledge.simulation import (
    Truth,
    claims_of_counts,
    rejections,
    simulate_counts,
)
from factormodels.claims import ClaimLabel, ModelJudgement
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
    "ModelJudgement",
    "Neither",
    "PositionTable",
    "RefusalFilter",
    "Setting",
    "SigmaStatus",
    "Truth",
    "as_claims",
    "association",
    "claims_of_counts",
    "clipped",
    "compare_conditions",
    "declining_clauses",
    "emq",
    "filter_refusals",
    "flip_rates",
    "in_sample_balance",
    "label_positions",
    "label_shift",
    "out_of_sample",
    "prediction_errors",
    "read_records",
    "rejections",
    "rogan_gladen",
    "self_knowledge",
    "sigma",
    "sigma_status",
    "simulate_counts",
    "transfer_errors",
    "write_records",
]
