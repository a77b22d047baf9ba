"""Smooth calibration error from residuals smoothed by a kernel (Blasiok and Nakkiran 2023)."""

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
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> float:
    """Smooth expected calibration error (Blasiok and Nakkiran 2023).

    The error with bandwidth s is the integral over t in [0, 1] of |mean of (p - y) K(t, p)|, where
    K is the Gaussian kernel with standard deviation s, reflected at 0 and 1. Without a bandwidth,
    the function returns the error that equals its bandwidth. It is computed on a mesh of width
    1/16384; errors below 1/4096 are replaced by the error with bandwidth 1/4096.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        bandwidth: standard deviation of the kernel, between 1/4096 and 10, or None to choose it.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, no labeled atom, or a bad bandwidth.
    """
    sample = pooled(p, y, weights, unlabeled)
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

    # The error is at most 1 and decreases in the bandwidth, so that there is a single root.
    def gap(bandwidth: float) -> float:
        return _error(cosines, bandwidth) - bandwidth

    return float(brentq(gap, _LEAST_BANDWIDTH, 1.0, xtol=1e-12, rtol=1e-12))


def _cosines(sample: Sample) -> Floats:
    """Means of (p - y) cos(pi k p) for k = 0 to the number of cells.

    The reflected Gaussian is the heat kernel of [0, 1], whose eigenfunctions are these cosines:
    smoothing multiplies each by exp(-(pi k s)^2 / 2). Cubic B-splines distribute residuals to mesh
    points; the factor of the splines is divided out.
    """
    from scipy.fft import dct

    places = sample.forecasts.remember("smooth", lambda: mesh_of(sample.p * _CELLS, _CELLS))
    wide = places.deposit(sample.weighted_p - sample.true, SPLINE)
    # Mass outside [0, 1] is reflected, like the kernel.
    mesh = wide[1:-1]
    mesh[1] += wide[0]
    mesh[-2] += wide[-1]
    # The transform counts inner points twice.
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
    # The transform counts the last coefficient once, but it is 0 at every bandwidth used here.
    left, right = np.abs(curve[:-1]), np.abs(curve[1:])
    area = (left + right) / 2
    crossing = curve[:-1] * curve[1:] < 0
    # If the curve changes sign within a cell, its absolute value consists of two triangles.
    left, right = left[crossing], right[crossing]
    area[crossing] = (left**2 + right**2) / (2 * (left + right))
    return float(area.sum() / _CELLS)


@dataclass(frozen=True, eq=False)
class MeshSmoothing:
    """Kernel smoothing of residuals on a mesh of [0, 1], at several bandwidths.

    Attributes:
        widths: float64 (n_widths,), bandwidths, ascending to 1.
        matrices: float64 (n_widths, n_points, n_points), from residuals on the points of the mesh,
            including both ends, to smoothed residuals.
    """

    widths: Floats
    matrices: Floats


def mesh_smoothing(n_cells: int) -> MeshSmoothing:
    """Smoothing on a mesh of `n_cells` cells, with bandwidths from the width of a cell."""
    from scipy.fft import dct

    k = np.arange(n_cells + 1)
    masses = np.diag(np.concatenate([[1.0], np.full(n_cells - 1, 0.5), [1.0]]))
    cosines = dct(masses, type=1) / np.sinc(k / (2 * n_cells)) ** 2
    widths = np.geomspace(1 / n_cells, 1.0, _N_BANDWIDTHS)
    kernels = np.exp(-((np.pi * widths[:, np.newaxis] * k) ** 2) / 2)
    return MeshSmoothing(widths, np.stack([dct(cosines * each, type=1) for each in kernels]))


def smooth_errors(residuals: Floats, smoothing: MeshSmoothing) -> Floats:
    """Smooth calibration error of each of many samples, (...), with a relative error of 1%.

    Errors below the smallest bandwidth are replaced by the error with that bandwidth, as in
    `smooth_ece`. The error of zero residuals is 0.

    Args:
        residuals: sums of (p - y), distributed linearly to the points of the mesh and divided by
            the weight of all atoms, (..., n_points).
        smoothing: the smoothing matrices.
    """
    rows = residuals.reshape(-1, residuals.shape[-1])
    n_cells = rows.shape[1] - 1
    ends = np.concatenate([[0.5], np.ones(n_cells - 1), [0.5]]) / n_cells
    widths = smoothing.widths
    # The error minus the bandwidth decreases in the bandwidth. Bisect to find the two bandwidths
    # between which it changes sign, for all rows at once, and interpolate.
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
    """Error minus bandwidth of each row of residuals, at the bandwidth with index `at`."""
    gaps: Floats = np.abs(rows @ smoothing.matrices[at]) @ ends - smoothing.widths[at]
    return gaps


_LEAST_CELLS, _MOST_CELLS = 64, 512


def mesh_cells(points: Forecasts) -> int:
    """Number of cells whose width is at most a quarter of the data's smooth error."""
    value = points.remember("smooth error", lambda: _chosen(points.sample()))
    wanted: int = 2 ** int(np.ceil(np.log2(4 / max(value, 1e-6))))
    return min(max(wanted, _LEAST_CELLS), _MOST_CELLS)


def mesh_deviations(points: Forecasts, n_cells: int) -> DeviationScores:
    """Deviations of the smooth error, from residuals on a mesh of `n_cells` cells."""
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
