"""Sigma, Rogan and Gladen's estimate, EMQ, and the corners where they are not defined."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.self_knowledge import SigmaStatus, rogan_gladen, sigma, sigma_status
from calibration.self_knowledge.formula import sigma_slopes

GRID = np.linspace(0.0, 1.0, 21)
KNOWN, UNKNOWN = (axis.ravel() for axis in np.meshgrid(GRID, GRID))
DEFINED = ~((KNOWN == 1) & (UNKNOWN == 1))


def test_hand_value() -> None:
    # (1 - 0.4)/(2 - 0.4 - 0.8) = 0.6/0.8.
    assert float(sigma(0.8, 0.4)) == pytest.approx(0.75, abs=1e-15)


def test_sigma_solves_the_equation_that_defines_it() -> None:
    value = sigma(KNOWN, UNKNOWN)[DEFINED]
    known, unknown = KNOWN[DEFINED], UNKNOWN[DEFINED]
    np.testing.assert_allclose(value, known * value + (1 - unknown) * (1 - value), atol=1e-15)
    assert ((value >= 0) & (value <= 1)).all()


@pytest.mark.parametrize(("known", "unknown"), [(0.9, 0.3), (0.2, 0.6), (0.5, 0.5)])
def test_sigma_is_the_stationary_law_of_a_chain_of_two_states(known: float, unknown: float) -> None:
    chain = np.array([[known, 1 - known], [1 - unknown, unknown]])
    # The chain forgets at the rate of its second eigenvalue, at most 0.4 in size here.
    law = np.linalg.matrix_power(chain, 60)
    np.testing.assert_allclose(law[:, 0], float(sigma(known, unknown)), atol=1e-14)


def test_odds_of_sigma_are_those_of_factuality_times_fp_over_fn() -> None:
    generator = np.random.default_rng(0)
    right, wrong_no, wrong_yes, right_no = generator.integers(1, 200, (4, 500))
    supported, unsupported = right + wrong_no, wrong_yes + right_no
    value = sigma(right / supported, right_no / unsupported)
    odds = supported / unsupported * wrong_yes / wrong_no
    np.testing.assert_allclose(value / (1 - value), odds, rtol=1e-12)
    # So it is the factuality exactly where FP = FN.
    factuality = supported / (supported + unsupported)
    np.testing.assert_array_equal(np.sign(value - factuality), np.sign(wrong_yes - wrong_no))


def test_the_fixed_point_of_rogan_and_gladen_is_sigma() -> None:
    informed = np.abs(KNOWN + UNKNOWN - 1) > 1e-9
    value = sigma(KNOWN, UNKNOWN)
    known, unknown = KNOWN[informed & DEFINED], UNKNOWN[informed & DEFINED]
    fixed = value[informed & DEFINED]
    np.testing.assert_allclose(rogan_gladen(fixed, known, unknown), fixed, atol=1e-12)


def test_rogan_and_gladen_hand_values_and_corner() -> None:
    # q = 0.3 * 0.9 + 0.7 * 0.2 = 0.41 comes of a prevalence of 0.3.
    assert float(rogan_gladen(0.41, 0.9, 0.8)) == pytest.approx(0.3, abs=1e-15)
    assert float(rogan_gladen(0.1, 0.9, 0.8)) == pytest.approx(-0.1 / 0.7, abs=1e-15)
    # 0.9 + 0.1 is 1 but for rounding: nothing can be told.
    assert np.isnan(rogan_gladen(0.5, 0.9, 0.1))


def test_slopes_agree_with_finite_differences() -> None:
    known, unknown = (axis.ravel() for axis in np.meshgrid(GRID[1:-1], GRID[1:-1]))
    step = 1e-6
    in_known, in_unknown = sigma_slopes(known, unknown)
    # The grid stays 0.05 off the corner, where third derivatives are below 1e6.
    np.testing.assert_allclose(
        (sigma(known + step, unknown) - sigma(known - step, unknown)) / (2 * step),
        in_known,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        (sigma(known, unknown + step) - sigma(known, unknown - step)) / (2 * step),
        in_unknown,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("cell", "status", "value"),
    [
        ((np.nan, np.nan, 0, 0), SigmaStatus.EMPTY, np.nan),
        ((np.nan, 0.5, 0, 4), SigmaStatus.NO_SUPPORTED, np.nan),
        ((0.5, np.nan, 4, 0), SigmaStatus.NO_UNSUPPORTED, np.nan),
        ((1.0, 1.0, 4, 4), SigmaStatus.PERFECT, np.nan),
        ((0.9, 0.1, 10, 10), SigmaStatus.UNINFORMATIVE, 0.9),
        ((1.0, 0.0, 4, 4), SigmaStatus.UNINFORMATIVE, 1.0),
        ((0.0, 1.0, 4, 4), SigmaStatus.UNINFORMATIVE, 0.0),
        ((1.0, 0.5, 4, 4), SigmaStatus.ALWAYS_KNOWN, 1.0),
        ((0.5, 1.0, 4, 4), SigmaStatus.ALWAYS_UNKNOWN, 0.0),
        ((0.7, 0.6, 10, 10), SigmaStatus.OK, 0.4 / 0.7),
        ((0.0, 0.0, 4, 4), SigmaStatus.OK, 0.5),
    ],
)
def test_corners_are_named(
    cell: tuple[float, float, int, int], status: SigmaStatus, value: float
) -> None:
    assert sigma_status(*cell) == (status,)
    np.testing.assert_allclose(sigma(cell[0], cell[1]), value, atol=1e-15)
