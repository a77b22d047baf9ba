"""Significance: paired tests and corrections for claims that come in responses.

from calibration.significance import compare_methods
compare_methods({"exact": p, "lbp": q}, y, responses).rows()
"""

from __future__ import annotations

from calibration.significance.comparison import PairedTest, compare_judged
from calibration.significance.corrections import Correction, adjust, stars
from calibration.significance.differences import ScoreDifference, score_difference
from calibration.significance.mcnemar import (
    ClusteredMcNemar,
    PlainMcNemar,
    clustered_mcnemar,
    clustered_mcnemar_counts,
    exact_mcnemar_by_response,
    mcnemar,
    mcnemar_counts,
)
from calibration.significance.outcome import Alternative, SignificanceStatus, SignificanceTest
from calibration.significance.paired import paired_bootstrap, paired_permutation, paired_t_test
from calibration.significance.table import MethodCell, MethodTable, compare_methods

__all__ = [
    "Alternative",
    "ClusteredMcNemar",
    "Correction",
    "MethodCell",
    "MethodTable",
    "PairedTest",
    "PlainMcNemar",
    "ScoreDifference",
    "SignificanceStatus",
    "SignificanceTest",
    "adjust",
    "clustered_mcnemar",
    "clustered_mcnemar_counts",
    "compare_judged",
    "compare_methods",
    "exact_mcnemar_by_response",
    "mcnemar",
    "mcnemar_counts",
    "paired_bootstrap",
    "paired_permutation",
    "paired_t_test",
    "score_difference",
    "stars",
]
