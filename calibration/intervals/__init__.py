"""Intervals over responses: responses are redrawn, or their sums linearised, in this room alone.

    replicates  a statistic of redrawn responses: how weights are drawn
    methods     from replicates or a standard error to an interval
    estimands   ratios of sums over responses and functions of them, whose influences are known
    estimates   estimands with their intervals

Which method a score's interval has is said in `calibration.scores.registry`.
"""

from __future__ import annotations

from calibration.intervals.estimands import (
    Estimand,
    PairedDifference,
    RatioEstimand,
    RatioSums,
    Smooth,
)
from calibration.intervals.estimates import SUM_METHODS, Estimates, IntervalSettings, estimate_all
from calibration.intervals.methods import (
    IntervalMethod,
    Scale,
    basic_interval,
    bca_interval,
    clustered_standard_error,
    percentile_interval,
    student_quantile,
    studentised_interval,
    wilson_interval,
)
from calibration.intervals.replicates import (
    bootstrap_settings,
    jackknife_weights,
    of_samples,
    replicates,
    response_weights,
)

__all__ = [
    "SUM_METHODS",
    "Estimand",
    "Estimates",
    "IntervalMethod",
    "IntervalSettings",
    "PairedDifference",
    "RatioEstimand",
    "RatioSums",
    "Scale",
    "Smooth",
    "basic_interval",
    "bca_interval",
    "bootstrap_settings",
    "clustered_standard_error",
    "estimate_all",
    "jackknife_weights",
    "of_samples",
    "percentile_interval",
    "replicates",
    "response_weights",
    "student_quantile",
    "studentised_interval",
    "wilson_interval",
]
