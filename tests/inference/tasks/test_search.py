"""The most probable assignment by search: the best one, and bounds that hold meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.errors import InputError, MissingDependencyError
from factormodels.synthetic import grid, random_graph
from inference import InferenceError, Status, TooLargeError, ZeroPartitionError
from inference.kernels.interaction import interaction_graph
from inference.mini_buckets.structure import elimination
from inference.peers.toulbar2_search import search_toulbar2
from inference.tasks import map_assignment, search_map, search_map_anytime
from inference.tasks.kernels.neighbourhoods import random_cutset
from inference.tasks.search import _Incumbent
from tests.inference.graphs import frustrated, odd_graph
from tests.refusals import refused


@pytest.mark.parametrize("graphs", [odd_graph, frustrated])
@pytest.mark.slow
def test_small_graphs_are_searched_to_the_end(graphs: Callable[[int], FactorGraph]) -> None:
    for seed in range(60):
        graph = graphs(seed)
        try:
            best = map_assignment(graph)
        except ZeroPartitionError:
            with pytest.raises(ZeroPartitionError):
                search_map(graph, i_bound=1)
            continue
        # Once kernels are compiled, a search of so small a graph takes milliseconds.
        found = search_map(graph, i_bound=1 + seed % 3, seconds=600.0)
        assert found.status is Status.EXACT
        value = found.assignment.log_potential
        assert value == pytest.approx(best.log_potential, rel=1e-9, abs=1e-5)
        assert graph.log_potential(found.assignment.states) == pytest.approx(value, abs=1e-9)
        assert found.gap <= 1e-5
        observed = graph.evidence >= 0
        assert (found.assignment.states[observed] == graph.evidence[observed]).all()


def test_answers_get_better_and_bounds_hold_meanwhile() -> None:
    graph = grid(9, 9, coupling=2.0, field=1.0, seed=3)
    best = map_assignment(graph).log_potential
    values, uppers = [], []
    search_map(graph, i_bound=2, seconds=0.1)
    for found in search_map_anytime(graph, i_bound=2, seconds=1.5):
        values.append(found.assignment.log_potential)
        uppers.append(found.upper)
    assert (np.diff(values) >= 0.0).all()
    assert max(values) <= best + 1e-9
    assert min(uppers) >= best - 1e-6
    assert values[-1] == pytest.approx(best)


def test_best_states_given_some_variables_are_never_worse_and_reach_the_best() -> None:
    graph = grid(9, 9, coupling=2.0, field=1.0, seed=3)
    incumbent = _Incumbent(graph, 0, None)
    incumbent.orders.append(elimination(graph, 0, 0)[0])
    values = []
    for _ in range(100):
        incumbent._log2_most = 6.0
        incumbent._eliminate()
        values.append(incumbent.best[0])
        assert graph.log_potential(incumbent.states) == pytest.approx(values[-1], abs=1e-9)
    assert (np.diff(values) >= 0.0).all()
    assert values[-1] == pytest.approx(map_assignment(graph).log_potential)


def test_without_the_variables_of_a_cutset_no_bucket_is_too_large() -> None:
    shares = []
    for seed in range(20):
        graph = random_graph(25, 40, max_arity=3, max_cardinality=4, seed=seed)
        neighbours = interaction_graph(
            graph.cardinalities, graph.scope_starts, graph.scope_variables
        )
        order = np.random.default_rng(seed).permutation(25)
        random = np.array([seed], dtype=np.uint64)
        fixed = random_cutset(graph.cardinalities, *neighbours, order, 6.0, np.zeros(25), random)
        shares.append(fixed.mean())
        adjacent: dict[int, set[int]] = {v: set() for v in range(25)}
        for scope in map(graph.scope, range(graph.n_factors)):
            free = {v for v in scope if not fixed[v] and graph.cardinalities[v] > 1}
            for v in free:
                adjacent[v] |= free - {v}
        for v in order[~fixed[order]].tolist():
            bucket = adjacent[v] | {v}
            assert np.prod(graph.cardinalities[list(bucket)]) <= 2**6
            for u in adjacent[v]:
                adjacent[u] |= bucket - {u}
                adjacent[u].discard(v)
    assert 0.1 < np.mean(shares) < 0.6


def test_what_cannot_be_searched_is_refused() -> None:
    graph = grid(3, 3, coupling=1.0, field=1.0, seed=0)
    refused("budget of 0.0 seconds", search_map, graph, seconds=0.0)
    refused("i-bound 0 is below 1", search_map, graph, i_bound=0)
    refused("tolerance -1.0 is below 0", search_map, graph, tolerance=-1.0)
    with pytest.raises(TooLargeError, match="raise it"):
        search_map(graph, memory_limit=10)
    impossible = FactorGraph.from_factors([2, 2], [((0, 1), np.zeros((2, 2)))])
    with pytest.raises(ZeroPartitionError):
        search_map(impossible)


@pytest.mark.slow
def test_toulbar2_finds_the_same_and_its_bounds_hold() -> None:
    graphs = [odd_graph(5), frustrated(7)]
    # Tables of five variables are given to it another way than those of three.
    graphs += [
        random_graph(8, 14, max_arity=5, max_cardinality=4, zero_probability=0.3, seed=seed)
        for seed in range(3)
    ]
    for graph in graphs:
        ours = map_assignment(graph)
        found = search_toulbar2(graph)
        assert found.status is Status.EXACT
        assert found.log_potential == pytest.approx(ours.log_potential, abs=1e-4)
        assert graph.log_potential(found.states) == pytest.approx(found.log_potential, abs=1e-9)
        assert found.upper >= ours.log_potential - 1e-9
    # Too wide to be finished: what there is, with a bound on the rest.
    graph = grid(14, 14, coupling=2.0, field=1.0, seed=3)
    found = search_toulbar2(graph, seconds=1.0)
    best = map_assignment(graph).log_potential
    assert found.log_potential - 1e-9 <= best <= found.upper + 1e-9
    assert found.gap >= best - found.log_potential


def test_toulbar2_refuses_what_it_cannot_search(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(3, 3, coupling=1.0, field=1.0, seed=0)
    refused("budget of 0.0 seconds", search_toulbar2, graph, seconds=0.0)
    refused("budget of 900000000.0 seconds", search_toulbar2, graph, seconds=9e8)
    refused("13 digits", search_toulbar2, graph, digits=13)
    refused("seed -1 of toulbar2", search_toulbar2, graph, seed=-1)
    refused("of toulbar2 is not from 0", search_toulbar2, graph, seed=10**23)
    far = FactorGraph.from_factors([2], [((0,), np.array([1e300, 1e-300]))])
    with pytest.raises(InputError, match="differ by 1381") as told:
        search_toulbar2(far, digits=12, seconds=1.0)
    assert "give fewer digits" in str(told.value)
    contradictory = FactorGraph.from_factors(
        [3, 3, 3],
        [((a, b), 1.0 - np.eye(3)) for a, b in ((0, 1), (1, 2), (0, 2))]
        + [((v,), np.array([1.0, 1.0, 0.0])) for v in range(3)],
    )
    with pytest.raises(ZeroPartitionError):
        search_toulbar2(contradictory)
    monkeypatch.setattr("sys.executable", "/bin/true")
    with pytest.raises(InferenceError, match="without an answer: nothing"):
        search_toulbar2(graph)
    monkeypatch.setattr("inference.peers.toulbar2_search.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'factorfacts\[toulbar2\]'"):
        search_toulbar2(graph)
