"""Conformal filtering: selection of claims of new responses, with a guarantee.

from calibration.filtering import conformal_filter
conformal_filter(p, y, responses, precision=0.8).keep(new_p)

    conformal     a threshold, its guarantee, and its performance on held-out responses
    dependencies  scores under which a claim is kept only with the claims that it depends on
    combination   one score made from several scores of the same claims
    calibrator    thresholds by group, with scores and dependencies, and their file
"""

from __future__ import annotations

from calibration.filtering.calibrator import (
    Calibrator,
    ScoredClaims,
    calibrator_of,
    fit_calibrator,
    read_calibrator,
)
from calibration.filtering.combination import Combination, choose_scores
from calibration.filtering.conformal import (
    ConformalFilter,
    ConformalStatus,
    Guarantee,
    HeldOut,
    Promise,
    conformal_filter,
    exchangeability,
    filtered_precision,
    held_out,
)
from calibration.filtering.dependencies import supported_scores

__all__ = [
    "Calibrator",
    "Combination",
    "ConformalFilter",
    "ConformalStatus",
    "Guarantee",
    "HeldOut",
    "Promise",
    "ScoredClaims",
    "calibrator_of",
    "choose_scores",
    "conformal_filter",
    "exchangeability",
    "filtered_precision",
    "fit_calibrator",
    "held_out",
    "read_calibrator",
    "supported_scores",
]
