"""Join-graph propagation: belief propagation at i-bound 1, better above, exact at the width."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels.synthetic import grid
from inference import Status, TooLargeError, infer
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
