"""Parallel tempering: marginals where modes are apart, and what exchanges say of themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import grid
from inference import Status, infer
from inference.sampling.kernels.tempering import spread_evenly
from tests.inference.exactness import errors
from tests.inference.graphs import moderate, odd_graph

pytestmark = pytest.mark.slow


def cluster(size: int, coupling: float, tilt: float) -> FactorGraph:
    """Return claims that all say the same, true or false alike but for a tilt of each."""
    pairs = [(i, j) for i in range(size) for j in range(i)]
    agree = coupling * np.eye(2)
    factors: list[tuple[tuple[int, ...], NDArray[np.float64]]] = [(pair, agree) for pair in pairs]
    factors += [((v,), np.array([0.0, tilt])) for v in range(size)]
    return FactorGraph.from_factors([2] * size, factors, log=True)


@pytest.mark.parametrize("tilt", [0.0, 0.1])
def test_two_far_modes_get_their_shares(tilt: float) -> None:
    graph = cluster(12, 2.0, tilt)
    truth = infer(graph, "exact").marginals.of_state(1)
    plain = infer(graph, "gibbs")
    assert plain.status is Status.NOT_CONVERGED
    # Chains that stay where they began say a whole number of quarters.
    assert np.abs(plain.marginals.of_state(1) * 4 % 1).max() < 0.01 or (
        plain.stats["r_hat_max"] > 1.5
    )
    tempered = infer(graph, "gibbs", temperatures=10)
    assert tempered.status is Status.CONVERGED
    off, reported = errors(graph, tempered)
    assert off.max() < 0.05
    assert (off <= 6.0 * reported + 1e-9).all()
    np.testing.assert_allclose(tempered.marginals.of_state(1), truth, atol=0.05)
    rates, inverse = tempered.stats["swap_rates"], tempered.stats["inverse_temperatures"]
    assert rates.shape == (9,)
    assert rates.min() > 0.2
    assert inverse.shape == (4, 10)
    assert (inverse[:, 0] == 1.0).all()
    assert (inverse[:, -1] == 0.0).all()
    assert (np.diff(inverse, axis=1) < 0.0).all()
    assert (tempered.stats["round_trips"] > 20).all()


def test_temperatures_that_are_too_few_are_told_by_their_swap_rates() -> None:
    graph = cluster(30, 2.0, 0.0)
    posterior = infer(graph, "gibbs", temperatures=2, draws=200, burn_in=50)
    assert posterior.status is Status.NOT_CONVERGED
    assert posterior.stats["swap_rates"].min() < 0.01
    assert (posterior.stats["round_trips"] == 0).any()


def test_marginals_are_within_their_standard_errors() -> None:
    converged = 0
    for seed in range(60):
        graph = moderate(seed)
        posterior = infer(graph, "gibbs", temperatures=3, draws=800, burn_in=100)
        if posterior.status is Status.CONVERGED:
            converged += 1
            off, reported = errors(graph, posterior)
            assert (off <= 6.0 * reported + 1e-9).all(), f"seed {seed}"
    assert converged > 40


def test_odd_graphs_converge_to_the_right_marginals() -> None:
    far = converged = 0
    for seed in range(80):
        graph = odd_graph(seed)
        posterior = infer(graph, "gibbs", temperatures=6)
        if posterior.status is Status.CONVERGED:
            converged += 1
            far += bool((errors(graph, posterior)[0] > 0.05).any())
    assert converged > 40
    assert far <= 1


def test_a_forest_is_not_tempered() -> None:
    graph = grid(1, 20, coupling=1.0, field=1.0, seed=0)
    posterior = infer(graph, "gibbs", temperatures=5)
    assert posterior.status is Status.CONVERGED
    assert "swap_rates" not in posterior.stats
    plain = infer(graph, "gibbs")
    assert posterior.marginals.flat.tobytes() == plain.marginals.flat.tobytes()


def test_temperatures_move_to_where_exchanges_are_refused() -> None:
    even = np.linspace(1.0, 0.0, 5)
    np.testing.assert_allclose(spread_evenly(even, np.full(4, 0.3)), even)
    moved = spread_evenly(even, np.array([0.9, 0.1, 0.1, 0.1]))
    assert moved[0] == 1.0
    assert moved[-1] == 0.0
    assert (np.diff(moved) < 0.0).all()
    # Three quarters of what is refused lies between 1 and 0.75, and so do three steps of four.
    assert moved[3] == pytest.approx(0.75)
    never = spread_evenly(even, np.zeros(4))
    np.testing.assert_allclose(never, even)
