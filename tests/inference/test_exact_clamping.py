"""Elimination where tables miss the memory: without impossible states, or a few clamped."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import grid, random_graph
from inference import (
    InferenceError,
    Posterior,
    Status,
    TooLargeError,
    ZeroPartitionError,
    infer,
    infer_batch,
)
from inference.backend import Result
from inference.exact import clamping, plans, workspaces
from inference.exact.backend import Exact
from inference.exact.clamping import Clamped
from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import Workspace
from inference.exact.planner import Refused
from inference.exact.prediction import STEPS_PER_SECOND
from inference.exact.ways import Solved, Threads
from inference.exact.workspaces import large_workspace
from tests.inference.graphs import all_different


def narrow(graph: FactorGraph, share: float) -> Exact:
    """Settings that may take a share of the memory that elimination takes."""
    return Exact(memory_limit=int(share * Exact().predict(graph).bytes))


@pytest.mark.parametrize(
    "graph",
    [
        grid(8, 8, coupling=1.0, field=1.0, seed=0),
        grid(8, 8, coupling=1.0, field=1.0, seed=1).with_evidence({9: 1}),
        random_graph(14, 30, max_arity=3, max_cardinality=4, zero_probability=0.03, seed=3),
    ],
)
def test_clamping_and_summing_is_exact(graph: FactorGraph) -> None:
    exact, truth = narrow(graph, 0.6), infer(graph, "exact")
    assert exact.predict(graph).method == "clamping"
    posterior = exact.infer(graph)
    assert posterior.status is Status.EXACT
    assert posterior.stats["method"] == "clamping"
    assert posterior.stats["predicted_bytes"] <= (exact.memory_limit or 0)
    # Sums of doubles in another order.
    assert posterior.log_z == pytest.approx(truth.log_z, abs=1e-10)
    np.testing.assert_allclose(posterior.marginals.flat, truth.marginals.flat, atol=1e-12)
    for other in infer_batch([graph] * 3, exact):
        assert other.log_z == posterior.log_z


@pytest.mark.parametrize("share", [0.2, 0.03])
def test_many_variables_are_clamped_where_little_memory_is_allowed(share: float) -> None:
    graph = grid(12, 12, coupling=1.0, field=1.0, seed=0)
    exact, truth = narrow(graph, share), infer(graph, "exact")
    way = exact.ready(graph)
    assert isinstance(way, Clamped)
    # Fewer do not suffice: each halves tables at most.
    assert 2.0 ** len(way.variables) >= 1.0 / share
    assert way.cost.bytes <= (exact.memory_limit or 0)
    posterior = exact.infer(graph)
    # Sums of doubles in another order.
    assert posterior.log_z == pytest.approx(truth.log_z, abs=1e-9)
    np.testing.assert_allclose(posterior.marginals.flat, truth.marginals.flat, atol=1e-11)


def test_large_tables_of_all_assignments_take_one_workspace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = grid(8, 8, coupling=1.0, field=1.0, seed=0)
    taken: list[int] = []

    def counted(program: TreeProgram, table_starts: NDArray[np.int64]) -> Workspace:
        taken.append(len(table_starts))
        return large_workspace(program, table_starts)

    monkeypatch.setattr(plans, "LOG2_CHUNKED_TABLE", 1.0)
    monkeypatch.setattr(workspaces, "large_workspace", counted)
    # As where tables take a large part of the memory: no run leaves its workspace to the next, nor
    # did one before this test.
    monkeypatch.setattr(workspaces, "_SHARE", 0.0)
    monkeypatch.setattr(plans, "SPARE", workspaces.SpareWorkspace())
    posterior = narrow(graph, 0.6).infer(graph)
    assert posterior.stats["method"] == "clamping"
    assert len(taken) == 1
    assert posterior.log_z == pytest.approx(infer(graph, "exact").log_z, abs=1e-9)
    assert len(taken) == 2


def test_graph_far_beyond_the_memory_limit_is_refused() -> None:
    graph = grid(12, 12, coupling=1.0, field=1.0, seed=0)
    with pytest.raises(TooLargeError, match="by memory_limit"):
        narrow(graph, 0.001).infer(graph)


def test_the_limit_of_time_counts() -> None:
    graph = grid(8, 8, coupling=1.0, field=1.0, seed=0)
    exact = narrow(graph, 0.6)
    seconds = exact.predict(graph).seconds
    short = Exact(memory_limit=exact.memory_limit, seconds_limit=0.9 * seconds)
    assert short.predict(graph).method == "clamping"
    with pytest.raises(TooLargeError):
        short.infer(graph)


def test_the_search_for_what_to_clamp_takes_its_steps_and_one_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit of one second was mostly spent on it, so that little was left for bounds."""
    steps: list[float] = []
    attempt = clamping._chosen

    def counted(*given: Any) -> Any:
        choice = attempt(*given)
        steps.append(choice.steps)
        return choice

    monkeypatch.setattr(clamping, "_chosen", counted)
    for seconds in (0.02, 0.1):
        steps.clear()
        graph = grid(20, 20, coupling=1.0, field=1.0, seed=0)
        exact = Exact(memory_limit=2_000_000, clamping_search_seconds=seconds)
        with pytest.raises(TooLargeError):
            exact.infer(graph)
        assert steps
        assert sum(steps[:-1]) <= seconds * STEPS_PER_SECOND


def test_a_contradiction_is_found() -> None:
    graph = all_different(7, 2)
    with pytest.raises(ZeroPartitionError):
        narrow(graph, 0.6).infer(graph)


def hard(seed: int) -> FactorGraph:
    """A grid of variables of four states, of which a third are impossible by factors of pairs."""
    rng = np.random.default_rng(seed)
    graph = grid(4, 4, coupling=1.0, field=1.0, seed=seed)
    possible = [np.sort(rng.permutation(4)[: rng.integers(1, 5)]) for _ in range(16)]
    factors = []
    for pair in (graph.scope(f) for f in range(graph.n_factors) if len(graph.scope(f)) == 2):
        table = np.zeros((4, 4))
        rows = np.ix_(*(possible[v] for v in pair))
        table[rows] = rng.uniform(0.1, 2.0, size=table[rows].shape)
        factors.append((pair, table))
    return FactorGraph.from_factors([4] * 16, factors)


def test_impossible_states_take_no_memory() -> None:
    graphs = [hard(seed) for seed in range(5)]
    exact = narrow(graphs[0], 0.5)
    least = min(exact.predict(graph).bytes for graph in graphs)
    assert least < 0.5 * (exact.memory_limit or 0)
    for graph, batched in zip(graphs, infer_batch(graphs, exact), strict=True):
        posterior, truth = exact.infer(graph), infer(graph, "exact")
        assert posterior.log_z == batched.log_z == pytest.approx(truth.log_z, abs=1e-10)
        np.testing.assert_allclose(posterior.marginals.flat, truth.marginals.flat, atol=1e-12)
        assert posterior.stats["predicted_bytes"] <= (exact.memory_limit or 0)


@pytest.mark.parametrize("share", [0.6, 0.02])
def test_each_graph_of_a_structure_has_its_own_impossible_states(share: float) -> None:
    graph = hard(0)
    exact = narrow(graph, share)
    full = graph.with_log_values(np.where(np.isneginf(graph.log_values), -1.0, graph.log_values))
    nothing = graph.with_log_values(np.full_like(graph.log_values, -np.inf))
    graphs = [graph, full, nothing]
    alone = [result_of(exact, graph) for graph in graphs]
    for order in permutations(range(3)):
        rows = np.array([graphs[i].log_values for i in order])
        # As every graph's tables are: kernels would be compiled anew for others.
        rows.flags.writeable = False
        posteriors = exact.solve_settings(graph, rows)
        assert [numbers(result) for result in posteriors] == [numbers(alone[i]) for i in order]
    assert isinstance(alone[0], Posterior)
    assert alone[0].log_z == pytest.approx(infer(graph, "exact").log_z, abs=1e-10)
    # What does not fit is told of those graphs alone that have no other way.
    assert isinstance(alone[1], Posterior if share > 0.5 else TooLargeError)
    assert isinstance(alone[2], ZeroPartitionError)
    # A prediction is made all the same.
    assert exact.predict(nothing) == replace(exact, memory_limit=None).predict(graph)


def test_graphs_that_need_all_of_the_memory_are_solved_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graphs = [hard(0)] * 12
    exact, solve = narrow(graphs[0], 0.5), Refused.solve
    running, most = [], []

    def watched(self: Refused, graph: FactorGraph, threads: Threads) -> Solved:
        running.append(graph)
        time.sleep(0.01)
        most.append(len(running))
        try:
            return solve(self, graph, threads)
        finally:
            running.pop()

    monkeypatch.setattr(Refused, "solve", watched)
    infer_batch(graphs, exact, threads=4)
    assert most == [1] * 12


def result_of(exact: Exact, graph: FactorGraph) -> Result:
    try:
        return exact.infer(graph)
    except InferenceError as error:
        return error


def numbers(result: Result) -> tuple[object, ...]:
    if isinstance(result, Posterior):
        return result.log_z, *result.marginals.flat.tolist(), result.stats["method"]
    return type(result), str(result)
