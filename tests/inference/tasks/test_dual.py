"""The dual: a bound that never rises, tables with the same sums, suggestions worth a look."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import grid, random_graph
from inference import ZeroPartitionError
from inference.possible_states import possible_states
from inference.tasks import map_assignment
from inference.tasks.dual import decoded, tightened_dual
from tests.inference.graphs import frustrated, odd_graph, tangled_graph
from tests.oracle import oracle


def with_tables(graph: FactorGraph, log_values: np.ndarray) -> FactorGraph:
    factors = [
        (scope, part.reshape([graph.cardinalities[v] for v in scope]))
        for scope, part in zip(
            map(graph.scope, range(graph.n_factors)),
            np.split(log_values, graph.table_starts[1:-1]),
            strict=True,
        )
    ]
    return FactorGraph.from_factors(graph.cardinalities, factors, log=True)


@pytest.mark.parametrize("graphs", [odd_graph, frustrated, tangled_graph])
@pytest.mark.parametrize("sweeps", [1, 20])
@pytest.mark.slow
def test_every_assignment_keeps_its_potential_and_none_exceeds_the_bound(
    graphs: Callable[[int], FactorGraph], sweeps: int
) -> None:
    for seed in range(40):
        # As given, with states that are impossible and variables of one state or of no factor.
        graph = graphs(seed).absorb_evidence()
        enumerated = oracle(graph)
        dual = tightened_dual(graph, 600.0, sweeps=sweeps)
        assert not np.isnan(dual.log_values).any()
        assert (dual.log_values < np.inf).all()
        best = max(enumerated.log_potentials)
        slack = 1e-9 * max(1.0, abs(best) if best > -np.inf else 1.0)
        assert dual.bound >= best - slack, f"seed {seed}"
        if dual.bound == -np.inf or not graph.n_factors:
            continue
        after = oracle(with_tables(graph, dual.log_values))
        for was, found in zip(enumerated.log_potentials, after.log_potentials, strict=True):
            assert found == pytest.approx(was, rel=1e-9, abs=1e-8), f"seed {seed}"


def test_the_bound_never_rises_and_is_tight_on_a_tree() -> None:
    for seed in range(10):
        graph = grid(4, 4, coupling=2.0, field=1.0, cardinality=3, seed=seed)
        bounds = [tightened_dual(graph, 600.0, sweeps=count).bound for count in range(6)]
        assert (np.diff(bounds) <= 1e-9).all()
        assert bounds[-1] < bounds[0] - 1.0
        chain = grid(1, 12, coupling=3.0, field=1.0, cardinality=3, seed=seed)
        best = map_assignment(chain).log_potential
        assert tightened_dual(chain, 600.0).bound == pytest.approx(best)


def test_what_it_suggests_is_the_best_on_a_chain() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        chain = grid(1, 12, coupling=1.0, field=1.0, cardinality=3, seed=seed)
        dual = tightened_dual(chain, 600.0)
        best = map_assignment(chain).log_potential
        # The last sweep went backwards: forwards, each variable knows of all after it.
        states = decoded(dual, np.arange(12))
        assert chain.log_potential(states) == pytest.approx(best)
        for _ in range(3):
            states = decoded(dual, rng.permutation(12))
            assert chain.log_potential(states) <= best + 1e-9


def test_suggestions_of_the_sweeps_are_states_of_the_graph() -> None:
    for seed in range(20):
        graph = random_graph(8, 12, max_arity=4, max_cardinality=4, seed=seed)
        seen: list[np.ndarray] = []

        def keep(states: np.ndarray, seen: list[np.ndarray] = seen) -> None:
            seen.append(states.copy())

        tightened_dual(graph, 600.0, keep)
        assert seen
        for states in seen:
            assert ((states >= 0) & (states < graph.cardinalities)).all()


def test_two_tables_that_rule_each_other_out_bound_nothing() -> None:
    first, second = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    graph = FactorGraph.from_factors([2, 2], [((0,), first), ((0,), second), ((1,), first)])
    assert tightened_dual(graph, 600.0).bound == -np.inf


def test_no_time_leaves_the_sum_of_the_largest_entries() -> None:
    graph = possible_states(grid(3, 3, coupling=1.0, field=1.0, seed=0)).graph
    dual = tightened_dual(graph, 1e-9)
    tables = np.split(graph.log_values, graph.table_starts[1:-1])
    assert dual.bound <= sum(table.max() for table in tables) + 1e-9


def test_kernels_agree_with_the_definition_on_one_factor_of_three() -> None:
    # Of one table, the first sweep leaves its largest entry as the bound.
    rng = np.random.default_rng(1)
    table = rng.normal(size=(2, 3, 4))
    graph = FactorGraph.from_factors([2, 3, 4], [((0, 1, 2), table)], log=True)
    dual = tightened_dual(graph, 600.0, sweeps=3)
    assert dual.bound == pytest.approx(table.max())
    for states in itertools.product(range(2), range(3), range(4)):
        entry = np.ravel_multi_index(states, (2, 3, 4))
        assert dual.log_values[entry] == pytest.approx(table[states])


def test_zero_partition_is_met_by_the_bound_or_by_the_search() -> None:
    graph = FactorGraph.from_factors([2, 2], [((0, 1), np.zeros((2, 2)))])
    assert tightened_dual(graph, 600.0).bound == -np.inf
    with pytest.raises(ZeroPartitionError):
        map_assignment(graph)
