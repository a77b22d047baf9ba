"""Join-graph propagation: belief propagation at i-bound 1, better above, exact at the width."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import grid
from inference import Status, TooLargeError, infer
from inference.conformance.graphs import wide_ranges
from tests.inference.answers import enumerated
from tests.inference.graphs import frustrated, signed_pairs


def test_at_i_bound_1_it_has_the_fixed_points_of_belief_propagation() -> None:
    compared = 0
    for seed in range(20):
        graph = signed_pairs(seed, 8, 14)
        settings = {"damping": 0.3, "max_iterations": 5000}
        one, other = (
            infer(graph, "lbp", **settings),
            infer(graph, "ijgp", i_bound=1, **settings),
        )
        if {one.status, other.status} == {Status.CONVERGED}:
            compared += 1
            np.testing.assert_allclose(other.marginals.flat, one.marginals.flat, atol=1e-7)
            assert other.log_z == pytest.approx(one.log_z, abs=1e-7)
    assert compared >= 15


def test_a_larger_i_bound_errs_less() -> None:
    def error(i_bound: int) -> float:
        return float(
            np.mean(
                [
                    np.abs(
                        infer(graph, "ijgp", i_bound=i_bound).marginals.flat - enumerated(graph)
                    ).max()
                    for graph in map(frustrated, range(15))
                ]
            )
        )

    assert error(3) < 0.6 * error(1)


def test_a_limit_of_memory_narrows_it_and_then_refuses() -> None:
    graph = grid(10, 10, coupling=1.0, field=0.5, seed=0)
    assert infer(graph, "ijgp", memory_limit=100_000).stats["i_bound"] < 6
    with pytest.raises(TooLargeError, match=r"'ijgp' may use; raise memory_limit"):
        infer(graph, "ijgp", memory_limit=1000)


def test_what_is_improbable_within_a_cluster_is_not_lost() -> None:
    # The second factor undoes what the first says: 0.5 (1e-200 1e300 + 1e200 1e300) in log Z.
    pair = [[1e-200, 1e-200], [1e200, 1e-200]]
    graph = FactorGraph.from_factors([2, 2], [([1, 0], pair), ([1], [1e300, 1e-300])])
    posterior = infer(graph, "ijgp")
    assert posterior.status is Status.EXACT
    # log(2e100), to some roundings of 700.
    assert posterior.log_z == pytest.approx(np.log(2.0) + 100.0 * np.log(10.0), abs=1e-12)
    np.testing.assert_allclose(posterior.marginals.flat[:3], [0.5, 0.5, 1.0], atol=1e-12)


@pytest.mark.parametrize("i_bound", [1, 2])
def test_fixed_points_do_not_depend_on_how_potentials_are_shared_out(i_bound: int) -> None:
    # Messages differ by what is shifted between tables, so that the same steps are taken.
    compared = 0
    for graph in map(frustrated, range(1, 12)):
        settings = {"i_bound": i_bound, "damping": 0.5, "max_iterations": 2000}
        plain = infer(graph, "ijgp", **settings)
        posterior = infer(wide_ranges(graph, 0), "ijgp", **settings)
        if {plain.status, posterior.status} == {Status.CONVERGED}:
            compared += 1
            # Both stop where logarithms of messages change by 1e-9, which damping makes add up.
            np.testing.assert_allclose(posterior.marginals.flat, plain.marginals.flat, atol=1e-6)
            assert posterior.log_z == pytest.approx(plain.log_z, abs=1e-6)
    assert compared >= 5
