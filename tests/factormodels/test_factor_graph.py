"""FactorGraph: flat arrays, evidence (held against the oracle), copies."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels import FactorGraph
from factormodels.factor_graph import UNOBSERVED, default_names
from factormodels.synthetic import random_graph
from tests.oracle import oracle
from tests.refusals import refused

# At most a few thousand terms, each with a relative error of some ulps (2.2e-16).
SUMMED = 1e-11

ARRAYS = [field.name for field in fields(FactorGraph) if field.name not in ("names", "state_names")]


@st.composite
def graphs(draw: st.DrawFn) -> FactorGraph:
    """Small graphs: any arity to 3 and cardinality to 3, constants, repeated scopes, zeros."""
    cards = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    potentials = st.one_of(st.just(0.0), st.floats(0.01, 10.0))
    factors = []
    for _ in range(draw(st.integers(0, 6))):
        scope = draw(st.permutations(range(len(cards))))[: draw(st.integers(0, 3))]
        size = math.prod(cards[v] for v in scope)
        factors.append((scope, draw(st.lists(potentials, min_size=size, max_size=size))))
    return FactorGraph.from_factors(cards, factors)


@st.composite
def observed(draw: st.DrawFn) -> tuple[FactorGraph, dict[int, int]]:
    graph = draw(graphs())
    chosen = draw(st.sets(st.integers(0, graph.n_variables - 1)))
    return graph, {v: draw(st.integers(0, int(graph.cardinalities[v]) - 1)) for v in sorted(chosen)}


def example() -> FactorGraph:
    return FactorGraph.from_factors(
        [2, 3],
        [((1, 0), [[1, 2], [3, 4], [5, 6]]), ((), 7.0), ((1,), [1, 0, 1])],
        names=["x", "y"],
    )


def test_tables_are_kept_with_the_last_variable_of_the_scope_fastest() -> None:
    graph = example()
    assert graph.n_variables == 2
    assert graph.n_factors == 3
    assert graph.scope(0) == (1, 0)
    assert graph.log_table(0).shape == (3, 2)
    assert graph.log_values.tolist() == [
        *np.log([1, 2, 3, 4, 5, 6]).tolist(),
        *[math.log(7), 0.0, -math.inf, 0.0],
    ]
    assert graph.scope_starts.tolist() == [0, 2, 2, 3]
    assert graph.table_starts.tolist() == [0, 6, 7, 10]
    assert graph.evidence.tolist() == [UNOBSERVED, UNOBSERVED]
    scopes = [scope for scope, _ in graph.factors()]
    assert scopes == [(1, 0), (), (1,)]


def test_flat_tables_and_shaped_tables_are_the_same() -> None:
    table = np.arange(1.0, 7.0)
    shaped = FactorGraph.from_factors([2, 3], [((0, 1), table.reshape(2, 3))])
    flat = FactorGraph.from_factors([2, 3], [((0, 1), table)])
    np.testing.assert_array_equal(shaped.log_values, flat.log_values)
    logs = FactorGraph.from_factors([2, 3], [((0, 1), np.log(table))], log=True)
    np.testing.assert_array_equal(logs.log_values, flat.log_values)


def test_names_default_to_numbers_and_keep_their_order() -> None:
    assert FactorGraph.from_factors([1] * 12, []).names == default_names(12)
    assert default_names(12)[9:] == ("9", "10", "11")
    names = ("a9", "a10", "a1")
    graph = FactorGraph.from_factors([2, 2, 2], [], names=names)
    assert graph.names == names
    assert graph.index == {"a9": 0, "a10": 1, "a1": 2}


def test_an_empty_graph_is_a_graph() -> None:
    graph = FactorGraph.from_factors([], [])
    assert (graph.n_variables, graph.n_factors) == (0, 0)
    assert oracle(graph).log_z == 0.0
    assert graph.absorb_evidence() is graph


@given(graphs())
def test_log_potential_is_the_sum_of_the_tables_entries(graph: FactorGraph) -> None:
    answer = oracle(graph)
    for states, expected in zip(answer.states, answer.log_potentials, strict=True):
        # Six terms at most, none above 5 in absolute value.
        assert graph.log_potential(states) == pytest.approx(expected, abs=1e-13)


def test_a_state_against_the_evidence_is_impossible() -> None:
    graph = example().with_evidence({"x": 1})
    assert graph.log_potential([0, 0]) == -math.inf
    assert graph.log_potential([1, 0]) == pytest.approx(math.log(2 * 7))


@given(observed())
def test_evidence_conditions_the_distribution(pair: tuple[FactorGraph, dict[int, int]]) -> None:
    graph, states = pair
    before, after = oracle(graph), oracle(graph.with_evidence(states))
    event = {graph.names[v]: state for v, state in states.items()}
    chance = 0.0 if before.log_z == -math.inf else before.probability(event)
    if chance == 0.0:
        assert after.log_z == -math.inf
        return
    assert after.log_z - before.log_z == pytest.approx(math.log(chance), abs=SUMMED)
    for name, position in graph.index.items():
        for state in range(int(graph.cardinalities[position])):
            if name in event:
                expected = float(state == event[name])
            else:
                expected = before.probability({**event, name: state}) / chance
            assert after.marginals[name][state] == pytest.approx(expected, abs=SUMMED)


@given(observed())
def test_absorbing_evidence_keeps_log_z_and_the_distribution_of_the_rest(
    pair: tuple[FactorGraph, dict[int, int]],
) -> None:
    graph = pair[0].with_evidence(pair[1])
    absorbed = graph.absorb_evidence()
    assert absorbed.names == graph.names
    assert (absorbed.evidence == UNOBSERVED).all()
    np.testing.assert_array_equal(absorbed.scope_variables, graph.scope_variables)
    for v, count in enumerate(absorbed.cardinalities.tolist()):
        assert count == (1 if v in pair[1] else graph.cardinalities[v])
    first, two = oracle(graph), oracle(absorbed)
    # The same assignments in the same order, the same entries of the same tables: no rounding.
    assert first.log_potentials == two.log_potentials
    # What was built without validation passes it.
    replace(absorbed)


@given(seed=st.integers(0, 10**6), data=st.data())
def test_absorbing_agrees_with_slicing_on_larger_tables(seed: int, data: st.DataObject) -> None:
    graph = random_graph(9, 12, max_arity=5, min_arity=0, zero_probability=0.2, seed=seed)
    chosen = data.draw(st.sets(st.integers(0, 8)))
    states = {v: seed % int(graph.cardinalities[v]) for v in chosen}
    absorbed = graph.with_evidence(states).absorb_evidence()
    for factor, (scope, table) in enumerate(graph.factors()):
        cut = tuple(slice(states[v], states[v] + 1) if v in states else slice(None) for v in scope)
        np.testing.assert_array_equal(absorbed.log_table(factor), table[cut])


def test_evidence_counts_on_a_graph_whose_properties_were_read_before() -> None:
    # `with_evidence` keeps what the graph has computed, so nothing kept may depend on the evidence.
    kinds = (property, cached_property)
    names = [name for name, value in vars(FactorGraph).items() if isinstance(value, kinds)]
    assert "has_evidence" in names
    used = example()
    for name in names:
        getattr(used, name)
    observed_later, observed_at_once = used.with_evidence({"x": 1}), observing({"x": 1})
    for name in names:
        np.testing.assert_equal(getattr(observed_later, name), getattr(observed_at_once, name))
    assert observed_later.has_evidence


def test_evidence_is_added_to_earlier_evidence_by_name_or_number() -> None:
    graph = observing({np.int64(0): np.int64(1)}).with_evidence({1: 2}).with_evidence({"x": 1})
    assert graph.evidence.tolist() == [1, 2]
    assert example().evidence.tolist() == [UNOBSERVED, UNOBSERVED]


@given(graphs(), st.data())
def test_soft_evidence_reweights_the_distribution(graph: FactorGraph, data: st.DataObject) -> None:
    variable = data.draw(st.integers(0, graph.n_variables - 1))
    name, count = graph.names[variable], int(graph.cardinalities[variable])
    # With zeros: a certain likelihood is hard evidence.
    values = st.one_of(st.just(0.0), st.floats(0.01, 5.0))
    likelihood = data.draw(st.lists(values, min_size=count, max_size=count))
    before, after = oracle(graph), oracle(graph.with_soft_evidence({name: likelihood}))
    chances = [0.0] * count if before.log_z == -math.inf else before.marginals[name]
    weights = [w * p for w, p in zip(likelihood, chances, strict=True)]
    total = math.fsum(weights)
    if total == 0.0:
        assert after.log_z == -math.inf
        return
    assert after.log_z - before.log_z == pytest.approx(math.log(total), abs=SUMMED)
    assert after.marginals[name] == pytest.approx([w / total for w in weights], abs=SUMMED)


def test_soft_evidence_joins_any_number_of_variables_after_the_factors() -> None:
    graph = weighing({"y": [1, 2, 3], 0: (0, 1)})
    assert [scope for scope, _ in graph.factors()] == [(1, 0), (), (1,), (1,), (0,)]
    np.testing.assert_array_equal(graph.log_table(3), np.log([1, 2, 3]))
    assert graph.log_table(4).tolist() == [-math.inf, 0.0]
    replace(graph)
    unchanged = example()
    assert unchanged.with_soft_evidence({}) is unchanged


def flat(**changes: Any) -> FactorGraph:
    arrays: dict[str, Any] = {name: getattr(example(), name) for name in ("names", *ARRAYS)}
    return FactorGraph(**{**arrays, **changes})


# What a caller without a type checker writes.
FROM: Any = FactorGraph.from_factors


def observing(states: Any) -> FactorGraph:
    return example().with_evidence(states)


def weighing(likelihoods: Any) -> FactorGraph:
    return example().with_soft_evidence(likelihoods)


def test_an_unknown_name_in_a_large_graph_lists_only_some_names() -> None:
    refused(r"use one of 0, 1, 2, .* or 991 more", FROM([2] * 1000, []).with_evidence, {"x": 0})


def test_a_table_too_large_for_its_scope_to_count_is_refused_not_overflowed() -> None:
    refused(r"factor 0 has a table of 4 entries; .* requires 11805", FROM, [2] * 70,
            [(range(70), np.ones(4))])  # fmt: skip


def test_arrays_are_read_only_and_apart_from_the_callers() -> None:
    graph = example()
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(graph, name)[...] = 0
    with pytest.raises(FrozenInstanceError):
        setattr(graph, "names", ())  # noqa: B010
    cardinalities = np.array([2, 3])
    values = graph.log_values.copy()
    view = values[:]
    view.flags.writeable = False
    other = flat(cardinalities=cardinalities, log_values=view)
    cardinalities[:] = 9
    values[:] = 9.0
    assert other.cardinalities.tolist() == [2, 3]
    np.testing.assert_array_equal(other.log_values, graph.log_values)


@pytest.mark.parametrize(
    "twin", [lambda g: pickle.loads(pickle.dumps(g)), copy.deepcopy, copy.copy, replace]
)
def test_copies_are_equal_and_as_read_only(twin: Callable[[FactorGraph], FactorGraph]) -> None:
    graph = example().with_evidence({"x": 1})
    assert graph.index["y"] == 1
    other = twin(graph)
    assert other.names == graph.names
    assert other.index == graph.index
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(other, name), getattr(graph, name))
        assert not getattr(other, name).flags.writeable


def test_derived_graphs_are_as_read_only_and_leave_the_one_they_start_from_alone() -> None:
    start = example()
    before = {name: getattr(start, name).copy() for name in ARRAYS}
    graph = start.with_evidence({"x": 1})
    for other in (graph, graph.with_soft_evidence({"y": [1, 2, 3]}), graph.absorb_evidence()):
        for name in ARRAYS:
            assert not getattr(other, name).flags.writeable
            assert getattr(other, name).dtype == (float if name == "log_values" else np.int64)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(start, name), before[name])
