"""Split R-hat and effective sample size: against NumPyro's, and where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from inference.sampling.diagnostics import effective_sample_size, split_chains, split_r_hat


def autoregressive(correlation: float, draws: int = 501) -> NDArray[np.float64]:
    """Return seven stationary AR(1) series in 4 chains, (4, draws, 7)."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, draws, 7))
    series = noise.copy()
    series[:, 0] /= np.sqrt(1.0 - correlation**2)
    for t in range(1, draws):
        series[:, t] = correlation * series[:, t - 1] + noise[:, t]
    return series


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_numpyro_agrees(correlation: float) -> None:
    reference = pytest.importorskip("numpyro.diagnostics")
    series = autoregressive(correlation)
    # The same formulas in doubles; transforms of other lengths round differently.
    np.testing.assert_allclose(
        split_r_hat(series), reference.split_gelman_rubin(series), rtol=1e-12
    )
    np.testing.assert_allclose(
        effective_sample_size(series), reference.effective_sample_size(series), rtol=1e-10
    )


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_autoregressive_series_have_the_size_that_theory_says(correlation: float) -> None:
    series = autoregressive(correlation, draws=4000)
    expected = 16_000 * (1.0 - correlation) / (1.0 + correlation)
    # The estimate of the autocorrelation time errs by some percent at this length.
    np.testing.assert_allclose(effective_sample_size(series).mean(), expected, rtol=0.1)


def test_chains_that_disagree_are_seen() -> None:
    series = autoregressive(0.5)
    series[0] += 5.0
    assert (split_r_hat(series) > 1.5).all()
    drifting = autoregressive(0.5) + np.linspace(0.0, 10.0, 501)[None, :, None]
    assert (split_r_hat(drifting) > 1.5).all()


def test_rank_normalization_would_change_nothing_for_an_indicator() -> None:
    indicator = (autoregressive(0.5) > 1.0).astype(np.float64)
    moved = 3.0 - 2.0 * indicator  # any two values: ranks of 0 and 1 are such
    np.testing.assert_allclose(split_r_hat(indicator), split_r_hat(moved), rtol=1e-12)
    np.testing.assert_allclose(
        effective_sample_size(indicator), effective_sample_size(moved), rtol=1e-9
    )


def test_antithetic_chains_are_worth_at_most_s_log10_s() -> None:
    alternating = np.tile([1.0, -1.0], (4, 250))[..., None] + 1e-3 * autoregressive(0.0, 500)
    np.testing.assert_allclose(effective_sample_size(alternating), 2000 * np.log10(2000))


def test_constant_series_say_nothing() -> None:
    constant = np.ones((4, 20, 1))
    assert np.isnan(split_r_hat(constant)).all()
    assert np.isnan(effective_sample_size(constant)).all()
    stuck = constant * np.arange(4)[:, None, None]
    assert np.isinf(split_r_hat(stuck)).all()
    assert (effective_sample_size(stuck) < 8.0).all()


def test_an_odd_draw_in_the_middle_is_left() -> None:
    series = np.arange(5.0)[None, :, None]
    assert split_chains(series)[..., 0].tolist() == [[0.0, 1.0], [3.0, 4.0]]
