"""Conditional random fields of claims with potentials learned from labels.

from calibration.learned_potentials import learn_judge
judge = learn_judge(labeled)
p = judge.probabilities(judge.table(others))

The log odds of a claim are a function of its columns, linear or a PyTorch module. Hidden causes
join the claims of a sentence and of a response; they are summed out exactly.
"""

from __future__ import annotations

from calibration.learned_potentials.columns import (
    FAMILIES,
    RESPONSE,
    SENTENCE,
    ClaimTable,
    UserColumns,
    claim_table,
)
from calibration.learned_potentials.fitting import (
    Field,
    FieldSettings,
    Objective,
    fit_field,
    fit_fields,
)
from calibration.learned_potentials.judge import Judge, judged, learn_judge, read_judge
from calibration.learned_potentials.shift import Shift, ShiftStatus, shift_of

__all__ = [
    "FAMILIES",
    "RESPONSE",
    "SENTENCE",
    "ClaimTable",
    "Field",
    "FieldSettings",
    "Judge",
    "Objective",
    "Shift",
    "ShiftStatus",
    "UserColumns",
    "claim_table",
    "fit_field",
    "fit_fields",
    "judged",
    "learn_judge",
    "read_judge",
    "shift_of",
]
