"""Intervals over responses. Only this package redraws responses or linearizes their sums.

    replicates          weights of redrawn responses, and values of statistics under them
    methods             intervals from replicates or a standard error
    inversion           intervals by inverting tests, for scores that chance alone raises
    estimands           ratios of sums over responses, and functions of them, with influences
    estimand_intervals  intervals of many estimands at once

`calibration.scores.registry` assigns each score its method.
"""

from __future__ import annotations

from calibration.intervals.estimand_intervals import (
    SUM_METHODS,
    Estimates,
    IntervalSettings,
    SumMethod,
    estimate_all,
    mean_interval,
    redrawn_interval,
)
from calibration.intervals.estimands import (
    Estimand,
    PairedDifference,
    RatioSums,
    Smooth,
)
from calibration.intervals.inversion import (
    DeviationScores,
    Functional,
    inverted_intervals,
    redraw_noise,
)
from calibration.intervals.methods import (
    MOST_LEVERAGE,
    RARE_KIND,
    RARE_KIND_OF_ERRORS,
    IntervalMethod,
    Scale,
    clustered_standard_error,
    delta_interval,
    effective_number,
    expanded_percentile_interval,
    expanded_tail,
    missing_kind_warning,
    percentile_interval,
    satterthwaite_freedom,
    student_quantile,
    unseen_share,
    wilson_interval,
)
from calibration.intervals.replicates import (
    Ends,
    Statistic,
    drawn_weights,
    jackknife,
    jackknife_error,
    jackknife_weights,
    of_samples,
    reach,
    replicates,
    response_weights,
)

__all__ = [
    "MOST_LEVERAGE",
    "RARE_KIND",
    "RARE_KIND_OF_ERRORS",
    "SUM_METHODS",
    "DeviationScores",
    "Ends",
    "Estimand",
    "Estimates",
    "Functional",
    "IntervalMethod",
    "IntervalSettings",
    "PairedDifference",
    "RatioSums",
    "Scale",
    "Smooth",
    "Statistic",
    "SumMethod",
    "clustered_standard_error",
    "delta_interval",
    "drawn_weights",
    "effective_number",
    "estimate_all",
    "expanded_percentile_interval",
    "expanded_tail",
    "inverted_intervals",
    "jackknife",
    "jackknife_error",
    "jackknife_weights",
    "mean_interval",
    "missing_kind_warning",
    "of_samples",
    "percentile_interval",
    "reach",
    "redraw_noise",
    "redrawn_interval",
    "replicates",
    "response_weights",
    "satterthwaite_freedom",
    "student_quantile",
    "unseen_share",
    "wilson_interval",
]
