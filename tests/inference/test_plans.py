"""Plans of exact elimination that are kept: right for what they are kept for, and bounded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import inference.exact.backend
import inference.exact.plans
from factormodels import FactorGraph
from factormodels.synthetic import fr2
from inference import TooLargeError, infer, infer_batch
from inference.exact.backend import Exact
from inference.exact.plans import KeptPlans, Key, Plan, by_structure
from tests.inference.answers import assert_right
from tests.inference.graphs import odd_graph


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptPlans:
    plans = KeptPlans()
    monkeypatch.setattr(inference.exact.backend, "KEPT", plans)
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
        first = infer(graph)
        again = other_tables(graph, seed)
        held = kept.get(key_of(graph))
        assert held is not None
        assert_right(again, infer(again), 1e-10, rel=1e-10)
        assert kept.get(key_of(again)) is held
        assert infer(graph).marginals.flat.tobytes() == first.marginals.flat.tobytes()


def test_plans_are_kept_by_structure_and_settings(kept: KeptPlans) -> None:
    graph = fr2(6, 2, density=0.5, seed=0)
    infer(graph)
    with pytest.raises(TooLargeError):
        infer(graph, memory_limit=16)
    # The same scopes over other numbers of states are another structure.
    one, other = (FactorGraph.from_factors([n, 2], [([0, 1], np.ones((n, 2)))]) for n in (2, 3))
    assert one.structure != other.structure
    for each in (one, other):
        assert infer(each).log_z == pytest.approx(np.log(each.cardinalities.prod()), abs=1e-14)
    assert kept.get(key_of(graph, seed=1)) is None


def test_a_graph_changed_after_it_was_answered_has_another_plan() -> None:
    graph = fr2(4, 2, density=0.5, seed=0)
    infer(graph)  # From here on the graph keeps the key of its structure.
    observed = graph.with_evidence({0: 1})
    softened = graph.with_soft_evidence({0: [1.0, 3.0]})
    for changed in (observed, softened):
        assert changed.absorb_evidence().structure != graph.structure
        # Sums of 2**12 terms, each rounded to 1e-16.
        assert_right(changed, infer(changed), 1e-12, rel=1e-12)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference.exact.plans, "_MOST_KEPT", 3)
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
    expected = [plan.run(one.log_values, lambda: 1).marginals.tobytes() for one in graphs]
    with ThreadPoolExecutor(4) as pool:
        runs = pool.map(lambda one: plan.run(one.log_values, lambda: 1), graphs)
        assert [run.marginals.tobytes() for run in runs] == expected


def test_a_batch_of_many_settings_of_many_structures_is_one_run_for_each() -> None:
    graphs = [
        other_tables(fr2(3 + size, 2, density=0.4, seed=size), seed)
        for seed in range(10)
        for size in range(6)
    ]
    graphs += [odd_graph(seed) for seed in range(20)]
    assert sorted(map(len, by_structure(graphs)))[-6:] == [10] * 6
    for threads in (1, 3):
        for one, graph in zip(infer_batch(graphs, Exact(), threads=threads), graphs, strict=True):
            alone = infer(graph)
            assert one.marginals.flat.tobytes() == alone.marginals.flat.tobytes()
            assert one.log_z == alone.log_z
            assert one.stats.keys() == alone.stats.keys()
