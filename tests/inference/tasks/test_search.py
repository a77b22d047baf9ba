"""The most probable assignment: by elimination, or what toulbar2 finds where that does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.errors import InputError, MissingDependencyError
from factormodels.synthetic import grid, random_graph
from inference import InferenceError, Status, ZeroPartitionError
from inference.exact.backend import Exact
from inference.peers.toulbar2_search import search_toulbar2
from inference.tasks import map_assignment, search_map
from tests.inference.graphs import frustrated, odd_graph
from tests.refusals import refused


def test_what_does_not_fit_is_searched_by_toulbar2(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(4, 4, coupling=2.0, field=1.0, seed=3).with_evidence({0: 0})
    best = map_assignment(graph)
    narrow = Exact(memory_limit=100)
    for found in (search_map(graph), search_map(graph, narrow)):
        assert found.status is Status.EXACT
        assert found.assignment.states.tolist() == best.states.tolist()
        assert found.assignment.log_potential == pytest.approx(best.log_potential, abs=1e-9)
        # toulbar2 proves up to the sixth digit of each of 40 tables.
        assert -1e-9 <= found.gap <= 1e-4
    assert {"nodes", "backtracks"} <= found.stats.keys()
    refused("budget of 0.0 seconds", search_map, graph, seconds=0.0)
    monkeypatch.setattr("inference.peers.toulbar2_search.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"would take .*\[toulbar2\]"):
        search_map(graph, narrow)
    assert search_map(graph).status is Status.EXACT


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
    assert found.upper > found.log_potential


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
