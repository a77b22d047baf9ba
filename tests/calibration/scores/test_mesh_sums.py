"""Deposits on a mesh: sums of cubics are kept, and regressions on the mesh are those on points."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

import calibration.scores.families.logistic as module
from calibration.scores import calibration_line
from calibration.scores.mesh_sums import LAGRANGE, SPLINE, mesh_of
from tests.calibration.scored import scored


def test_interpolating_deposits_keep_sums_of_cubics() -> None:
    generator = np.random.default_rng(0)
    places = np.sort(np.append(generator.uniform(0, 12, 200), [0.0, 3.0, 12.0]))
    values = generator.normal(size=places.size)
    mesh = mesh_of(places, 12).deposit(values, LAGRANGE)
    nodes = np.arange(-1, 14)
    for power in range(4):
        # Sums of 200 numbers up to 12^3, rounded.
        assert mesh @ nodes**power == pytest.approx(values @ places**power, abs=1e-9)


def test_splines_have_the_weights_of_the_cubic_b_spline() -> None:
    from scipy.interpolate import BSpline

    spline = BSpline.basis_element(np.arange(-2, 3), extrapolate=False)
    for knot in (0.0, 0.3, 4.5, 5.999, 6.0):
        mesh = mesh_of(np.array([knot]), 6).deposit(np.array([2.0]), SPLINE)
        expected = 2 * np.nan_to_num(spline(np.arange(-1, 8) - knot))
        np.testing.assert_allclose(mesh, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("clip", [1e-6, 0.02])
def test_regressions_on_the_mesh_are_those_on_points(
    clip: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(1)
    p = np.append(generator.beta(0.4, 0.6, 2000), [0.0, 1.0])
    y = generator.random(p.size) < p**1.4
    weights = generator.integers(0, 3, p.size)
    names = ["calibration_slope", "calibration_in_the_large", "e90"]

    def all_numbers() -> list[float]:
        line = calibration_line(p, y, weights=weights, clip=clip)
        scores = scored(p, y, weights=weights, n_bootstrap=5, scores=names, clip=clip).values()
        return [
            *astuple(line)[:3],
            *(end for each in scores for end in (each.value, *each.interval)),
        ]

    on_points = all_numbers()
    monkeypatch.setattr(module, "MOST_POINTS", 1000)
    # What interpolation errs by is below the end of Newton's method.
    np.testing.assert_allclose(all_numbers(), on_points, rtol=0, atol=1e-10)
