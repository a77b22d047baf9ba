"""Alternatives of tests of a difference, and results without a test."""

from __future__ import annotations

import math
from enum import StrEnum

from calibration.estimate import Difference, ScoreStatus


class Alternative(StrEnum):
    """Alternative hypothesis on the first method minus the second."""

    TWO_SIDED = "two-sided"
    GREATER = "greater"
    LESS = "less"


def undecided(method: str, difference: float, n_responses: int) -> Difference:
    """Result of a test if chance cannot be measured."""
    few = n_responses < 2
    return Difference(
        "difference",
        difference,
        status=ScoreStatus.TOO_FEW if few else ScoreStatus.NO_VARIATION,
        n=n_responses,
        method=method,
        p_value=1.0 if difference == 0 and not few else math.nan,
    )
