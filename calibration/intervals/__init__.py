"""Intervals over responses: responses are redrawn, or their sums linearized, in this room alone.

    replicates          a statistic of redrawn responses: how weights are drawn
    methods             from replicates or a standard error to an interval
    inversion           intervals of scores that chance alone raises, from tests of populations
    estimands           ratios of sums over responses and functions of them, of known influences
    estimand_intervals  their intervals, many at once

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
    IntervalMethod,
    Scale,
    clustered_standard_error,
    delta_interval,
    effective_number,
    expanded_percentile_interval,
    percentile_interval,
    student_quantile,
    wilson_interval,
)
from calibration.intervals.replicates import (
    Ends,
    Statistic,
    jackknife,
    jackknife_error,
    jackknife_weights,
    of_samples,
    reach,
    replicates,
    response_weights,
)

__all__ = [
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
    "effective_number",
    "estimate_all",
    "expanded_percentile_interval",
    "inverted_intervals",
    "jackknife",
    "jackknife_error",
    "jackknife_weights",
    "mean_interval",
    "of_samples",
    "percentile_interval",
    "reach",
    "redraw_noise",
    "redrawn_interval",
    "replicates",
    "response_weights",
    "student_quantile",
    "wilson_interval",
]
