"""The smooth calibration error against quadrature of its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from calibration.scores import smooth_ece
from tests.refusals import refused


def by_quadrature(p: np.ndarray, y: np.ndarray, bandwidth: float) -> float:
    """Return the integral of the absolute smoothed residual, from its definition, by SciPy."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    shifts = 2.0 * np.arange(-3, 4)
    images = np.concatenate([sign * p - shifts[:, np.newaxis] for sign in (1, -1)])

    def residual(t: float) -> float:
        densities = np.exp(-0.5 * ((t - images) / bandwidth) ** 2).sum(axis=0)
        return float(np.mean((p - y) * densities)) / (bandwidth * math.sqrt(2 * math.pi))

    grid = np.linspace(0, 1, 400)
    signs = np.sign([residual(t) for t in grid])
    roots = [
        brentq(residual, grid[i], grid[i + 1], xtol=1e-14)
        for i in np.flatnonzero(signs[1:] != signs[:-1])
    ]
    ends = [0.0, *roots, 1.0]
    areas = [
        abs(quad(residual, low, high, epsabs=1e-13, limit=200)[0])
        for low, high in itertools.pairwise(ends)
    ]
    return float(np.sum(areas))


@pytest.mark.parametrize(
    ("bandwidth", "tolerance"),
    # The trapezoid on a mesh of h = 1/16384 errs by about h^2 times the slopes at sign changes,
    # which grow as the bandwidth falls.
    [(0.3, 1e-9), (0.1, 2e-9), (0.05, 5e-9), (0.01, 5e-7)],
)
def test_agreement_with_quadrature(bandwidth: float, tolerance: float) -> None:
    generator = np.random.default_rng(1)
    p = np.append(generator.random(30), [0.0, 1.0])
    y = generator.random(32) < 0.3 + 0.4 * p
    expected = by_quadrature(p, y, bandwidth)
    assert smooth_ece(p, y, bandwidth=bandwidth) == pytest.approx(expected, abs=tolerance)


def test_the_chosen_bandwidth_is_the_error() -> None:
    generator = np.random.default_rng(2)
    p = generator.random(500)
    y = generator.random(500) < p**2
    error = smooth_ece(p, y)
    # The root is found to 1e-12, by bandwidths a rounding apart.
    assert smooth_ece(p, y, bandwidth=error) == pytest.approx(error, abs=1e-10)
    assert by_quadrature(p[:40], y[:40], smooth_ece(p[:40], y[:40])) == pytest.approx(
        smooth_ece(p[:40], y[:40]), abs=2e-9
    )


def test_hand_values() -> None:
    # Residuals of one sign leave nothing to cancel: the mean residual, whatever the bandwidth.
    for bandwidth in (0.01, 0.2, None):
        error = smooth_ece([0.2, 0.5, 0.9], [1, 1, 1], bandwidth=bandwidth)
        assert error == pytest.approx((0.8 + 0.5 + 0.1) / 3, abs=1e-12)
    # A kernel far wider than [0, 1] is flat: residuals cancel.
    assert smooth_ece([0.2, 0.9], [1, 0], bandwidth=9) == pytest.approx(0.05, abs=1e-12)
    # Far narrower than the distance between atoms: no residuals cancel.
    assert smooth_ece([0.2, 0.8], [1, 0], bandwidth=0.01) == pytest.approx(0.8, abs=1e-9)


def test_the_error_falls_as_the_bandwidth_grows() -> None:
    generator = np.random.default_rng(3)
    p = generator.beta(0.4, 0.4, 300)
    y = generator.random(300) < p
    errors = [smooth_ece(p, y, bandwidth=width) for width in np.geomspace(0.001, 2, 40)]
    # Each is exact to about 1e-6 at the narrowest.
    assert (np.diff(errors) < 1e-6).all()


def test_errors_below_the_mesh_are_not_rounded_up() -> None:
    assert smooth_ece([0.0, 1.0], [0, 1]) == 0.0
    y = np.arange(4000) % 2 == 0
    for p in (0.5, 0.50001):
        # Residuals at one place have the sign of their sum: the error is |p - 1/2|.
        assert smooth_ece(np.full(4000, p), y) == pytest.approx(p - 0.5, abs=1e-12)


def test_the_bandwidth_is_checked() -> None:
    for bandwidth in (0, 1e-5, 10, "wide", True):
        refused("bandwidth is", smooth_ece, [0.2, 0.9], [1, 0], bandwidth=bandwidth)
