"""CORP reliability curve: isotonic regression of labels on p, with a band over responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibration.curves.histograms import LabelCurve, about, histogram
from calibration.curves.label_draws import calibrated
from calibration.forecasts import Sample, forecasts
from calibration.intervals import (
    IntervalSettings,
    of_samples,
    percentile_interval,
    redrawn_interval,
)
from calibration.labels import LabelPolicy
from calibration.scores.families.corp import (
    CorpDecomposition,
    IsotonicFit,
    corp_terms,
    isotonic_fit,
)
from calibration.validation import Floats, Integers
from factormodels.errors import InputError

BANDS = ("confidence", "consistency", "none")

_GRID = 201


@dataclass(frozen=True, eq=False, repr=False)
class CorpCurve(LabelCurve):
    """The share of true atoms as an isotonic function of p, and a band.

    Attributes:
        p: float64 (m,), points of the curve: both ends of each step, ascending.
        recalibrated: float64 (m,), share of true atoms at each point.
        at: float64 (g,), positions of the band, from the smallest p to the largest.
        lower: float64 (g,), lower end of the band; empty without a band.
        upper: float64 (g,), upper end of the band; empty without a band.
        decomposition: the CORP terms of the Brier score.
        histogram: int64 (21,), number of atoms with p in each of 21 equal parts of [0, 1].
        band: ``confidence``, around the curve; ``consistency``, around the diagonal, for the curve
            of calibrated forecasts; or ``none``.
        n_atoms: number of atoms.
    """

    columns: ClassVar = ("p", "recalibrated")

    p: Floats
    recalibrated: Floats
    at: Floats
    lower: Floats
    upper: Floats
    decomposition: CorpDecomposition
    histogram: Integers
    band: str
    n_atoms: int


def corp_curve(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    responses: Any = None,
    band: str = "confidence",
    n_bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> CorpCurve:
    """CORP reliability curve (Dimitriadis, Gneiting and Jordan 2021) with a band.

    The band consists of pointwise percentiles. ``confidence`` resamples whole responses.
    ``consistency`` keeps the forecasts and draws calibrated labels, with the correlation of the
    data within responses (`calibration.curves.label_draws`). Without `responses` the labels are
    independent, as in the paper.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        responses: response ids (n,), or None if atoms are independent.
        band: ``confidence``, ``consistency`` or ``none``.
        n_bootstrap: number of replicates.
        seed: seed of the replicates.
        level: nominal coverage, between 0 and 1.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, no labeled atom, or a bad setting.
    """
    if band not in BANDS:
        raise InputError(f"band is {band!r}; choose one of {', '.join(BANDS)}")
    points = forecasts(p, y, weights, responses, unlabeled)
    how = IntervalSettings(n_bootstrap=n_bootstrap, seed=seed, level=level)
    whole = points.sample()
    fit = isotonic_fit(whole)
    at = np.linspace(points.p[0], points.p[-1], _GRID if points.p.size > 1 else 1)
    lower, upper = np.empty(0), np.empty(0)
    if band != "none":

        def curve(sample: Sample) -> Floats:
            return np.interp(at, *_corners(sample, isotonic_fit(sample)))

        if band == "confidence":
            lower, upper = redrawn_interval(of_samples(points, curve), points.n_responses, how)
        else:
            curves = np.array([curve(sample) for sample in calibrated(points, n_bootstrap, seed)])
            lower, upper = percentile_interval(curves, level)
    corners, values = _corners(whole, fit)
    return CorpCurve(
        p=corners,
        recalibrated=values,
        at=at,
        lower=lower,
        upper=upper,
        decomposition=corp_terms(whole, fit),
        histogram=histogram(points.p_of_atoms),
        band=band,
        level=level,
        **about(points),
    )


def _corners(sample: Sample, fit: IsotonicFit) -> tuple[Floats, Floats]:
    """p and value at both ends of each step of a fit, (2 b,) each."""
    p = sample.p[sample.present]
    last = np.append(fit.first[1:], p.size) - 1
    return np.stack([p[fit.first], p[last]], axis=1).ravel(), np.repeat(fit.value, 2)
