"""Significance: paired tests, corrections, power and regression for claims that come in responses.

from calibration.significance import compare_methods
compare_methods({"exact": p, "lbp": q}, y, responses).rows()
"""

from __future__ import annotations

from calibration.significance.corrections import Correction, adjust, stars
from calibration.significance.mcnemar import (
    ClusteredMcNemar,
    clustered_mcnemar,
    clustered_mcnemar_counts,
    mcnemar,
    mcnemar_counts,
)
from calibration.significance.measures import MEASURES, Measure
from calibration.significance.outcome import Alternative, SignificanceStatus, SignificanceTest
from calibration.significance.paired import paired_bootstrap, paired_permutation, paired_t_test
from calibration.significance.power import (
    minimum_detectable_effect,
    responses_needed,
    standard_deviation_of_differences,
)
from calibration.significance.regression import (
    Regression,
    RegressionModel,
    RegressionStatus,
    correctness_regression,
)
from calibration.significance.table import (
    MethodCell,
    MethodTable,
    PairedTest,
    compare_judged,
    compare_methods,
)
from calibration.significance.table_text import as_latex, as_markdown

__all__ = [
    "MEASURES",
    "Alternative",
    "ClusteredMcNemar",
    "Correction",
    "Measure",
    "MethodCell",
    "MethodTable",
    "PairedTest",
    "Regression",
    "RegressionModel",
    "RegressionStatus",
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
    "mcnemar",
    "mcnemar_counts",
    "minimum_detectable_effect",
    "paired_bootstrap",
    "paired_permutation",
    "paired_t_test",
    "responses_needed",
    "standard_deviation_of_differences",
    "stars",
]
