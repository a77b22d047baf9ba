"""Simulated coverage of the intervals of scores, and warnings if it is not the nominal level.

The numbers are not fields of the definitions, because one simulation makes all of them: its command
prints this file's tables, and a score without numbers has no warning.
`tests/calibration/scores/test_coverage.py` compares their names with the registry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

COVERAGE_GOAL = (0.93, 0.97)
"""Acceptable coverage of 95% intervals; tables show the simulated coverage if it is outside."""

SIMULATED_RESPONSES = (20, 50, 92)
"""Numbers of responses of the simulated data sets."""

MEASURED: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "accuracy": (0.956, 0.958, 0.944),
        "ace": (0.99, 0.955, 0.927),
        "auprc": (0.956, 0.943, 0.956),
        "aurc": (0.963, 0.955, 0.944),
        "auroc": (0.959, 0.96, 0.944),
        "brier": (0.958, 0.956, 0.942),
        "calibration_in_the_large": (0.962, 0.954, 0.957),
        "calibration_intercept": (0.972, 0.953, 0.957),
        "calibration_slope": (0.968, 0.967, 0.953),
        "contradicted": (0.908, 0.91, 0.931),
        "corp_brier_discrimination": (0.941, 0.933, 0.937),
        "corp_brier_miscalibration": (0.988, 0.973, 0.967),
        "corp_brier_uncertainty": (0.983, 0.979, 0.979),
        "e90": (0.963, 0.936, 0.919),
        "ece": (0.983, 0.947, 0.925),
        "ece_debiased": (0.987, 0.946, 0.934),
        "ece_equal_mass": (0.986, 0.943, 0.933),
        "entropy": (0.932, 0.948, 0.945),
        "expected_precision": (0.957, 0.944, 0.956),
        "f1": (0.968, 0.954, 0.945),
        "f1_at_k": (0.963, 0.944, 0.96),
        "f1_by_response": (0.935, 0.944, 0.973),
        "human_precision": (0.969, 0.967, 0.96),
        "log_loss": (0.957, 0.955, 0.946),
        "mce": (0.992, 0.967, 0.955),
        "mean_surprisal": (0.942, 0.943, 0.953),
        "precision": (0.963, 0.944, 0.965),
        "precision_mae": (0.946, 0.943, 0.958),
        "prr": (0.938, 0.954, 0.948),
        "smooth_ece": (0.938, 0.893, 0.881),
        "supported": (0.907, 0.917, 0.935),
        "undecided": (0.978, 0.942, 0.944),
    }
)
"""Share of simulated data sets whose 95% interval contained the true value, by number of responses.
Responses had equal or very unequal sizes; the table has the coverage that is farther from the goal.
`python -m tests.calibration.coverage_simulation` prints the lines of both tables."""


MEASURED_DIFFERENCES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "accuracy": (0.931, 0.943, 0.942),
        "ace": (0.983, 0.956, 0.958),
        "auprc": (0.939, 0.947, 0.964),
        "aurc": (0.944, 0.963, 0.967),
        "auroc": (0.922, 0.947, 0.939),
        "brier": (0.919, 0.953, 0.939),
        "calibration_in_the_large": (0.939, 0.942, 0.958),
        "calibration_intercept": (0.953, 0.962, 0.958),
        "calibration_slope": (0.969, 0.964, 0.95),
        "contradicted": (0.939, 0.933, 0.947),
        "corp_brier_discrimination": (0.936, 0.96, 0.956),
        "corp_brier_miscalibration": (1.0, 0.992, 0.978),
        "e90": (0.983, 0.983, 0.978),
        "ece": (0.983, 0.96, 0.956),
        "ece_debiased": (0.978, 0.958, 0.961),
        "ece_equal_mass": (0.969, 0.953, 0.958),
        "entropy": (0.944, 0.936, 0.925),
        "expected_precision": (0.942, 0.931, 0.953),
        "f1": (0.928, 0.946, 0.947),
        "f1_at_k": (0.942, 0.942, 0.947),
        "f1_by_response": (0.908, 0.936, 0.947),
        "log_loss": (0.917, 0.94, 0.947),
        "mce": (1.0, 0.993, 0.992),
        "mean_surprisal": (0.944, 0.947, 0.958),
        "precision": (0.928, 0.939, 0.947),
        "precision_mae": (0.933, 0.926, 0.972),
        "prr": (0.933, 0.951, 0.975),
        "smooth_ece": (0.872, 0.89, 0.897),
        "supported": (0.939, 0.933, 0.947),
    }
)
"""The same for intervals of the difference between two methods on the same claims."""


COVERS = (
    "Coverage: how often intervals for this number of responses contained the truth in "
    "simulations, if that differs from their level."
)
"""Remark that explains the column ``coverage``."""


def coverage_warning(
    score: str, n_responses: int, level: float = 0.95, *, difference: bool = False
) -> float:
    """Coverage of a score's interval if it is outside `COVERAGE_GOAL`, else nan.

    The coverage is taken at the largest simulated number of responses up to `n_responses`. It is
    nan if there is none, or if `level` was not simulated.

    Args:
        score: name of the score.
        n_responses: number of responses.
        level: nominal coverage.
        difference: whether the interval is of the difference between two methods.
    """
    measured = (MEASURED_DIFFERENCES if difference else MEASURED).get(score)
    smaller = sum(size <= n_responses for size in SIMULATED_RESPONSES)
    if measured is None or not smaller or level != 0.95:
        return math.nan
    coverage = measured[smaller - 1]
    low, high = COVERAGE_GOAL
    return math.nan if low <= coverage <= high else coverage
