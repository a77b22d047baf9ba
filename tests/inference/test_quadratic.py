"""The quadratic upper bound of binary graphs of pairs: that it bounds, and how near."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import InferenceError, LogZKind, ZeroPartitionError, infer
from inference.stop import Stop
from inference.variational.quadratic import QuadraticBound, _broken, _Search, _Spins, _Triangles
from tests.inference.answers import log_z_of
from tests.inference.graphs import CONTRADICTIONS

ROOM = 2**30
BOUND = QuadraticBound(ROOM)


def tied(seed: int, log_range: float = 2.0, zeros: float = 0.0) -> FactorGraph:
    """Nine binary variables, of which every pair has a factor with probability 0.7."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(9) for j in range(i) if rng.random() < 0.7]
    tables = rng.normal(scale=log_range, size=(len(pairs), 2, 2))
    tables[rng.random(tables.shape) < zeros] = -np.inf
    scopes = [*pairs, *((v,) for v in range(9)), ()]
    values = [*tables, *rng.normal(size=(9, 2)), np.array(0.7)]
    return FactorGraph.from_factors([2] * 9, list(zip(scopes, values, strict=True)), log=True)


def complete(n: int, seed: int) -> FactorGraph:
    """Binary variables of which every pair has a factor."""
    pairs = [(i, j) for i in range(n) for j in range(i)]
    tables = np.random.default_rng(seed).normal(scale=2.0, size=(len(pairs), 2, 2))
    return FactorGraph.from_factors([2] * n, list(zip(pairs, tables, strict=True)), log=True)


@pytest.mark.parametrize(
    "seed", [0, 2, 4, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 3, 5))]
)
def test_it_bounds_from_above_and_sees_contradicting_ties(seed: int) -> None:
    graph = tied(seed, 0.5 + 0.5 * seed)
    bracket = BOUND.solve_until(graph, Stop())
    assert bracket.log_z_kind is LogZKind.UPPER
    assert log_z_of(graph) <= (bracket.log_z or 0.0) <= log_z_of(graph) + 6.0
    for vector in bracket.marginals.values():
        assert vector.sum() == pytest.approx(1.0)


def test_zeros_are_bounded_by_tables_without() -> None:
    graph = tied(1, zeros=0.1)
    bracket = BOUND.solve_until(graph, Stop())
    assert log_z_of(graph) <= (bracket.log_z or 0.0) < log_z_of(graph) + 60.0


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))]
)
def test_strong_ties_are_taken_as_they_are(seed: int) -> None:
    graph = complete(10, seed)
    graph = graph.with_log_values(25.0 * graph.log_values)
    bracket = BOUND.solve_until(graph, Stop())
    # With entries no further apart than a zero is put it is 490 to 870 above.
    assert log_z_of(graph) <= (bracket.log_z or 0.0) < log_z_of(graph) + 100.0


def test_it_is_exact_without_ties() -> None:
    factors = [((v,), np.array([1.0, 1.0 + v])) for v in range(5)]
    graph = FactorGraph.from_factors([2] * 5, factors)
    bracket = BOUND.solve_until(graph, Stop())
    # Of single variables log cosh is touched where it is asked for; descent ends near there.
    assert bracket.log_z == pytest.approx(log_z_of(graph), abs=1e-4)
    assert bracket.marginals["4"][1] == pytest.approx(5.0 / 6.0, abs=1e-3)


def test_the_gradient_is_that_of_differences() -> None:
    spins = _Spins.of(grid(4, 4, coupling=1.0, field=1.0, seed=0), ROOM)
    search = _Search(spins, Stop())
    search.barrier = 0.3
    n, joined = len(spins.fields), len(spins.joined)
    # The last is of two spins and the fixed one.
    ends = [(0, 1, 2), (1, 3, 4), (2, 5, joined)]
    pairs = [[i * (joined + 1) + j for i, j in combinations(three, 2)] for three in ends]
    signs = [[1.0, 1.0, 1.0], [-1.0, 1.0, -1.0], [1.0, -1.0, -1.0]]
    search.triangles = _Triangles(np.array(pairs), np.array(signs))
    at = np.concatenate([np.full(n, 1.0), np.full(joined, 2.0), np.full(3, 0.1)])
    at += 0.1 * np.random.default_rng(0).normal(size=len(at))
    _, gradient = search(at)
    step = 1e-5
    differences = [
        (search(at + step * row)[0] - search(at - step * row)[0]) / (2.0 * step)
        for row in np.eye(len(at))
    ]
    # Differences in doubles are good to about the square of the step.
    np.testing.assert_allclose(gradient, differences, atol=1e-6)


@pytest.mark.parametrize("seeds", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_triangles_tighten_a_bound_and_it_stays_one(
    seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = [complete(12, seed) for seed in range(seeds)]
    brackets = [BOUND.solve_until(graph, Stop()) for graph in graphs]
    monkeypatch.setattr("inference.variational.quadratic._PATIENCE", 0)
    plain = [BOUND.solve_until(graph, Stop()) for graph in graphs]
    truth = np.array([log_z_of(graph) for graph in graphs])
    above = np.array([posterior.log_z for posterior in brackets]) - truth
    assert (above >= 0.0).all()
    assert (above < 0.6 * (np.array([posterior.log_z for posterior in plain]) - truth)).all()
    assert all(posterior.stats["triangles"] > 0 for posterior in brackets)


def test_triangles_hold_of_spins_and_are_found_where_they_are_broken() -> None:
    rng = np.random.default_rng(0)
    spins = rng.choice([-1.0, 1.0], size=12)
    assert len(_broken(np.outer(spins, spins), Stop()).signs) == 0
    products = rng.uniform(-1.0, 1.0, size=(9, 9))
    products = np.triu(products, 1) + np.triu(products, 1).T + np.eye(9)
    pairs, signs = _broken(products, Stop())
    assert (signs.prod(axis=1) == 1.0).all()
    assert (1.0 + (signs * products.ravel()[pairs]).sum(axis=1) < -0.05).all()
    worst = min(
        1.0 + a * products[i, j] + b * products[i, k] + a * b * products[j, k]
        for i in range(9) for j in range(i + 1, 9) for k in range(j + 1, 9)
        for a in (1.0, -1.0) for b in (1.0, -1.0)
    )  # fmt: skip
    assert 1.0 + signs[0] @ products.ravel()[pairs[0]] == pytest.approx(worst)


@pytest.mark.parametrize("claims", [28, pytest.param(40, marks=pytest.mark.nightly)])
def test_on_a_dense_graph_it_is_far_below_forests_and_mini_buckets(claims: int) -> None:
    graph = fr2(claims, 4, density=0.3, seed=0)
    floor = infer(graph, "cavi", restarts=1).log_z or 0.0
    above = (BOUND.solve_until(graph, Stop()).log_z or 0.0) - floor
    others = [
        infer(graph, "trw", max_iterations=50, weight_updates=0),
        infer(graph, "wmb", i_bound=4, gap=False),
    ]
    assert above > 0.0
    assert all(above < 0.7 * ((other.log_z or 0.0) - floor) for other in others)


def test_without_variables_it_is_the_constant() -> None:
    graph = FactorGraph.from_factors([], [((), np.array(3.0))])
    assert BOUND.solve_until(graph, Stop()).log_z == pytest.approx(np.log(3.0))


@pytest.mark.parametrize("name", ["a constant", "a table"])
def test_a_table_of_zeros_leaves_nothing_to_bound(name: str) -> None:
    with pytest.raises(ZeroPartitionError):
        BOUND.solve_until(CONTRADICTIONS[name], Stop())


@pytest.mark.parametrize(
    "graph",
    [
        FactorGraph.from_factors([3, 2], [((0, 1), np.ones((3, 2)))]),
        FactorGraph.from_factors([2] * 3, [((0, 1, 2), np.ones((2, 2, 2)))]),
    ],
)
def test_other_graphs_are_refused(graph: FactorGraph) -> None:
    with pytest.raises(InferenceError, match="binary variables"):
        BOUND.solve_until(graph, Stop())


def test_memory_and_time_are_limits() -> None:
    graph = fr2(16, 4, density=0.9, seed=0)
    with pytest.raises(InferenceError, match="too many"):
        QuadraticBound(10_000).solve_until(graph, Stop())
    over = Stop()
    over.interrupt()
    with pytest.raises(InferenceError, match="no time"):
        BOUND.solve_until(graph, over)
