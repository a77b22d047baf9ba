"""What the curves share: checked settings, and replicates that draw whole responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibration.forecasts import Forecasts, Sample
from calibration.intervals.resampling import response_weights
from calibration.validation import open_interval, whole_number


def band_settings(n_bootstrap: Any, seed: Any, level: Any) -> tuple[int, int, float]:
    """Return number of replicates, seed and nominal coverage, checked.

    Raises:
        InputError: for a number of replicates below 1, a seed below 0, or a level outside (0, 1).
    """
    return (
        whole_number(n_bootstrap, "n_bootstrap", 1),
        whole_number(seed, "seed", 0),
        open_interval(level, "level", 0, 1),
    )


def tails(level: float) -> list[float]:
    """Return the shares of the replicates below and up to the ends of a central interval."""
    return [(1 - level) / 2, (1 + level) / 2]


def resampled(points: Forecasts, n_bootstrap: int, seed: int) -> Iterator[Sample]:
    """Yield bootstrap replicates, but for those that drew only atoms of weight 0."""
    for block in response_weights(points.n_responses, n_bootstrap, seed):
        for row in block:
            sample = points.sample(row)
            if sample.total > 0:
                yield sample
