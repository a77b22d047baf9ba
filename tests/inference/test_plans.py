"""Plans of exact elimination that are kept: right for what they are kept for, and bounded."""

from __future__ import annotations

import pickle
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

import inference.exact.batch
import inference.exact.planner
import inference.exact.plans
import inference.exact.workspaces
from factormodels import FactorGraph
from factormodels.errors import FactormodelsError
from factormodels.synthetic import fr2, grid
from inference import Posterior, TooLargeError, ZeroPartitionError, infer, infer_batch
from inference.batch import batch_results
from inference.evidence import with_observed
from inference.exact.backend import Exact
from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import Workspace, new_workspace, propagate
from inference.exact.plans import MOST_KEPT, KeptPlans, Key, Plan, by_structure
from inference.exact.small import ALLOWANCE
from inference.exact.workspaces import (
    FEWEST_SHARED_BYTES,
    SharedWorkspaces,
    SpareWorkspace,
    large_workspace,
)
from inference.memory import MemoryAllowance
from inference.stacked_graphs import end_of_range
from inference.thread_team import SECONDS_AT_MOST
from tests.inference.answers import assert_right
from tests.inference.graphs import odd_graph


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptPlans:
    plans = KeptPlans()
    monkeypatch.setattr(inference.exact.planner, "KEPT", plans)
    return plans


def other_tables(graph: FactorGraph, seed: int) -> FactorGraph:
    values = np.random.default_rng(seed).normal(size=len(graph.log_values))
    values.flags.writeable = False
    return graph.with_log_values(values)


def key_of(graph: FactorGraph, seed: int = 0) -> Key:
    exact = Exact()
    return graph.structure, seed, exact.restarts, exact.search_seconds, None


def plan_of(graph: FactorGraph) -> Plan:
    return Plan.of(graph, seed=0, restarts=0, effort=0.0, max_entries=1e9)


def test_a_kept_plan_answers_for_other_tables_as_a_new_one(kept: KeptPlans) -> None:
    for seed in range(30):
        graph = odd_graph(seed).absorb_evidence()
        first = infer(graph, "exact")
        again = other_tables(graph, seed)
        plan = kept.get(key_of(graph))
        assert plan is not None
        assert_right(again, infer(again, "exact"), 1e-10, rel=1e-10)
        assert kept.get(key_of(again)) is plan
        assert infer(graph, "exact").marginals.flat.tobytes() == first.marginals.flat.tobytes()


def test_plans_are_kept_by_structure_and_settings(kept: KeptPlans) -> None:
    graph = fr2(6, 2, density=0.5, seed=0)
    infer(graph, "exact")
    with pytest.raises(TooLargeError):
        infer(graph, "exact", memory_limit=16)
    # The same scopes over other numbers of states are another structure.
    first, other = (FactorGraph.from_factors([n, 2], [([0, 1], np.ones((n, 2)))]) for n in (2, 3))
    assert first.structure != other.structure
    for each in (first, other):
        assert infer(each, "exact").log_z == pytest.approx(
            np.log(each.cardinalities.prod()), abs=1e-14
        )
    assert kept.get(key_of(graph, seed=1)) is None


def test_a_graph_changed_after_it_was_answered_has_another_plan() -> None:
    graph = fr2(4, 2, density=0.5, seed=0)
    infer(graph, "exact")  # From here on the graph keeps the key of its structure.
    observed = graph.with_evidence({0: 1})
    softened = graph.with_soft_evidence({0: [1.0, 3.0]})
    for changed in (observed, softened):
        assert changed.absorb_evidence().structure != graph.structure
        # Sums of 2**12 terms, each rounded to 1e-16.
        assert_right(changed, infer(changed, "exact"), 1e-12, rel=1e-12)


def test_the_store_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference.exact.plans, "MOST_KEPT", 3)
    graphs = [FactorGraph.from_factors([2] * n, [(range(n), np.ones(2**n))]) for n in range(1, 8)]
    keys = [key_of(graph) for graph in graphs]
    plans = KeptPlans()
    for key, graph in zip(keys, graphs, strict=True):
        plans.keep(key, plan_of(graph))
        plans.get(keys[0])
    # The first was asked for again and again, of the others the last ones are left.
    assert [number for number, key in enumerate(keys) if plans.get(key)] == [0, 5, 6]
    monkeypatch.setattr(inference.exact.plans, "_MOST_BYTES", 4.0)
    few = KeptPlans()
    few.keep(keys[0], plan_of(graphs[0]))
    assert few.get(keys[0]) is None


def test_threads_share_a_plan_and_not_its_tables() -> None:
    graph = fr2(12, 3, density=0.2, seed=1)
    plan = plan_of(graph)
    graphs = [other_tables(graph, seed) for seed in range(40)]
    expected = [plan.run(graph.log_values, lambda: 1).marginals.tobytes() for graph in graphs]
    with ThreadPoolExecutor(4) as pool:
        runs = pool.map(lambda graph: plan.run(graph.log_values, lambda: 1), graphs)
        assert [run.marginals.tobytes() for run in runs] == expected


def test_a_batch_of_more_structures_than_are_kept_is_one_run_for_each() -> None:
    graphs = [odd_graph(seed) for seed in range(400)]
    graphs += [fr2(4, 2, density=0.4, seed=seed) for seed in range(40)]
    # Contradictions, a structure that conditioning may solve, and a few that follow each other.
    graphs.append(FactorGraph.from_factors([2], [([0], [0.0, 0.0])]))
    graphs += [other_tables(fr2(26, 5, density=0.02, seed=1), seed) for seed in range(3)]
    # Ten settings of each of six structures, in turns.
    sizes = [fr2(3 + size, 2, density=0.4, seed=size) for size in range(6)]
    graphs += [other_tables(graph, seed) for seed in range(10) for graph in sizes]
    assert len(by_structure([graph.absorb_evidence() for graph in graphs])) > MOST_KEPT
    alone = [Exact().attempt(graph.absorb_evidence()) for graph in graphs]
    for threads in (1, 3):
        results = batch_results(graphs, Exact(), threads)
        for graph, posterior, expected in zip(graphs, results, alone, strict=True):
            if isinstance(expected, FactormodelsError):
                assert str(posterior) == str(expected)
                continue
            assert isinstance(posterior, Posterior)
            values = with_observed(graph, expected.marginals).flat
            assert posterior.marginals.flat.tobytes() == values.tobytes()
            assert posterior.log_z == expected.log_z
            assert posterior.stats.keys() == expected.stats.keys() | {"seconds"}
    assert {type(result) for result in alone} == {Posterior, ZeroPartitionError}


@pytest.mark.parametrize("kept", [10, pytest.param(MOST_KEPT, marks=pytest.mark.nightly)])
def test_large_tables_of_a_batch_of_many_structures_are_refused_as_alone(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference.exact.batch, "MOST_KEPT", kept)
    # Even with every claim clamped, 32 passages take more memory than 16.
    graphs = [fr2(8, 2 + 2 * (k % 2), density=0.5, seed=k) for k in range(kept + 10)]
    exact = Exact(memory_limit=1000)
    results = batch_results(graphs, exact, 2)
    expected = [exact.attempt(graph) for graph in graphs]
    kinds = [type(result) for result in expected]
    assert [type(result) for result in results] == kinds
    assert set(kinds) == {Posterior, TooLargeError}


def test_a_structure_that_batches_ask_for_again_is_kept(kept: KeptPlans) -> None:
    graphs = [fr2(4, 2, density=0.4, seed=seed).absorb_evidence() for seed in range(5)]
    keys = [key_of(graph) for graph in graphs]
    answers = []
    for _ in range(3):
        answers.append(
            [posterior.marginals.flat.tobytes() for posterior in infer_batch(graphs, Exact())]
        )
        known = [kept.get(key) is not None for key in keys]
        assert known == [len(answers) > 1] * 5
    assert answers[0] == answers[1] == answers[2]


def test_requests_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference.exact.plans, "_MOST_REMEMBERED", 2)
    keys = [key_of(FactorGraph.from_factors([n], [])) for n in (2, 3, 4)]
    plans = KeptPlans()
    assert [plans.asked_before(key) for key in keys] == [False] * 3
    assert [plans.asked_before(key) for key in reversed(keys)] == [True, True, False]


def test_a_large_plan_that_is_kept_is_refused_when_memory_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inference.exact.plans, "LOG2_CHUNKED_TABLE", 1.0)
    graph = fr2(6, 2, density=0.5, seed=0)
    infer(graph, "exact")
    short = MemoryAllowance(100, "a test")
    monkeypatch.setattr(inference.exact.planner, "allowance", lambda _: short)
    with pytest.raises(TooLargeError, match="a test"):
        infer(graph, "exact")


def test_the_workspace_of_large_tables_is_used_again_by_one_at_a_time() -> None:
    large, small = plan_of(fr2(8, 3, density=0.4, seed=0)), plan_of(fr2(3, 2, density=0.4, seed=0))
    spare = SpareWorkspace()
    first = spare.take(large.program, large.table_starts)
    spare.give(first)
    part = spare.take(small.program, small.table_starts)
    assert all(np.shares_memory(a, b) for a, b in zip(first, part, strict=True))
    fresh = large_workspace(small.program, small.table_starts)
    assert [a.shape for a in part] == [a.shape for a in fresh]
    other = spare.take(small.program, small.table_starts)
    assert not any(np.shares_memory(a, b) for a, b in zip(first, other, strict=True))
    spare.give(part)  # The whole is kept, though a part of it was taken.
    again = spare.take(large.program, large.table_starts)
    assert all(np.shares_memory(a, b) for a, b in zip(first, again, strict=True))


def test_a_workspace_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(fr2(3, 2, density=0.4, seed=0))
    spare = SpareWorkspace()
    monkeypatch.setattr(inference.exact.workspaces, "_SECONDS", 0.01)
    work = spare.take(plan.program, plan.table_starts)
    kept = weakref.ref(work.tables)
    spare.give(work)
    del work
    for _ in range(3000):
        if kept() is None:
            break
        time.sleep(0.01)
    assert kept() is None
    # More than a share of the memory is not kept at all.
    monkeypatch.setattr(inference.exact.workspaces, "_SHARE", 0.0)
    first = spare.take(plan.program, plan.table_starts)
    spare.give(first)
    second = spare.take(plan.program, plan.table_starts)
    assert not np.shares_memory(first.tables, second.tables)


def test_graphs_are_distinguished_by_all_arrays_of_their_structure() -> None:
    rng = np.random.default_rng(0)
    graphs: list[FactorGraph] = []
    for seed in range(12):
        graph = odd_graph(seed).absorb_evidence()
        graphs += [graph, other_tables(graph, seed), pickle.loads(pickle.dumps(graph))]
    # These differ in their first scope, or in one number of states, and in nothing else.
    for first in ((0, 1), (0, 2), (1, 2)):
        for states in ([2] * 12, [2] * 11 + [3]):
            scopes = [first, *((v, v + 1) for v in range(10))]
            tables = [np.ones((states[a], states[b])) for a, b in scopes]
            factors = list(zip(scopes, tables, strict=True))
            graphs += [FactorGraph.from_factors(states, factors) for _ in range(2)]
    graphs = [graphs[number] for number in rng.permutation(len(graphs))]
    expected: dict[object, list[int]] = {}
    for number, graph in enumerate(graphs):
        expected.setdefault(graph.structure, []).append(number)
    assert len(expected) < len(graphs) / 2
    assert sorted(map(sorted, by_structure(graphs))) == sorted(expected.values())
    assert by_structure([]) == []


def test_graphs_that_are_stacked_at_a_time_are_few_where_tables_are_large() -> None:
    graphs = [odd_graph(seed) for seed in range(50)]
    assert end_of_range(graphs, 0, 50) == 50
    first = 0
    while first < len(graphs):
        last = end_of_range(graphs, first, len(graphs), 200)
        assert first < last <= len(graphs)
        entries = sum(len(graph.log_values) for graph in graphs[first:last])
        assert entries <= 200 or last == first + 1
        first = last


def test_heavy_graphs_after_light_ones_are_shared() -> None:
    light = [other_tables(fr2(4, 2, density=0.2, seed=0), seed) for seed in range(300)]
    heavy = [other_tables(fr2(22, 5, density=0.1, seed=1), seed) for seed in range(12)]
    plan = plan_of(heavy[0].absorb_evidence())
    assert plan.cost.seconds > 0.003
    sizes: list[tuple[int, int]] = []
    solve = inference.exact.batch._Batch.solve

    def noted(batch: inference.exact.batch._Batch, first: int, last: int) -> None:
        sizes.append((first, last))
        solve(batch, first, last)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference.exact.batch._Batch, "solve", noted)
        results = batch_results([*light, *heavy], Exact(), 2)
    assert all(isinstance(result, Posterior) for result in results)
    most = max(1, int(SECONDS_AT_MOST / plan.cost.seconds))
    assert max(last - first for first, last in sizes if last > 300) <= most
    assert max(last - first for first, last in sizes if last <= 300) > 4 * most


def test_tables_that_can_be_written_have_no_kernels_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ALLOWANCE, "spent", True)
    graph = fr2(3, 6, density=0.5, seed=0)
    # The second time by the plan that is kept.
    before = [Exact().infer(graph).log_z for _ in range(2)]
    kernels = set(propagate.signatures)
    writable = graph.with_log_values(np.array(graph.log_values))
    assert [Exact().infer(writable).log_z for _ in range(2)] == before
    assert set(propagate.signatures) == kernels


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of factors of every graph for which a workspace of small tables is made."""
    numbers: list[int] = []

    def counted(program: TreeProgram, table_starts: NDArray[np.int64]) -> Workspace:
        numbers.append(len(table_starts) - 1)
        made: Workspace = new_workspace(program, table_starts)
        return made

    monkeypatch.setattr(inference.exact.workspaces, "new_workspace", counted)
    monkeypatch.setattr(inference.exact.plans, "SHARED", SharedWorkspaces())
    return numbers


def grid_of(side: int) -> FactorGraph:
    return grid(side, side, coupling=1.0, field=1.0, seed=side)


@pytest.mark.usefixtures("kept")
def test_structures_share_a_workspace_unless_it_is_too_small(made: list[int]) -> None:
    sides = (9, 10, 9, 8, 10)
    graphs = [grid_of(side) for side in sides]
    assert min(Exact().predict(graph).bytes for graph in graphs) >= FEWEST_SHARED_BYTES
    answers = [infer(graph, "exact") for graph in graphs]
    # The smaller ones take a part of the largest.
    assert made == [graph.n_factors for graph in graphs[:2]]
    for graph, answer in zip(graphs, answers, strict=True):
        run = plan_of(graph).run_each([graph.log_values])
        _, log_z, marginals, _ = next(iter(run))
        assert answer.log_z == pytest.approx(log_z, abs=1e-9)
        np.testing.assert_allclose(answer.marginals.flat, marginals, atol=1e-9)


@pytest.mark.usefixtures("kept")
def test_threads_take_workspaces_of_their_own(made: list[int]) -> None:
    graphs = [other_tables(grid_of(10), seed) for seed in range(4)]
    expected = [infer(graph, "exact").log_z for graph in graphs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda graph: infer(graph, "exact").log_z, graphs * 8))
    assert together == expected * 8
    assert 1 <= len(made) <= 4
