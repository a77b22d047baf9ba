"""What `lbp` promises: forests, statuses, schedules that agree, bounds where theory gives them."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, grid, random_graph
from inference import LogZKind, Status, infer
from inference.messages.frustration import frustration
from inference.messages.lbp import Schedule
from tests.inference.answers import assert_agree, assert_right, given, log_z_of
from tests.inference.graphs import signed_pairs
from tests.inference.loopy_reference import propagate
from tests.oracle import oracle

SCHEDULES = get_args(Schedule)


def without_nested_scopes(seed: int, zero_probability: float = 0.0) -> FactorGraph:
    """Return a loopy graph of factors of one to three variables, of one to three states each."""
    graph = random_graph(
        7,
        11,
        max_arity=3,
        max_cardinality=3,
        zero_probability=zero_probability,
        log_range=1.5,
        seed=seed,
    )
    # A variable of one state is no part of a scope.
    scopes = [{v for v in scope if graph.cardinalities[v] > 1} for scope, _ in graph.factors()]
    kept = [
        factor
        for i, factor in enumerate(graph.factors())
        if len(scopes[i]) < 2
        or not any(
            scopes[i] < scopes[j] or (scopes[i] == scopes[j] and j < i) for j in range(len(scopes))
        )
    ]
    return FactorGraph.from_factors(graph.cardinalities, kept, log=True)


def test_a_chain_takes_one_pass_each_way_in_a_sweep() -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph.from_factors([2] * 500, [([i, i + 1], rng.random(4)) for i in range(499)])
    # Back and forth, and one iteration that finds nothing left to change.
    assert infer(graph, "lbp").stats["iterations"] == 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_large_fr1_forest_is_exact(schedule: str) -> None:
    graph = fr1_forest(300, 4, seed=1)
    posterior = infer(graph, "lbp", schedule=schedule)
    assert posterior.status is Status.CONVERGED
    assert_agree(posterior, infer(graph, "exact"), 1e-9, rel=1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.5, "adaptive"])
def test_schedules_find_the_same_fixed_point_on_evidence_graphs(damping: float | str) -> None:
    graph = fr2(20, 3, density=0.05, seed=2)
    posteriors = [infer(graph, "lbp", schedule=schedule, damping=damping) for schedule in SCHEDULES]
    for posterior in posteriors:
        assert posterior.status is Status.CONVERGED
        assert posterior.stats["residual"] <= 1e-9
        # Stopped where log messages move by 1e-9; the fixed point is a few contractions away.
        assert_agree(posterior, posteriors[0], 1e-7)


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("iterations", [1, 4, 60])
def test_flooding_is_belief_propagation_by_the_book(iterations: int, damping: float) -> None:
    for seed in range(12):
        pairs = seed % 2 == 0
        graph = grid(3, 3, coupling=1.0, field=1.0, seed=seed)
        graph = graph if pairs else without_nested_scopes(seed)
        settings = {"schedule": "flooding", "damping": damping, "max_iterations": iterations}
        posterior = infer(graph, "lbp", tolerance=1e-12, **settings)
        expected = propagate(graph, iterations, damping)
        # The same sums and products in another order, some sixty times over.
        np.testing.assert_allclose(
            posterior.marginals.flat,
            np.concatenate(expected.marginals),
            atol=1e-10,
            err_msg=f"seed {seed}",
        )
        if posterior.status is Status.CONVERGED:
            assert posterior.log_z == pytest.approx(expected.bethe, abs=1e-9), f"seed {seed}"


@pytest.mark.slow
def test_zeros_lead_to_the_fixed_point_of_the_book() -> None:
    compared = 0
    for seed in range(80):
        graph = without_nested_scopes(seed, zero_probability=0.25)
        posterior = infer(graph, "lbp", tolerance=1e-12)
        if posterior.status is not Status.CONVERGED or any(
            len(p) > 1 and p.max() == 1.0 for p in posterior.marginals.values()
        ):
            # A variable that zeros decide leaves its scopes, which may then be nested.
            continue
        expected = propagate(graph, 200)
        off = np.abs(posterior.marginals.flat - np.concatenate(expected.marginals)).max()
        # Two fixed points may exist; the book's run is compared where it has come to rest.
        if off > 1e-9:
            again = propagate(graph, 201)
            moved = np.abs(np.concatenate(again.marginals) - np.concatenate(expected.marginals))
            assert moved.max() > 1e-9, f"seed {seed}: off by {off}"
            continue
        compared += 1
        assert posterior.log_z == pytest.approx(expected.bethe, abs=1e-8), f"seed {seed}"
    assert compared >= 25


def test_the_random_schedule_repeats_from_its_seed() -> None:
    for graph in (grid(4, 4, coupling=1.0, field=1.0, seed=1), without_nested_scopes(4)):
        traces = [
            infer(graph, "lbp", schedule="random", seed=seed).stats["residual_trace"]
            for seed in (5, 5, 6)
        ]
        assert traces[0] == traces[1]
        assert traces[0] != traces[2]


@pytest.mark.parametrize("states", [2, 3])
def test_damping_adapts_to_oscillation(states: int) -> None:
    # Five variables that all repel each other: renewed at once, all change sides at once.
    repel = np.exp(-1.5 * np.eye(states))
    field = np.linspace(1.0, 1.3, states)
    pairs = [([i, j], repel) for i in range(5) for j in range(i)]
    graph = FactorGraph.from_factors([states] * 5, [*pairs, *[([i], field) for i in range(5)]])
    undamped = infer(graph, "lbp", schedule="flooding", damping=0.0)
    assert undamped.status is Status.NOT_CONVERGED
    adapted = infer(graph, "lbp", schedule="flooding")
    assert adapted.status is Status.CONVERGED
    held = infer(graph, "lbp", schedule="flooding", damping=0.5)
    np.testing.assert_allclose(adapted.marginals.flat, held.marginals.flat, atol=1e-8)


def test_bethe_is_a_lower_bound_on_attractive_graphs() -> None:
    # Ruozzi 2012: attractive binary pairwise models, at any fixed point.
    for seed in range(60):
        graph = grid(4, 4, coupling=1.5, field=0.5, attractive=True, seed=seed)
        posterior = infer(graph, "lbp", schedule=SCHEDULES[seed % 4])
        assert posterior.status is Status.CONVERGED
        assert posterior.log_z_kind is LogZKind.BETHE
        assert given(posterior) <= log_z_of(graph) + 1e-9


def test_bethe_is_a_lower_bound_on_balanced_graphs() -> None:
    # Flipping the states of some variables makes them attractive.
    balanced = 0
    for seed in range(300):
        graph = signed_pairs(seed, n=6, m=7)
        posterior = infer(graph, "lbp", diagnostics=True)
        assert posterior.stats["balanced"] == frustration(graph).balanced
        if not posterior.stats["balanced"] or posterior.stats["attractive"]:
            continue
        balanced += 1
        assert posterior.status is Status.CONVERGED
        assert given(posterior) <= oracle(graph).log_z + 1e-9, f"seed {seed}"
    assert balanced >= 50


def test_diagnostics_are_of_pairs_alone() -> None:
    triangle = [([0, 1], [[2, 1], [1, 2]]), ([1, 2], [[2, 1], [1, 2]]), ([2, 0], [[1, 2], [2, 1]])]
    stats = infer(FactorGraph.from_factors([2] * 3, triangle), "lbp", diagnostics=True).stats
    assert stats["frustrated_share"] == 1.0
    assert not stats["balanced"]
    assert not stats["attractive"]
    wider = FactorGraph.from_factors([2] * 4, [*triangle, ([0, 1, 3], np.arange(1.0, 9.0))])
    stats = infer(wider, "lbp", diagnostics=True).stats
    assert stats["frustrated_share"] is stats["balanced"] is stats["attractive"] is None


def test_repeated_and_nested_scopes_are_one_factor() -> None:
    rng = np.random.default_rng(4)
    chain = [([0, 1, 2], rng.random(8)), ([1, 0], rng.random(4)), ([2, 1], rng.random(4))]
    graph = FactorGraph.from_factors([2] * 4, [*chain * 3, ([2, 3], rng.random(4))])
    # Multiplied together this is a forest; passed on apart, evidence would be counted many times.
    assert_right(graph, infer(graph, "lbp"), 1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("states", [2, 3])
def test_a_thousand_factors_on_one_variable(schedule: str, states: int) -> None:
    rng = np.random.default_rng(6)
    tables = rng.random((1000, states, states)) + 0.1
    graph = FactorGraph.from_factors(
        [states] * 1001, [([0, i + 1], table) for i, table in enumerate(tables)]
    )
    logs = np.log(tables.sum(axis=2)).sum(axis=0)
    log_z = np.logaddexp.reduce(logs)
    posterior = infer(graph, "lbp", schedule=schedule)
    assert posterior.status is Status.CONVERGED
    # A thousand roundings of logarithms of some hundreds.
    np.testing.assert_allclose(
        posterior.marginals[graph.names[0]], np.exp(logs - log_z), atol=1e-11
    )
    assert posterior.log_z == pytest.approx(log_z, rel=1e-12)


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
