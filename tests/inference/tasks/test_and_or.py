"""Branch and bound over an AND/OR tree: the best there is, and bounds that hold at every stop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import grid, random_graph
from inference import ZeroPartitionError
from inference.mini_buckets.structure import elimination
from inference.possible_states import arrays_of, possible_states
from inference.tasks import map_assignment, search_map
from inference.tasks.dual import tightened_dual
from inference.tasks.kernels.and_or import begin, open_bound, pseudo_tree, search_on
from inference.tasks.search import _cold_buckets
from tests.inference.graphs import frustrated, odd_graph, tangled_graph
from tests.oracle import oracle


def searched(
    graph: FactorGraph,
    i_bound: int,
    cached: int,
    steps: int = 10**9,
    sweeps: int = 0,
    start: np.ndarray | None = None,
) -> tuple[float, list[float], int]:
    """Search without help; return the best, the bounds at every stop, and how many were begun.

    Args:
        start: the assignment to begin with; None: the first states, which may be impossible.
    """
    order, _ = elimination(graph, 0, 0)
    tables = tightened_dual(graph, 600.0, sweeps=sweeps).log_values
    found = _cold_buckets(graph, tables, order, i_bound)
    arrays = arrays_of(graph)
    pseudo = pseudo_tree(*arrays[:3], order, found.mini, cached)
    progress = begin(graph.cardinalities, found, pseudo)
    states = np.zeros(graph.n_variables, dtype=np.int64) if start is None else start.copy()
    best = np.array([graph.log_potential(states)])
    bounds, tried = [], 0
    while progress.place[0] >= 0:
        _, begun = search_on(
            *arrays, tables, order, found, pseudo, progress, states, best, 1e-6, steps
        )
        tried += begun
        bounds.append(open_bound(pseudo, progress, best[0]))
        assert graph.log_potential(states) == pytest.approx(best[0], abs=1e-8)
    return float(best[0]), bounds, tried


@pytest.mark.parametrize("graphs", [odd_graph, frustrated, tangled_graph])
@pytest.mark.parametrize("cached", [0, 20, 10**6])
@pytest.mark.slow
def test_the_best_is_found_and_bounds_hold_whenever_it_stops(
    graphs: Callable[[int], FactorGraph], cached: int
) -> None:
    compared = 0
    for seed in range(60):
        try:
            support = possible_states(graphs(seed).absorb_evidence())
            best = map_assignment(support.graph).log_potential
        except ZeroPartitionError:
            continue
        assert best == pytest.approx(max(oracle(support.graph).log_potentials), abs=1e-8)
        for i_bound, sweeps in ((1, 0), (1, 5), (2, 1)):
            value, bounds, _ = searched(support.graph, i_bound, cached, steps=3, sweeps=sweeps)
            assert value == pytest.approx(best, rel=1e-9, abs=2e-6), f"seed {seed}"
            assert min(bounds, default=best) >= best - 2e-6, f"seed {seed}"
            compared += 1
    assert compared > 100


def test_bounds_never_rise_by_more_than_the_slack() -> None:
    graph = grid(5, 5, coupling=2.0, field=1.0, seed=1)
    _, bounds, _ = searched(graph, 1, 1000, steps=10)
    assert len(bounds) > 5
    assert (np.diff(bounds) <= 2e-6).all()


def test_parts_that_share_nothing_cost_their_sum_and_not_their_product() -> None:
    part = random_graph(8, 16, min_arity=2, max_arity=2, log_range=2.0, seed=3)
    _, _, alone = searched(part, 1, 0)
    scopes = [part.scope(f) for f in range(part.n_factors)]
    tables = [table for _, table in part.factors()]
    factors = [
        ([v + 8 * copy for v in scope], table)
        for copy in range(6)
        for scope, table in zip(scopes, tables, strict=True)
    ]
    many = FactorGraph.from_factors([*part.cardinalities] * 6, factors, log=True)
    value, _, together = searched(many, 1, 0)
    assert value == pytest.approx(6 * map_assignment(part).log_potential, abs=1e-5)
    # Orders of elimination differ between copies, and so do the mini-buckets.
    assert together < 6 * 20 * alone
    # Below one variable that all parts hang on it is the same.
    tied = [((0, 8 * copy), np.zeros((part.cardinalities[0],) * 2)) for copy in range(1, 6)]
    star = FactorGraph.from_factors(many.cardinalities, [*factors, *tied], log=True)
    value, _, hanging = searched(star, 1, 0)
    assert value == pytest.approx(6 * map_assignment(part).log_potential, abs=1e-5)
    assert hanging < 6 * 20 * alone * int(part.cardinalities[0])


def test_what_is_learned_by_context_saves_work() -> None:
    with_cache = without = 0
    for seed in range(5):
        graph = grid(3, 14, coupling=2.0, field=0.5, seed=seed)
        best = map_assignment(graph).log_potential
        value, _, tried = searched(graph, 1, 0)
        assert value == pytest.approx(best, abs=1e-5)
        without += tried
        value, _, tried = searched(graph, 1, 10**6)
        assert value == pytest.approx(best, abs=1e-5)
        with_cache += tried
    assert with_cache < 0.8 * without


def test_a_better_assignment_from_outside_cuts_and_stays() -> None:
    graph = grid(5, 5, coupling=2.0, field=1.0, seed=2)
    best = map_assignment(graph)
    value, _, helped = searched(graph, 1, 0, start=best.states)
    assert value == pytest.approx(best.log_potential, abs=1e-9)
    _, _, alone = searched(graph, 1, 0)
    assert helped <= alone


def test_a_graph_too_deep_for_the_tree_is_still_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.tasks.search._TREE_SHARE", 0.0)
    chain = grid(1, 30, coupling=1.0, field=1.0, seed=0)
    # Mini-buckets that are not split are exact, and what they say is taken.
    found = search_map(chain, seconds=600.0)
    assert found.status == "exact"
    assert found.assignment.log_potential == pytest.approx(map_assignment(chain).log_potential)
    wide = grid(12, 12, coupling=2.0, field=1.0, seed=0)
    found = search_map(wide, i_bound=2, seconds=0.5)
    best = map_assignment(wide).log_potential
    assert found.assignment.log_potential <= best + 1e-9 <= found.upper + 2e-9


def test_a_graph_of_no_variables_has_one_assignment() -> None:
    graph = FactorGraph.from_factors([1, 1], [((0, 1), np.array([[2.0]]))])
    found = search_map(graph, seconds=600.0)
    assert found.status == "exact"
    assert found.assignment.log_potential == pytest.approx(np.log(2.0))
    alone = FactorGraph.from_factors([3], [((0,), np.array([1.0, 5.0, 2.0]))])
    assert search_map(alone, seconds=600.0).assignment.states.tolist() == [1]
    isolated = FactorGraph.from_factors([3, 2], [((0,), np.array([1.0, 5.0, 2.0]))])
    assert search_map(isolated, seconds=600.0).assignment.states[0] == 1
