"""Paired tests of methods for claims grouped in responses, and corrections of p-values.

from calibration.significance import score_difference
score_difference("brier", p, q, y, responses).interval
"""

from __future__ import annotations

from calibration.estimate import Difference
from calibration.significance.comparison import PairedTest, compare_judged, least_p_value
from calibration.significance.corrections import (
    Correction,
    adjust,
    least_corrected,
    stars,
    stars_legend,
    unattainable_stars,
)
from calibration.significance.differences import score_difference
from calibration.significance.mcnemar import (
    clustered_mcnemar_counts,
    exact_mcnemar_by_response,
)
from calibration.significance.outcome import Alternative
from calibration.significance.paired import paired_bootstrap, paired_permutation, paired_t_test

__all__ = [
    "Alternative",
    "Correction",
    "Difference",
    "PairedTest",
    "adjust",
    "clustered_mcnemar_counts",
    "compare_judged",
    "exact_mcnemar_by_response",
    "least_corrected",
    "least_p_value",
    "paired_bootstrap",
    "paired_permutation",
    "paired_t_test",
    "score_difference",
    "stars",
    "stars_legend",
    "unattainable_stars",
]
