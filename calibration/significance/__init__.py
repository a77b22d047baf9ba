"""Significance: paired tests, corrections, power and regression for claims that come in responses.

from calibration.significance import compare_methods
compare_methods({"exact": p, "lbp": q}, y, responses).rows()
"""

from __future__ import annotations

from calibration.significance.comparison import Comparison, PairedTest, compare_judged
from calibration.significance.corrections import Correction, adjust, stars
from calibration.significance.differences import ScoreDifference, score_difference
from calibration.significance.equivalence import EquivalenceTest, paired_equivalence
from calibration.significance.mcnemar import (
    ClusteredMcNemar,
    PlainMcNemar,
    clustered_mcnemar,
    clustered_mcnemar_counts,
    exact_mcnemar_by_response,
    mcnemar,
    mcnemar_counts,
)
from calibration.significance.method_measures import MEASURES, USUAL_MEASURES, Measure
from calibration.significance.outcome import Alternative, SignificanceStatus, SignificanceTest
from calibration.significance.paired import paired_bootstrap, paired_permutation, paired_t_test
from calibration.significance.power import (
    SampleSize,
    SampleSizes,
    equivalence_power,
    minimum_detectable_effect,
    responses_for_equivalence,
    responses_needed,
    sample_size_table,
    standard_deviation_of_differences,
)
from calibration.significance.regression import (
    GeeErrors,
    Regression,
    RegressionModel,
    RegressionStatus,
    correctness_regression,
)
from calibration.significance.table import MethodCell, MethodTable, compare_methods
from calibration.significance.table_text import as_latex, as_markdown

__all__ = [
    "MEASURES",
    "USUAL_MEASURES",
    "Alternative",
    "ClusteredMcNemar",
    "Comparison",
    "Correction",
    "EquivalenceTest",
    "GeeErrors",
    "Measure",
    "MethodCell",
    "MethodTable",
    "PairedTest",
    "PlainMcNemar",
    "Regression",
    "RegressionModel",
    "RegressionStatus",
    "SampleSize",
    "SampleSizes",
    "ScoreDifference",
    "SignificanceStatus",
    "SignificanceTest",
    "adjust",
    "as_latex",
    "as_markdown",
    "clustered_mcnemar",
    "clustered_mcnemar_counts",
    "compare_judged",
    "compare_methods",
    "correctness_regression",
    "equivalence_power",
    "exact_mcnemar_by_response",
    "mcnemar",
    "mcnemar_counts",
    "minimum_detectable_effect",
    "paired_bootstrap",
    "paired_equivalence",
    "paired_permutation",
    "paired_t_test",
    "responses_for_equivalence",
    "responses_needed",
    "sample_size_table",
    "score_difference",
    "standard_deviation_of_differences",
    "stars",
]
