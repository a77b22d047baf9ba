"""Graphs written with fewer states and factors, possible assignments, boxes without zeros."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import random_graph
from inference import InferenceError, ZeroPartitionError, infer
from inference.messages.kernels.reduction import CONSTANT, UNARY, Reduced
from inference.messages.reduction import reduced
from inference.possible_states import (
    assignment,
    hard_factors,
    hard_groups,
    possible_states,
    random_box,
    restricted,
    state_starts,
)
from tests.inference.answers import enumerated, flat, given
from tests.inference.graphs import (
    CONTRADICTIONS,
    Tables,
    all_different,
    forest,
    odd_graph,
    tangled_graph,
)
from tests.oracle import oracle

DIFFERENT = [[0.0, 1.0], [1.0, 0.0]]


def zeros_everywhere(seed: int) -> FactorGraph:
    """Return a graph of many zeros; every other one is spared an assignment."""
    rng = np.random.default_rng(seed)
    return random_graph(
        int(rng.integers(2, 8)),
        int(rng.integers(1, 14)),
        zero_probability=float(rng.choice([0.2, 0.5, 0.7])),
        satisfiable=bool(seed % 2),
        seed=rng,
    )


def seed_of(number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(number)


def test_dropped_states_are_impossible_and_change_nothing() -> None:
    contradictions = 0
    for seed in range(300):
        graph = zeros_everywhere(seed)
        truth = oracle(graph)
        try:
            states = possible_states(graph)
        except ZeroPartitionError:
            assert truth.log_z == -np.inf, f"seed {seed}"
            contradictions += 1
            continue
        assert (states.graph.cardinalities > 1).all()
        if truth.log_z > -np.inf:
            smaller = infer(states.graph, "enumeration")
            # Sums of the same few terms in another order.
            assert given(smaller) + states.log_constant == pytest.approx(truth.log_z, abs=1e-12)
            expanded = states.expand(smaller.marginals.flat)
            np.testing.assert_allclose(expanded, flat(truth), atol=1e-12)
    assert contradictions > 20


def test_on_forests_every_state_that_is_left_is_possible() -> None:
    for seed in range(100):
        graph = forest(seed, zero_probability=0.4)
        alive = possible_states(graph).alive
        assert (alive == (enumerated(graph) > 0.0)).all(), f"seed {seed}"


def test_an_assignment_is_found_if_there_is_one() -> None:
    missing = 0
    for seed in range(400):
        graph = zeros_everywhere(seed)
        try:
            states = assignment(graph, seed_of(seed))
        except ZeroPartitionError:
            assert oracle(graph).log_z == -np.inf, f"seed {seed}"
            missing += 1
        else:
            assert graph.log_potential(states) > -np.inf, f"seed {seed}"
    assert missing > 50


def test_assignments_differ_between_seeds_and_repeat_with_one() -> None:
    graph = FactorGraph.from_factors([3] * 20, [([i, i + 1], 1 - np.eye(3)) for i in range(19)])
    drawn = {tuple(assignment(graph, seed_of(seed))) for seed in range(20)}
    assert len(drawn) > 15
    again = assignment(graph, seed_of(3))
    assert tuple(assignment(graph, seed_of(3))) == tuple(again)


def test_a_contradiction_that_only_a_search_finds() -> None:
    # Arc consistency has nothing against six pigeons in five holes.
    assert len(possible_states(all_different(6, 5)).graph.names) == 6
    with pytest.raises(ZeroPartitionError):
        assignment(all_different(6, 5), seed_of(0))


def test_a_search_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.possible_states.SEARCH_ENTRIES", 10_000)
    with pytest.raises(InferenceError, match=r"no assignment .* was found.* 'exact'"):
        assignment(all_different(10, 9), seed_of(0))


def test_a_large_puzzle_on_a_forest_takes_no_backtracking() -> None:
    n = 20_000
    graph = FactorGraph.from_factors([2] * n, [([i, i + 1], DIFFERENT) for i in range(n - 1)])
    states = assignment(graph, seed_of(0))
    assert (states[1:] != states[:-1]).all()


def test_boxes_hold_no_zero_and_cannot_grow() -> None:
    for seed in range(200):
        graph = zeros_everywhere(2 * seed + 1)
        box = random_box(graph, seed_of(seed))
        starts = state_starts(graph)
        inside = restricted(graph, box)
        assert np.isfinite(inside.graph.log_values).all()
        assert np.isfinite(inside.log_constant)
        for variable in range(graph.n_variables):
            for at in np.arange(starts[variable], starts[variable + 1])[
                ~box[starts[variable] : starts[variable + 1]]
            ]:
                larger = box.copy()
                larger[at] = True
                assert _holds_a_zero(graph, larger), f"seed {seed}"


def test_groups_that_zeros_connect() -> None:
    graph = FactorGraph.from_factors(
        [2, 1, 2, 2, 2],
        [([0, 2], np.eye(2)), ([2, 3], np.ones((2, 2))), ([3, 1], [[0.0], [1.0]]), ([4], [0, 1])],
    )
    assert hard_factors(graph).tolist() == [True, False, True, True]
    assert [group.tolist() for group in hard_groups(graph)] == [[0, 2]]


def test_states_of_the_smaller_graph_are_translated_back() -> None:
    graph = FactorGraph.from_factors(
        [3, 2, 4], [([0], [0, 1, 1]), ([1], [0, 1]), ([2], [1, 0, 0, 1])]
    )
    reduced = possible_states(graph)
    assert reduced.graph.names == ("0", "2")
    states = reduced.expand_states(np.array([[0, 0], [1, 1]]))
    assert states.tolist() == [[1, 1, 0], [2, 1, 3]]


def _holds_a_zero(graph: FactorGraph, box: np.ndarray) -> bool:
    starts = state_starts(graph)
    for scope, table in graph.factors():
        kept = [np.flatnonzero(box[starts[v] : starts[v + 1]]) for v in scope]
        if np.isneginf(table[np.ix_(*kept)] if kept else table).any():
            return True
    return False


def rebuilt(graph: FactorGraph, model: Reduced) -> FactorGraph:
    """Return a reduced graph as a factor graph."""
    starts = model.state_starts
    factors: Tables = [([], np.array(model.constant))]
    factors += [([v], model.unary[starts[v] : starts[v + 1]]) for v in range(graph.n_variables)]
    for factor in range(len(model.scope_starts) - 1):
        scope = model.scope_variables[model.scope_starts[factor] : model.scope_starts[factor + 1]]
        table = model.log_values[model.table_starts[factor] : model.table_starts[factor + 1]]
        factors.append((scope.tolist(), table))
    return FactorGraph.from_factors(graph.cardinalities, factors, log=True)


def scopes_of(model: Reduced) -> list[set[int]]:
    return [
        set(part.tolist()) for part in np.split(model.scope_variables, model.scope_starts[1:-1])
    ]


def test_a_reduced_graph_keeps_potentials_and_has_scopes_neither_nested_nor_fixed() -> None:
    for seed in range(300):
        graph = (odd_graph if seed % 2 else tangled_graph)(seed).absorb_evidence()
        model = reduced(graph)
        first, other = oracle(graph), oracle(rebuilt(graph, model))
        # The same numbers, added up in another order.
        np.testing.assert_allclose(
            other.log_potentials,
            first.log_potentials,
            rtol=1e-11,
            atol=1e-11,
            err_msg=f"seed {seed}",
        )
        scopes = [scope for scope in scopes_of(model) if scope]
        assert len(scopes) == len(model.scope_starts) - 1
        for i, scope in enumerate(scopes):
            assert len(scope) >= 2
            assert all(model.fixed[v] < 0 for v in scope)
            assert not any(scope <= other for j, other in enumerate(scopes) if j != i)
        for factor, home in enumerate(model.homes.tolist()):
            free = {v for v in graph.scope(factor) if model.fixed[v] < 0}
            if home >= 0:
                assert free <= scopes[home]
            else:
                assert len(free) == {CONSTANT: 0, UNARY: 1}[home]


def test_states_that_cannot_occur_are_struck_out_until_nothing_follows() -> None:
    # 0 excludes the first state of 1, which excludes that of 2, and so on around to the last.
    n = 6
    follow = np.array([[1.0, 1.0], [0.0, 1.0]])
    chain = [([i, i + 1], follow) for i in range(n - 1)]
    graph = FactorGraph.from_factors([2] * n, [*reversed(chain), ([0], [0.0, 1.0])])
    model = reduced(graph)
    assert model.fixed.tolist() == [1] * n
    assert len(model.scope_variables) == 0
    # Neither factor excludes a state, their product does.
    both = FactorGraph.from_factors(
        [2, 2, 2], [([0, 1], [[0, 1], [1, 1]]), ([1, 0], [[1, 1], [0, 1]]), ([1, 2], follow)]
    )
    assert reduced(both).fixed.tolist() == [1, -1, -1]


def test_binary_pairs_are_recognized() -> None:
    pair, wide = ([0, 1], [[1, 2], [3, 4]]), ([0, 1, 2], np.arange(1.0, 9.0))
    assert reduced(FactorGraph.from_factors([2] * 3, [pair, ([2], [1, 2])])).binary_pairs
    assert reduced(FactorGraph.from_factors([2, 2, 3], [pair])).binary_pairs
    assert not reduced(FactorGraph.from_factors([2] * 3, [pair, wide])).binary_pairs
    observed = FactorGraph.from_factors([2] * 3, [pair, wide]).with_evidence({2: 1})
    assert reduced(observed.absorb_evidence()).binary_pairs
    extreme = FactorGraph.from_factors([2] * 2, [([0, 1], [0, 0, 0, 200.0])], log=True)
    assert not reduced(extreme).binary_pairs


@pytest.mark.parametrize("where", [where for where in CONTRADICTIONS if where != "a cycle"])
def test_reduction_finds_contradictions(where: str) -> None:
    with pytest.raises(ZeroPartitionError):
        reduced(CONTRADICTIONS[where])
