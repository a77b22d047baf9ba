"""What tests of a difference share: the hypothesis against, and what has no test."""

from __future__ import annotations

import math
from enum import StrEnum

from calibration.estimate import Difference, ScoreStatus


class Alternative(StrEnum):
    """The hypothesis against no difference, about the first less the second."""

    TWO_SIDED = "two-sided"
    GREATER = "greater"
    LESS = "less"


def undecided(method: str, difference: float, n_responses: int) -> Difference:
    """Result of a test where nothing measures chance."""
    few = n_responses < 2
    return Difference(
        "difference",
        difference,
        status=ScoreStatus.TOO_FEW if few else ScoreStatus.NO_VARIATION,
        n=n_responses,
        method=method,
        p_value=1.0 if difference == 0 and not few else math.nan,
    )
