"""The posterior of the parameters: NUTS and SVI against a grid and maximum likelihood."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from calibration.learned_priors import (
    ParameterPosterior,
    Specification,
    fit,
    fit_posterior,
    sample_posterior,
)
from calibration.learned_priors.objectives import differences
from calibration.learned_priors.posterior import target
from factormodels import FactGraph, MissingDependencyError
from factormodels.synthetic import labelled_responses
from tests.refusals import refused

SPECIFICATION = Specification(encoding="conditional")


@pytest.fixture(scope="module")
def data() -> tuple[FactGraph, ...]:
    return labelled_responses(60, n_atoms=3, contexts_per_atom=1, seed=1)


@pytest.fixture(scope="module")
def grid(data: tuple[FactGraph, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the posterior, by sums over a grid of six standard deviations."""
    density = target(data, SPECIFICATION, 2.0, "exact")
    axis = np.linspace(-6.0, 6.0, 25)
    points = np.array([(x, y) for x in axis for y in axis])
    logs = np.array([density.log_density(z)[0] for z in points])
    weights = np.exp(logs - logs.max())
    weights = np.asarray(weights / weights.sum())
    theta = np.asarray(density.mode + points @ density.root.T)
    mean = np.asarray(weights @ theta)
    away = theta - mean
    return mean, np.asarray((away.T * weights) @ away)


def agrees(found: ParameterPosterior, mean: np.ndarray, covariance: np.ndarray) -> None:
    draws = found.draws.reshape(-1, 2)
    deviations = np.sqrt(np.diag(covariance))
    # Means of some 200 effective draws err by 0.07 standard deviations, these by 0.04.
    assert np.abs((draws.mean(axis=0) - mean) / deviations).max() < 0.2
    np.testing.assert_allclose(draws.std(axis=0), deviations, rtol=0.2)
    correlation = covariance[0, 1] / deviations.prod()
    assert np.asarray(np.corrcoef(draws.T))[0, 1] == pytest.approx(correlation, abs=0.2)


def test_the_density_has_its_gradient(data: tuple[FactGraph, ...]) -> None:
    density = target(data, SPECIFICATION, 2.0, "exact")
    rng = np.random.default_rng(0)
    for z in rng.normal(size=(5, 2)):
        slopes = differences(lambda x: density.log_density(x)[0], z, 1e-4)
        np.testing.assert_allclose(density.log_density(z)[1], slopes, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_nuts_agrees_with_a_grid(
    data: tuple[FactGraph, ...], grid: tuple[np.ndarray, np.ndarray]
) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("numpyro")
    before = jax.config.jax_enable_x64
    found = sample_posterior(data, SPECIFICATION, chains=2, warm_up=80, draws=200, seed=1)
    assert jax.config.jax_enable_x64 == before
    assert found.draws.shape == (2, 200, 2)
    assert found.divergences == 0
    assert (found.r_hat < 1.05).all()
    assert (found.effective_draws > 100).all()
    agrees(found, *grid)


@pytest.mark.slow
def test_svi_agrees_with_a_grid(
    data: tuple[FactGraph, ...], grid: tuple[np.ndarray, np.ndarray]
) -> None:
    torch = pytest.importorskip("torch")
    pyro = pytest.importorskip("pyro")
    pyro.get_param_store().clear()
    before = torch.random.get_rng_state()
    found = fit_posterior(data, SPECIFICATION, steps=250, particles=2, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not list(pyro.get_param_store().keys())
    # The bound starts at the mode's curvature already: it must not fall.
    assert found.bounds[-50:].mean() > found.bounds[:50].mean() - 0.05
    assert np.isnan(found.r_hat).all()
    agrees(found, *grid)


def test_the_posterior_is_near_maximum_likelihood(
    data: tuple[FactGraph, ...], grid: tuple[np.ndarray, np.ndarray]
) -> None:
    learned = fit(data, SPECIFICATION)
    mean, covariance = grid
    # 180 labels against priors of standard deviation 2: half a standard error of pull at most.
    assert np.abs((learned.theta - mean) / np.sqrt(np.diag(covariance))).max() < 0.5


def test_a_table_and_graphs_come_of_draws(data: tuple[FactGraph, ...]) -> None:
    density = target(data, SPECIFICATION, 2.0, "exact")
    rng = np.random.default_rng(2)
    draws = density.mode + 0.1 * rng.normal(size=(2, 100, 2))
    found = ParameterPosterior(
        *(SPECIFICATION, density.parameters, draws, np.ones(2), np.full(2, 200.0), "nuts", 2.0),
        *(0, np.zeros(0), 0),
    )
    prior, temperature = found.table(0.5)
    flat = draws.reshape(-1, 2)
    assert prior.mean == pytest.approx((1 / (1 + np.exp(-flat[:, 0]))).mean())
    assert temperature.upper == pytest.approx(np.exp(np.quantile(flat[:, 1], 0.75)), rel=1e-3)
    applied = found.apply(data[0])
    assert applied.atoms[0].prior == pytest.approx(1 / (1 + np.exp(-flat[:, 0].mean())))


def test_bad_input_is_refused(data: tuple[FactGraph, ...]) -> None:
    for call in (sample_posterior, fit_posterior):
        refused("'wmb' gives no gradient of its log Z", call, data, SPECIFICATION, backend="wmb")
        refused("prior_scale is -1", call, data, SPECIFICATION, prior_scale=-1)
        refused("draws is 3; give a whole number of at least 4", call, data, SPECIFICATION, draws=3)


def test_a_missing_library_is_named(
    data: tuple[FactGraph, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    monkeypatch.setitem(sys.modules, "pyro", None)
    with pytest.raises(MissingDependencyError, match=r"factorfacts\[jax\]"):
        sample_posterior(data, SPECIFICATION)
    with pytest.raises(MissingDependencyError, match=r"factorfacts\[pyro\]"):
        fit_posterior(data, SPECIFICATION)
