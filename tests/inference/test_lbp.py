"""Promises of `lbp`: forests, statuses, agreeing schedules, bounds; and its fast path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, fr3, grid, random_graph
from inference import LogZKind, Status, get_backend, infer
from inference.messages.beliefs import pair_beliefs
from inference.messages.frustration import frustration
from inference.messages.kernels.schedules import CONVERGED, NOT_CONVERGED
from inference.messages.kernels.solve import NOT_PAIRS, reduce_and_solve_pairs, solve
from inference.messages.lbp import LoopyBeliefPropagation, Schedule
from inference.messages.reduction import reduced
from inference.possible_states import arrays_of
from tests.inference.answers import assert_agree, assert_near, assert_right, given, log_z_of
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
@pytest.mark.parametrize(
    ("seeds", "least"), [(24, 6), pytest.param(80, 25, marks=pytest.mark.nightly)]
)
def test_zeros_lead_to_the_fixed_point_of_the_book(seeds: int, least: int) -> None:
    compared = 0
    for seed in range(seeds):
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
    assert compared >= least


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
    damped = infer(graph, "lbp", schedule="flooding", damping=0.5)
    np.testing.assert_allclose(adapted.marginals.flat, damped.marginals.flat, atol=1e-8)


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


def test_pair_beliefs_have_the_marginals_and_the_odds_ratio() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(500), rng.random(500)
    tables = rng.normal(size=(500, 2, 2)) * 5.0
    tables[:6, [0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 1, 0]] = 0.0
    beliefs = pair_beliefs(first, second, tables)
    np.testing.assert_allclose(beliefs[:, 1, :].sum(axis=1), first, atol=1e-14)
    np.testing.assert_allclose(beliefs[:, :, 1].sum(axis=1), second, atol=1e-14)
    # Products, not quotients: an entry may be next to nothing.
    odds = np.exp(tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0])
    left = beliefs[:, 0, 0] * beliefs[:, 1, 1]
    right = beliefs[:, 0, 1] * beliefs[:, 1, 0] * odds
    np.testing.assert_allclose(left / (1.0 + odds), right / (1.0 + odds), atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_factor_beliefs_of_scopes_in_any_order_are_those_of_the_joint_distribution(
    seed: int,
) -> None:
    """On a tree, with tables of distinct entries and zeros, by summing over all assignments."""
    rng = np.random.default_rng(seed)
    scopes = [[1, 0], [0, 2], [3, 1], [4, 1], [1, 0], [0, 1], [5, 2], [2, 0], [3], []]
    tables = [rng.uniform(0.1, 3.0, (2,) * len(scope)) for scope in scopes]
    tables[2][0, 1] = tables[6][1, 0] = 0.0
    graph = FactorGraph.from_factors([2] * 6, list(zip(scopes, tables, strict=True)))
    joint = np.ones((2,) * 6)
    for states in np.ndindex(*joint.shape):
        for scope, table in zip(scopes, tables, strict=True):
            joint[states] *= table[tuple(states[v] for v in scope)]
    joint /= joint.sum()
    expected = []
    for scope in scopes:
        belief = np.einsum("abcdef->" + "".join("abcdef"[v] for v in scope), joint)
        expected += belief.ravel().tolist()
    beliefs = get_backend("lbp").prepare_beliefs(graph)
    assert beliefs is not None
    np.testing.assert_allclose(beliefs(graph.log_values).entries, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("row", "column", "first", "second"),
    [(0, 0, 0.7, 0.6), (0, 1, 0.7, 0.4), (1, 0, 0.4, 0.7), (1, 1, 0.3, 0.2)],
)
def test_pair_beliefs_keep_zeros(row: int, column: int, first: float, second: float) -> None:
    table = np.zeros((1, 2, 2))
    table[0, row, column] = -np.inf
    # Marginals that a joint distribution with this zero can have.
    beliefs = pair_beliefs(np.array([first]), np.array([second]), table)[0]
    assert beliefs[row, column] == pytest.approx(0.0, abs=1e-15)
    assert beliefs[1].sum() == pytest.approx(first)
    assert beliefs[:, 1].sum() == pytest.approx(second)


Run = tuple[int, NDArray[np.float64], float, NDArray[np.float64]]
"""Of a kernel: how it ended, marginals, log Z, residuals."""


def fast(graph: FactorGraph, **settings: Any) -> Run:
    passing = LoopyBeliefPropagation(**settings).passing
    result: Run = reduce_and_solve_pairs(*arrays_of(graph.absorb_evidence()), passing)
    return result


def general(graph: FactorGraph, **settings: Any) -> Run:
    absorbed = graph.absorb_evidence()
    passing = LoopyBeliefPropagation(**settings).passing
    never = np.zeros(1, dtype=np.int64)
    result: Run = solve(absorbed.cardinalities, reduced(absorbed), passing, never)
    return result


def binary_forest(seed: int) -> FactorGraph:
    """Return a forest of binary variables with zeros, evidence and strengths up to e^60."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    scale = float(rng.choice([0.5, 3.0, 15.0]))
    factors = [([i], rng.normal(scale=scale, size=2)) for i in range(n) if rng.random() < 0.5]
    for i in range(1, n):
        table = rng.normal(scale=scale, size=(2, 2))
        if rng.random() < 0.2:
            table[tuple(rng.integers(2, size=2))] = -np.inf
        if rng.random() < 0.9:
            factors.append(([i, int(rng.integers(i))], table))
    graph = FactorGraph.from_factors([2] * n, factors, log=True)
    return graph.with_evidence({0: 0}) if rng.random() < 0.3 else graph


def attractive(seed: int) -> FactorGraph:
    return grid(4, 4, coupling=1.5, field=1.0, attractive=True, seed=seed)


def evidence(seed: int) -> FactorGraph:
    makers: list[Callable[[], FactorGraph]] = [
        lambda: fr1_forest(15, 3, seed=seed),
        lambda: fr2(15, 3, density=0.1, seed=seed),
        lambda: fr3(10, 3, density=0.1, context_density=0.05, seed=seed),
    ]
    return makers[seed % 3]()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("graphs", [binary_forest, attractive, evidence])
def test_both_paths_find_the_same_fixed_point(
    graphs: Callable[[int], FactorGraph], schedule: str
) -> None:
    for seed in range(60):
        graph = graphs(seed)
        first, other = (path(graph, schedule=schedule) for path in (fast, general))
        assert first[0] == other[0] == CONVERGED, f"seed {seed}"
        # Both stopped where log messages move by 1e-9, on the same way there.
        np.testing.assert_allclose(first[1], other[1], atol=1e-9, err_msg=f"seed {seed}")
        assert first[2] == pytest.approx(other[2], rel=1e-11, abs=1e-9), f"seed {seed}"


@pytest.mark.parametrize("schedule", [name for name in SCHEDULES if name != "residual"])
@pytest.mark.parametrize("damping", [0.0, 0.4, "adaptive"])
def test_both_paths_take_the_same_steps(schedule: str, damping: float | str) -> None:
    for seed in range(25):
        graph = signed_pairs(seed, n=8, m=14)
        first, other = (
            path(graph, schedule=schedule, damping=damping, max_iterations=12, seed=seed)
            for path in (fast, general)
        )
        assert first[0] == other[0]
        # Rounding grows by the strength of the couplings, up to e^2, in every iteration.
        np.testing.assert_allclose(first[3], other[3], rtol=1e-6, atol=1e-9, err_msg=f"seed {seed}")
        np.testing.assert_allclose(first[1], other[1], atol=1e-8, err_msg=f"seed {seed}")


def test_a_frustrated_graph_fails_on_both_paths() -> None:
    graph = grid(6, 6, coupling=8.0, field=0.5, seed=3)
    for path in (fast, general):
        code, _, _, residuals = path(graph, schedule="flooding", damping=0.0, max_iterations=50)
        assert code == NOT_CONVERGED
        assert len(residuals) == 50


def test_odds_beyond_doubles_are_left_to_logarithms() -> None:
    # Equal variables, each with evidence of e^100: the odds of messages grow past the doubles.
    equal = [[0.0, -np.inf], [-np.inf, 0.0]]
    for n in (2, 3, 12):
        graph = FactorGraph.from_factors(
            [2] * n,
            [([i, i + 1], equal) for i in range(n - 1)] + [([i], [0.0, 100.0]) for i in range(n)],
            log=True,
        )
        assert (fast(graph)[0] == NOT_PAIRS) == (n > 2)
        posterior = infer(graph, "lbp")
        assert posterior.status is Status.CONVERGED
        assert posterior.log_z == pytest.approx(100.0 * n, rel=1e-14)
        for marginal in posterior.marginals.values():
            assert marginal[0] == pytest.approx(np.exp(-100.0 * n), rel=1e-9)


def test_a_certain_variable_between_zeros() -> None:
    # The first variable's strong belief meets a zero at the second, whose own is the opposite:
    # what is left of their joint is in no product of two large odds.
    for strength in (5.0, 60.0, 400.0, 2000.0):
        graph = FactorGraph.from_factors(
            [2] * 3,
            [
                ([0], [0.0, strength]),
                ([0, 1], [[0.0, 0.0], [-np.inf, 0.0]]),
                ([1], [strength + 1.0, 0.0]),
                ([1, 2], [[0.0, -np.inf], [0.0, 0.0]]),
                ([2], [0.0, strength]),
            ],
            log=True,
        )
        assert_agree(infer(graph, "lbp"), infer(graph, "enumeration"), 1e-12, rel=1e-13)


def test_many_strong_factors_that_change_their_mind() -> None:
    # A hub whose leaves turn from one certainty to the other when the far end of each speaks.
    strong, n = 140.0, 30
    agree = [[0.0, -strong], [-strong, 0.0]]
    factors: list[tuple[list[int], ArrayLike]] = []
    for i in range(n):
        near, far = 2 * i + 1, 2 * i + 2
        factors += [([0, near], agree), ([near, far], agree), ([near], [0.0, 50.0])]
        factors += [([far], [130.0 if i % 2 else 140.0, 0.0])]
    graph = FactorGraph.from_factors([2] * (2 * n + 1), factors, log=True)
    truth = infer(graph, "exact")
    for schedule in SCHEDULES:
        posterior = fast(graph, schedule=schedule)
        assert posterior[0] == CONVERGED
        np.testing.assert_allclose(posterior[1], truth.marginals.flat, atol=1e-9)
        assert posterior[2] == pytest.approx(truth.log_z, rel=1e-12)


@pytest.mark.parametrize("size", [160.0, 1e5, 1e15, 1e300])
def test_potentials_of_any_size(size: float) -> None:
    factors = [([0], [0.0, -size]), ([0, 1], [0.0, -size, -size, 0.0]), ([1], [0.0, 1.0])]
    graph = FactorGraph.from_factors([2, 2], factors, log=True)
    assert_near(infer(graph, "lbp"), np.array([1.0, 0.0, 1.0, 0.0]), 0.0, 1e-12)
