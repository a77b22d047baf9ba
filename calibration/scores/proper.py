"""Proper scores of forecasts: the loss of each probability under either label, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from calibration.forecasts import Estimate, Forecasts, Sample, dot, finite_or_infinite
from calibration.validation import Floats


def brier_losses(p: Floats) -> tuple[Floats, Floats]:
    """Squared error of each p if the atom is true, and if it is false."""
    return (1 - p) ** 2, p**2


def log_losses(p: Floats) -> tuple[Floats, Floats]:
    """-ln of the probability given to the label, if true and if false; it may be inf."""
    with np.errstate(divide="ignore"):
        # log1p keeps what 1 - p would round away for p near 0; abs turns -0 into 0.
        return np.abs(np.log(p)), np.abs(np.log1p(-p))


def spherical_losses(p: Floats) -> tuple[Floats, Floats]:
    """1 - q/sqrt(p^2 + (1-p)^2), q the probability given to the label, if true and false.

    One minus the spherical score, so that 0 is perfect as in the other losses.
    """
    norm = np.hypot(p, 1 - p)
    return 1 - p / norm, 1 - (1 - p) / norm


LOSSES: Mapping[str, Callable[[Floats], tuple[Floats, Floats]]] = {
    "brier": brier_losses,
    "log_loss": log_losses,
    "spherical": spherical_losses,
}
"""Strictly proper losses by name; each gives the loss of p under a true and a false label."""


def point_losses(points: Forecasts, name: str) -> tuple[Floats, Floats]:
    """Losses of each distinct probability under a true and a false label, (m,) each."""
    return points.remember(("losses", name), lambda: LOSSES[name](points.p))


def mean_loss(sample: Sample, name: str) -> float:
    """Mean of a loss over a sample, which may be infinite."""
    if_true, if_false = point_losses(sample.forecasts, name)
    return (_weighted_sum(sample.true, if_true) + _weighted_sum(sample.false, if_false)) / (
        sample.total
    )


def proper_scores(sample: Sample) -> dict[str, Estimate]:
    """Mean of every loss of `LOSSES` over a sample."""
    return {name: finite_or_infinite(mean_loss(sample, name)) for name in LOSSES}


def _weighted_sum(weight: Floats, loss: Floats) -> float:
    """Sum of weight times loss, a weight of 0 against an infinite loss being 0.

    Probabilities ascend, so that only the first and the last loss can be infinite.
    """
    start, stop, ends = 0, loss.size, 0.0
    if np.isinf(loss[0]):
        start, ends = 1, np.inf if weight[0] > 0 else 0.0
    if stop > start and np.isinf(loss[-1]):
        stop -= 1
        ends = np.inf if weight[-1] > 0 else ends
    return dot(weight[start:stop], loss[start:stop]) + ends
