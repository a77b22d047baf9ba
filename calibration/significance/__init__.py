"""Paired tests of methods for claims grouped in responses, and corrections of p-values.

from calibration.significance import score_difference
score_difference("brier", p, q, y, responses).interval

A test has one engine, whatever the score: `paired.swap_test` for permutations of responses,
`intervals.replicates` for redrawn responses, and SciPy's `ttest_rel`. What differs is the statistic
that they are given: a ratio of sums over responses (`paired`), which a matrix product computes for
all swaps at once, or any function of weighted forecasts (`sample_tests`), such as AUROC. P-values
of redrawn ratios match the expanded percentile interval beside them. Other scores have
an interval of another method, and their redrawn differences are centered at 0.
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
