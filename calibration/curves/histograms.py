"""Base class of curves of labels against probabilities, and histograms of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.forecasts import Forecasts
from calibration.tabular import Tabular
from calibration.validation import Floats, Integers

HISTOGRAM_BINS = 21
"""Number of bins; it is odd, so that undecided atoms, P = 1/2, are in the middle of a bin."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelCurve(Tabular):
    """Common attributes of curves of labels against probabilities.

    Attributes:
        level: nominal coverage of its band at each point, or of its intervals.
        n_responses: number of responses, or None if they were not given.
        n_unlabeled: number of atoms without a label.
    """

    level: float
    n_responses: int | None
    n_unlabeled: int = 0


def about(points: Forecasts) -> dict[str, Any]:
    """Attributes of a curve that describe its forecasts, by name."""
    return {
        "n_atoms": points.y.size,
        "n_responses": points.n_responses if points.clustered else None,
        "n_unlabeled": points.n_unlabeled,
    }


def histogram(p: Floats) -> Integers:
    """Number of p in each of 21 equal parts of [0, 1], (21,); edges belong to the part below."""
    bounds = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)[1:-1]
    return np.bincount(np.searchsorted(bounds, p, side="left"), minlength=HISTOGRAM_BINS)
