"""How often the intervals of scores hold the truth, in simulations; where too seldom, a warning."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from calibration.scores.registry import REGISTRY

COVERAGE_GOAL = (0.93, 0.97)
"""What intervals of 95 % should cover; outside it a table gives what they do cover."""

SIMULATED_RESPONSES = (20, 50, 92)
"""How many responses the simulated data sets have."""

MEASURED: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "accuracy": (0.956, 0.958, 0.944),
        "auprc": (0.956, 0.943, 0.956),
        "aurc": (0.963, 0.955, 0.944),
        "aurc_claims": (0.965, 0.952, 0.962),
        "auroc": (0.96, 0.96, 0.944),
        "brier": (0.958, 0.956, 0.942),
        "calibration_in_the_large": (0.963, 0.954, 0.957),
        "calibration_intercept": (0.972, 0.953, 0.957),
        "calibration_slope": (0.968, 0.967, 0.953),
        "contradicted": (0.908, 0.91, 0.931),
        "corp_brier_discrimination": (0.941, 0.933, 0.937),
        "corp_brier_miscalibration": (0.988, 0.973, 0.967),
        "corp_brier_uncertainty": (0.983, 0.979, 0.979),
        "corp_log_loss_discrimination": (0.913, 0.919, 0.931),
        "corp_log_loss_miscalibration": (0.99, 0.982, 0.97),
        "corp_log_loss_uncertainty": (0.983, 0.979, 0.979),
        "e50": (0.91, 0.882, 0.853),
        "e90": (0.963, 0.936, 0.919),
        "ece": (0.983, 0.947, 0.925),
        "ece_classwise": (0.984, 0.938, 0.924),
        "ece_confidence": (0.975, 0.955, 0.931),
        "ece_debiased": (0.984, 0.942, 0.932),
        "ece_equal_mass": (0.986, 0.943, 0.933),
        "ece_sweep": (0.942, 0.915, 0.908),
        "emax": (0.974, 0.967, 0.938),
        "entropy": (0.932, 0.953, 0.945),
        "excess_aurc": (0.963, 0.958, 0.944),
        "excess_aurc_claims": (0.961, 0.948, 0.956),
        "expected_precision": (0.957, 0.944, 0.956),
        "f1": (0.968, 0.954, 0.945),
        "f1_at_k": (0.963, 0.944, 0.96),
        "human_precision": (0.969, 0.967, 0.96),
        "ici": (0.959, 0.927, 0.917),
        "log_loss": (0.957, 0.954, 0.946),
        "maximum_calibration_error": (0.992, 0.967, 0.955),
        "mean_surprisal": (0.942, 0.941, 0.953),
        "murphy_reliability": (0.987, 0.963, 0.942),
        "murphy_reliability_corrected": (0.985, 0.956, 0.944),
        "murphy_resolution": (0.977, 0.972, 0.971),
        "murphy_resolution_corrected": (0.976, 0.973, 0.969),
        "murphy_uncertainty": (0.983, 0.979, 0.979),
        "murphy_uncertainty_corrected": (0.993, 0.991, 0.979),
        "murphy_within_bin": (0.963, 0.963, 0.954),
        "precision": (0.963, 0.944, 0.965),
        "precision_mae": (0.946, 0.943, 0.958),
        "rms_calibration_error": (0.994, 0.966, 0.951),
        "rms_calibration_error_debiased": (0.989, 0.959, 0.943),
        "smooth_ece": (0.938, 0.893, 0.881),
        "spherical": (0.953, 0.956, 0.942),
        "supported": (0.907, 0.917, 0.935),
        "undecided": (0.978, 0.942, 0.944),
    }
)
"""Share of simulated data sets whose interval of 95 % held the truth, by the number of responses:
with responses of equal sizes or of very unequal ones, whichever is the farther from the goal.
`tests.calibration.coverage_simulation` writes this table."""


def coverage_warning(score: str, n_responses: int, level: float = 0.95) -> float:
    """Coverage of a score's interval where it is outside `COVERAGE_GOAL`, else nan.

    It is that of the largest simulated number of responses that is no larger; nan if there is none,
    or if the level is another than the simulated one.

    Args:
        score: name of the score.
        n_responses: number of responses.
        level: nominal coverage.
    """
    measured = MEASURED.get(score)
    smaller = sum(size <= n_responses for size in SIMULATED_RESPONSES)
    if measured is None or not smaller or level != 0.95:
        return math.nan
    coverage = measured[smaller - 1]
    low, high = COVERAGE_GOAL
    return math.nan if low <= coverage <= high else coverage


def coverage_remark(scores: Iterable[str], n_responses: int, level: float = 0.95) -> list[str]:
    """What a reader must know of intervals that cover too little or too much: a sentence, or none.

    Args:
        scores: names of the scores.
        n_responses: number of responses.
        level: nominal coverage.
    """
    found = {name: coverage_warning(name, n_responses, level) for name in scores}
    texts = [
        f"{REGISTRY[name].title} {share:.2f}"
        for name, share in found.items()
        if not math.isnan(share)
    ]
    if not texts:
        return []
    return [f"In simulations of so many responses such intervals cover: {', '.join(texts)}."]
