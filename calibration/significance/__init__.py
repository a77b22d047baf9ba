"""Paired tests of methods for claims grouped in responses, and corrections of p-values.

from calibration.significance import score_difference
score_difference("brier", p, q, y, responses).interval

Each test has a file, for all scores: `permutation` swaps two methods in whole responses,
`bootstrap` redraws whole responses, and `student` has SciPy's t-test of a number per response. The
independent unit is the response, because claims of a response share a subject, a retrieval and a
context. The tests compare a ratio of sums over responses (`ratio_differences`), or any function of
weighted forecasts (`sample_differences`), such as AUROC. `mcnemar` has the tests of counts.

Other modules have other tests: whether an accuracy is above that of a constant answer
(`label_bias.scores`), whether old and new responses have the same distribution
(`filtering.conformal`), and whether new evidence is a mixture of the evidence for known claims
(`learned_potentials.shift` and `harm`, which redraw both data sets).
"""

from __future__ import annotations

from calibration.estimate import Difference
from calibration.significance.bootstrap import paired_bootstrap
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
from calibration.significance.permutation import paired_permutation
from calibration.significance.student import paired_t_test, student_p_values

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
    "student_p_values",
    "unattainable_stars",
]
