"""Smooth calibration error (Blasiok and Nakkiran 2023): residuals smoothed by a kernel, no bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Estimate
from calibration.forecasts import Forecasts, Sample, pooled
from calibration.intervals import DeviationScores, IntervalMethod, Scale
from calibration.labels import LabelPolicy
from calibration.scores.cells import deviation_scores, residual_sums
from calibration.scores.definition import SampleSettings, ScoreDefinition
from calibration.scores.mesh_sums import SPLINE, mesh_of
from calibration.validation import Floats, open_interval

_CELLS = 1 << 14
_LEAST_BANDWIDTH = 4 / _CELLS

_N_BANDWIDTHS = 20


def smooth_ece(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    bandwidth: float | None = None,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> float:
    """Smooth expected calibration error (Blasiok and Nakkiran 2023).

    With a bandwidth s it is the integral over t in [0, 1] of |mean of (p - y) K(t, p)|, K the
    Gaussian kernel of standard deviation s reflected at 0 and 1. Without one, s is chosen so that
    the error equals s, which is the error that is returned. It is found on a mesh of 1/16384;
    errors of at most 1/4096 are given as that of a bandwidth of 1/4096.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None.
        bandwidth: standard deviation of the kernel, between 1/4096 and 10, or None to choose it.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, no labelled atom, or a bad bandwidth.
    """
    sample = pooled(p, y, weights, unlabelled)
    if bandwidth is None:
        return _chosen(sample)
    bandwidth = open_interval(bandwidth, "bandwidth", _LEAST_BANDWIDTH, 10)
    return _error(_cosines(sample), bandwidth)


def _smooth_scores(sample: Sample, _: SampleSettings) -> tuple[Estimate, ...]:
    return (Estimate("smooth_ece", _chosen(sample)),)


def _chosen(sample: Sample) -> float:
    from scipy.optimize import brentq

    cosines = _cosines(sample)
    least = _error(cosines, _LEAST_BANDWIDTH)
    if least <= _LEAST_BANDWIDTH:
        return least

    # The error falls as the bandwidth grows and is at most 1: one root.
    def gap(bandwidth: float) -> float:
        return _error(cosines, bandwidth) - bandwidth

    return float(brentq(gap, _LEAST_BANDWIDTH, 1.0, xtol=1e-12, rtol=1e-12))


def _cosines(sample: Sample) -> Floats:
    """Means of (p - y) cos(pi k p) for k = 0 to the number of cells.

    The reflected Gaussian is the heat kernel of [0, 1], whose eigenfunctions are these cosines:
    smoothing multiplies each by exp(-(pi k s)^2 / 2). Residuals go to mesh points by cubic
    B-splines, whose own factor is divided out.
    """
    from scipy.fft import dct

    places = sample.forecasts.remember("smooth", lambda: mesh_of(sample.p * _CELLS, _CELLS))
    wide = places.deposit(sample.weighted_p - sample.true, SPLINE)
    # What falls outside [0, 1] is reflected, like the kernel.
    mesh = wide[1:-1]
    mesh[1] += wide[0]
    mesh[-2] += wide[-1]
    # The transform counts inner points twice, to which a mass is split left and right.
    mesh[1:-1] /= 2
    k = np.arange(_CELLS + 1)
    cosines: Floats = dct(mesh, type=1) / np.sinc(k / (2 * _CELLS)) ** 4 / sample.total
    return cosines


def _error(cosines: Floats, bandwidth: float) -> float:
    """Integral of the absolute smoothed residual, given its cosine coefficients."""
    from scipy.fft import dct

    k = np.arange(cosines.size)
    smoothed = cosines * np.exp(-((np.pi * bandwidth * k) ** 2) / 2)
    curve = dct(smoothed, type=1)
    # The transform counts the last coefficient once, which no bandwidth here leaves above 0.
    left, right = np.abs(curve[:-1]), np.abs(curve[1:])
    area = (left + right) / 2
    crossing = curve[:-1] * curve[1:] < 0
    # Where the curve changes sign within a cell its absolute value is two triangles.
    left, right = left[crossing], right[crossing]
    area[crossing] = (left**2 + right**2) / (2 * (left + right))
    return float(area.sum() / _CELLS)


@dataclass(frozen=True, eq=False)
class MeshSmoothing:
    """Smoothing of residuals on a mesh of [0, 1] by the kernel, at some bandwidths.

    Attributes:
        widths: float64 (n_widths,), bandwidths, ascending to 1.
        matrices: float64 (n_widths, n_points, n_points), from residuals on the points of the mesh,
            both ends among them, to smoothed ones.
    """

    widths: Floats
    matrices: Floats


def mesh_smoothing(n_cells: int) -> MeshSmoothing:
    """Smoothing on a mesh of so many cells, down to the bandwidth of a cell."""
    from scipy.fft import dct

    k = np.arange(n_cells + 1)
    masses = np.diag(np.concatenate([[1.0], np.full(n_cells - 1, 0.5), [1.0]]))
    cosines = dct(masses, type=1) / np.sinc(k / (2 * n_cells)) ** 2
    widths = np.geomspace(1 / n_cells, 1.0, _N_BANDWIDTHS)
    kernels = np.exp(-((np.pi * widths[:, np.newaxis] * k) ** 2) / 2)
    return MeshSmoothing(widths, np.stack([dct(cosines * each, type=1) for each in kernels]))


def smooth_errors(residuals: Floats, smoothing: MeshSmoothing) -> Floats:
    """Smooth calibration error of each of many samples, (...), within a hundredth of itself.

    Errors of at most the least bandwidth are given as those of it, as `smooth_ece` does with its
    own: that of no residuals is 0.

    Args:
        residuals: sums of (p - y) on the points of the mesh, shared linearly, over the weight of
            all atoms, (..., n_points).
        smoothing: what smooths them.
    """
    rows = residuals.reshape(-1, residuals.shape[-1])
    n_cells = rows.shape[1] - 1
    ends = np.concatenate([[0.5], np.ones(n_cells - 1), [0.5]]) / n_cells
    widths = smoothing.widths
    # The gap between error and bandwidth falls as the bandwidth grows: look for the bandwidths
    # between which it changes sign by halving, all rows at once, and interpolate.
    above, below = (_gaps(rows, smoothing, at, ends) for at in (0, widths.size - 1))
    least = above + widths[0]
    first, last = np.zeros(len(rows), np.intp), np.full(len(rows), widths.size - 1)
    while (wide := last - first > 1).any():
        middle = (first + last) // 2
        for at in np.unique(middle[wide]):
            members = np.flatnonzero(wide & (middle == at))
            gaps = _gaps(rows[members], smoothing, at, ends)
            left = gaps > 0
            first[members[left]], above[members[left]] = at, gaps[left]
            last[members[~left]], below[members[~left]] = at, gaps[~left]
    share = np.clip(above / np.maximum(above - below, 1e-300), 0, 1)
    errors = widths[first] + share * (widths[last] - widths[first])
    errors = np.where(least <= widths[0], least, errors)
    return np.asarray(errors.reshape(residuals.shape[:-1]))


def _gaps(rows: Floats, smoothing: MeshSmoothing, at: int, ends: Floats) -> Floats:
    """Error less bandwidth of each row of residuals at one of the bandwidths."""
    gaps: Floats = np.abs(rows @ smoothing.matrices[at]) @ ends - smoothing.widths[at]
    return gaps


_LEAST_CELLS, _MOST_CELLS = 64, 512


def mesh_cells(points: Forecasts) -> int:
    """Number of cells of at most a quarter of the bandwidth, which is the error."""
    value = points.remember("smooth error", lambda: _chosen(points.sample()))
    wanted: int = 2 ** int(np.ceil(np.log2(4 / max(value, 1e-6))))
    return min(max(wanted, _LEAST_CELLS), _MOST_CELLS)


def mesh_deviations(points: Forecasts, n_cells: int) -> DeviationScores:
    """Residuals on a mesh of so many cells."""
    position = points.p * n_cells
    below = np.minimum(position.astype(np.int64), n_cells - 1)
    share = position - below
    halves = [
        residual_sums(points, number, n_cells + 1, points.p, part)
        for number, part in ((below, 1 - share), (below + 1, share))
    ]
    smoothing = mesh_smoothing(n_cells)
    return deviation_scores(
        points, halves[0] + halves[1], lambda deviation: smooth_errors(deviation, smoothing)
    )


FAMILY = (
    ScoreDefinition(
        name="smooth_ece",
        title="Smooth ECE",
        meaning="calibration error smoothed by a kernel as wide as itself",
        higher_is_better=False,
        scale=Scale.NUMBER,
        interval=IntervalMethod.INVERSION,
        of_sample=_smooth_scores,
        deviations=lambda points, _: mesh_deviations(points, mesh_cells(points)),
    ),
)
