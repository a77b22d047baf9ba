"""What `lbp` promises: forests, statuses, schedules that agree, bounds where theory gives them."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels import FactorGraph, InputError
from factormodels.synthetic import fr1_forest, fr2, grid
from inference import Status, get_backend, infer

SCHEDULES = ("sweep", "flooding", "residual")


def test_a_chain_takes_one_pass_each_way_in_a_sweep() -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph.from_factors([2] * 500, [([i, i + 1], rng.random(4)) for i in range(499)])
    # Back, forth, and one pass that finds nothing left to change.
    assert infer(graph, "lbp").stats["iterations"] == 3


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_large_fr1_forest_is_exact(schedule: str) -> None:
    graph = fr1_forest(300, 4, seed=1)
    truth = infer(graph, "exact")
    posterior = infer(graph, "lbp", schedule=schedule)
    assert posterior.status is Status.CONVERGED
    np.testing.assert_allclose(posterior.marginals.flat, truth.marginals.flat, atol=1e-9)
    assert posterior.log_z == pytest.approx(truth.log_z, rel=1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_schedules_find_the_same_fixed_point_on_evidence_graphs(damping: float) -> None:
    graph = fr2(20, 3, density=0.05, seed=2)
    posteriors = [infer(graph, "lbp", schedule=schedule, damping=damping) for schedule in SCHEDULES]
    for posterior in posteriors:
        assert posterior.status is Status.CONVERGED
        # Stopped where log messages move by 1e-9; the fixed point is a few contractions away.
        np.testing.assert_allclose(
            posterior.marginals.flat, posteriors[0].marginals.flat, atol=1e-7
        )
        assert posterior.log_z == pytest.approx(posteriors[0].log_z, abs=1e-7)


def test_failure_to_converge_is_a_status() -> None:
    frustrated = grid(6, 6, coupling=8.0, field=0.5, seed=3)
    posterior = infer(frustrated, "lbp", schedule="flooding", max_iterations=30)
    assert posterior.status is Status.NOT_CONVERGED
    assert posterior.stats["iterations"] == 30
    trace = posterior.stats["residual_trace"]
    assert len(trace) == 30
    assert trace[-1] == posterior.stats["residual"] > 1e-9
    assert np.isfinite(posterior.marginals.flat).all()


def test_bethe_is_a_lower_bound_on_attractive_graphs() -> None:
    # Ruozzi 2012: attractive binary pairwise models, at any fixed point.
    for seed in range(20):
        graph = grid(4, 4, coupling=1.0, field=0.5, attractive=True, seed=seed)
        posterior = infer(graph, "lbp", damping=0.3)
        assert posterior.status is Status.CONVERGED
        bethe, exact = posterior.log_z, infer(graph, "exact").log_z
        assert bethe is not None
        assert exact is not None
        assert bethe <= exact + 1e-9


def test_zeros_travel_without_becoming_nan() -> None:
    equal = np.eye(3)
    graph = FactorGraph.from_factors(
        [3] * 4,
        [([0, 1], equal), ([1, 2], equal), ([2, 3], equal), ([3, 0], equal), ([0], [0.0, 1, 3])],
    )
    posterior = infer(graph, "lbp")
    assert np.isfinite(posterior.marginals.flat).all()
    for name in graph.names:
        assert posterior.marginals[name][0] == 0.0


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"schedule": "random walk"}, "schedule"),
        ({"damping": 1.0}, "damping"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"max_iterations": 0}, "max_iterations"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        get_backend("lbp", **settings)
