"""Alternatives of tests of a difference, differences as extreme, and results without a test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from calibration.estimate import Difference, ScoreStatus
from calibration.validation import Floats


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


def extremes(
    differences: Floats, observed: Floats, alternatives: Sequence[Alternative], margin: float
) -> NDArray[np.bool_]:
    """Mask of differences (b, k) that are undefined or at least as extreme as the observed."""
    tails = {
        Alternative.TWO_SIDED: np.abs(differences) < np.abs(observed) - margin,
        Alternative.GREATER: differences < observed - margin,
        Alternative.LESS: differences > observed + margin,
    }
    inner = [tails[side][:, column] for column, side in enumerate(alternatives)]
    return ~np.stack(inner, axis=1)
