"""NumPyro's sampler behind the contract: agreement, samples, limits, nothing left behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import Status, TooLargeError, get_backend, infer
from inference.sampling.chains import by_variable
from tests.inference.exactness import errors
from tests.inference.graphs import moderate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_marginals_are_within_their_standard_errors(seed: int) -> None:
    graph = moderate(seed)
    posterior = infer(graph, "numpyro")
    off, reported = errors(graph, posterior)
    # 100 batch means make a standard error; a state that no draw hits is rarer than 2e-3.
    assert (off <= 6.0 * reported + 2e-3).all()


def test_gibbs_and_numpyro_agree_on_a_response() -> None:
    graph = fr2(8, 3, density=0.1, seed=0)
    ours, theirs = infer(graph, "gibbs"), infer(graph, "numpyro")
    assert ours.status is theirs.status is Status.CONVERGED
    for name in graph.names:
        scale = np.hypot(ours.stats["standard_errors"][name], theirs.stats["standard_errors"][name])
        assert (np.abs(ours.marginals[name] - theirs.marginals[name]) <= 6.0 * scale + 2e-3).all()


def test_potentials_far_from_one_keep_their_differences() -> None:
    # In single precision, logarithms near 1e5 are 0.008 apart.
    graph = FactorGraph.from_factors(
        [2, 2], [([0, 1], [[1e5, 1e5 + 0.5], [1e5 + 0.25, 1e5]])], log=True
    )
    posterior = infer(graph, "numpyro", draws=4000)
    truth = infer(graph, "exact")
    # 16,000 draws, hardly correlated: a standard error of 0.004.
    np.testing.assert_allclose(posterior.marginals.flat, truth.marginals.flat, atol=0.024)


def test_zeros_between_variables_have_not_converged() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], np.eye(2))])
    posterior = infer(graph, "numpyro", draws=50)
    assert not posterior.stats["connected"]
    assert posterior.status is Status.NOT_CONVERGED


def test_samples_carry_evidence_and_suit_arviz() -> None:
    graph = grid(2, 3, coupling=1.0, field=1.0, cardinality=3, seed=0).with_evidence({4: 2})
    backend: Any = get_backend("numpyro", chains=3, draws=50)
    states = backend.sample_chains(graph)
    assert states.shape == (3, 50, 6)
    assert (states[:, :, 4] == 2).all()
    assert {values.shape for values in by_variable(graph, states).values()} == {(3, 50)}


def test_one_chain_is_enough_to_run() -> None:
    graph = grid(2, 2, coupling=1.0, field=1.0, seed=0)
    posterior = infer(graph, "numpyro", chains=1, draws=100)
    assert posterior.stats["r_hat_max"] > 0.0


def test_a_run_that_would_take_too_long_is_refused() -> None:
    graph = grid(30, 30, coupling=1.0, field=1.0, seed=0)
    with pytest.raises(TooLargeError, match=r"'numpyro' is allowed .* 'gibbs'.*max_evaluations"):
        infer(graph, "numpyro", max_evaluations=1e8)
