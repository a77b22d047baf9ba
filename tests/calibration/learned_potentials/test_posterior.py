"""The posterior of potentials: held against the optimum, its curvature, and the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration.learned_potentials.graph_fitting import fit_potentials
from calibration.learned_potentials.graph_loss import learning_problem
from calibration.learned_potentials.graph_potentials import Potentials
from factormodels import Atom, FactGraph
from inference import infer
from tests.calibration.learned_potentials.data import GENERATOR, TRUTH, generated
from tests.refusals import refused

pytestmark = pytest.mark.slow


def sampled(*graphs_and_potentials: Any, **settings: Any) -> Any:
    """Call `sample_posterior`, whose module imports NumPyro; without it a test is skipped."""
    pytest.importorskip("numpyro")
    from calibration.learned_potentials.posterior import sample_posterior

    return sample_posterior(*graphs_and_potentials, **settings)


@pytest.mark.nightly
def test_draws_are_about_the_optimum_as_its_curvature_says() -> None:
    # Priors of weights are about what graphs state: here the truth is well inside.
    graphs = [graph.with_priors(contexts=0.75) for graph in generated(60, 1)]
    samples = sampled(graphs, GENERATOR, scale=1.0, n_warmup=60, n_draws=100)
    assert samples.divergences == 0
    fit = fit_potentials(graphs, GENERATOR, penalty=1.0)
    problem = learning_problem(graphs, GENERATOR, fit.weights, "exact")
    laplace = np.linalg.inv(problem.hessian(fit.theta) + np.eye(len(fit.theta)))
    errors = np.sqrt(np.diag(laplace))
    # 100 draws, about half of them as good as independent: a mean errs by a seventh of a standard
    # deviation, and a posterior of 240 labels is skewed by about a tenth.
    assert np.all(np.abs(samples.draws.mean(axis=0) - fit.theta) < 0.4 * errors)
    np.testing.assert_allclose(samples.draws.std(axis=0), errors, rtol=0.3)
    for name, values in samples.values.items():
        # It fails by chance once in a hundred draws of responses.
        low, high = np.quantile(values, [0.005, 0.995])
        assert low < TRUTH[name] < high


def test_lone_claims_have_the_posterior_that_can_be_integrated() -> None:
    # Three labels and a narrow prior: what the prior says is as much as what the labels say.
    atoms = tuple(Atom(f"a{at}", label=True) for at in range(3))
    graph = FactGraph("r", atoms)
    chosen = Potentials(("atom_prior",))
    samples = sampled([graph], chosen, scale=1.0, n_warmup=100, n_draws=300)
    grid = np.linspace(-6, 6, 4001)
    log_density = -3 * np.logaddexp(0, -grid) - grid**2 / 2
    weights = np.exp(log_density - log_density.max())
    mean = float(weights @ grid / weights.sum())
    spread = math.sqrt(float(weights @ (grid - mean) ** 2 / weights.sum()))
    # Five standard errors of the mean of draws, a third of them as good as independent.
    assert samples.draws.mean() == pytest.approx(mean, abs=5 * spread / math.sqrt(300 / 3))
    assert samples.draws.std() == pytest.approx(spread, rel=0.25)
    under = [infer(g.to_factor_graph()).marginals["a0"][1] for g in samples.graphs(graph, 3)]
    assert under == pytest.approx(samples.values["atom_prior"][[0, 150, 299]], abs=1e-9)


def test_a_bound_has_no_posterior() -> None:
    refused("'wmb' has no beliefs", sampled, generated(3, 0), GENERATOR, backend="wmb")
