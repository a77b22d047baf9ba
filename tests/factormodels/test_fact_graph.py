"""FactGraph: order, priors, copies, columns, and its factor graph."""

from __future__ import annotations

import copy
import logging
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

from factormodels import (
    Atom,
    Context,
    FactGraph,
    Relation,
    RelationKind,
)
from factormodels.io.fact_graph_json import fact_graph_object

ENTAILMENT, CONTRADICTION, EQUIVALENCE, NEUTRAL, EXCLUSIVE, CO_NECESSITY = RelationKind


def many_atoms(count: int = 12) -> FactGraph:
    return FactGraph(
        "r",
        tuple(Atom(f"a{i}", prior=i / 100) for i in range(1, count + 1)),
        tuple(Context(f"c{i}", prior=1 - i / 100) for i in range(count, 0, -1)),
        tuple(Relation(f"c{i}", f"a{i}", ENTAILMENT, 0.8) for i in range(1, count + 1)),
    )


GRAPH = FactGraph(
    "r",
    atoms=(Atom("a1", prior=0.4), Atom("a2", prior=0.0)),
    contexts=(Context("c1", prior=0.9, retrieved_for=("a1", "a2")), Context("c2", prior=1.0)),
    relations=(
        Relation("c1", "a1", ENTAILMENT, 0.8),
        Relation("c2", "c1", NEUTRAL, 0.7),
        Relation("a2", "c2", EQUIVALENCE, 1.0),
        Relation("a1", "a2", CONTRADICTION, 0.6),
    ),
    query="query",
    response="response",
    topic="topic",
    metadata={"model": "m", "scores": [1, 2]},
)


def test_variables_keep_the_order_given_and_are_never_sorted_as_strings() -> None:
    assert many_atoms().atom_ids == tuple(f"a{i}" for i in range(1, 13))
    assert many_atoms().context_ids == tuple(f"c{i}" for i in range(12, 0, -1))
    graph = many_atoms().to_factor_graph()
    assert graph.names[8:11] == ("a9", "a10", "a11")
    assert graph.names[12:15] == ("c12", "c11", "c10")
    np.testing.assert_allclose(
        np.exp(graph.log_values[1:24:2]), [i / 100 for i in range(1, 13)], rtol=1e-15
    )


def test_a_graph_may_lack_relations_contexts_and_even_atoms() -> None:
    assert FactGraph("r", (Atom("a1"),)).to_factor_graph().n_factors == 1
    assert FactGraph("r", ()).to_factor_graph().n_variables == 0
    assert FactGraph("r", (), (Context("c1"),)).to_factor_graph().names == ("c1",)


def test_both_orders_of_a_pair_may_be_recorded() -> None:
    assert related("c1 a1", "a1 c1").to_factor_graph().n_factors == 4


# What a caller without a type checker writes.
unchecked: Any = FactGraph

ATOMS, CONTEXTS = (Atom("a1"),), (Context("c1"),)


def related(*pairs: str) -> FactGraph:
    ends = (pair.split() for pair in pairs)
    relations = tuple(Relation(source, target, ENTAILMENT, 0.8) for source, target in ends)
    return FactGraph("r", ATOMS, CONTEXTS, relations)


def test_priors_are_replaced_for_all_or_by_id() -> None:
    changed = GRAPH.with_priors(atoms=0.25, contexts={"c2": 0.75})
    assert [atom.prior for atom in changed.atoms] == [0.25, 0.25]
    assert [context.prior for context in changed.contexts] == [0.9, 0.75]
    assert changed.relations == GRAPH.relations
    assert changed.metadata == GRAPH.metadata
    assert [atom.prior for atom in GRAPH.atoms] == [0.4, 0.0]
    assert GRAPH.with_priors() == GRAPH


def test_a_fact_graph_is_immutable_and_takes_no_part_in_later_changes_of_its_lists() -> None:
    atoms, metadata = [Atom("a1")], {"model": "m"}
    graph: Any = unchecked("r", atoms, metadata=metadata)
    atoms.append(Atom("a2"))
    metadata["model"] = "other"
    assert graph.atom_ids == ("a1",)
    assert graph.metadata == {"model": "m"}
    with pytest.raises(FrozenInstanceError):
        setattr(graph, "atoms", ())  # noqa: B010
    with pytest.raises(TypeError):
        graph.metadata["model"] = "other"


def test_a_graph_of_columns_makes_its_claims_when_they_are_asked_for() -> None:
    graph = pickle.loads(pickle.dumps(GRAPH))
    # What needs no claims makes none.
    again = pickle.loads(pickle.dumps(graph))
    assert graph.atom_ids == GRAPH.atom_ids
    assert fact_graph_object(graph) == fact_graph_object(GRAPH)
    np.testing.assert_array_equal(
        graph.to_factor_graph().log_values, GRAPH.to_factor_graph().log_values
    )
    made = {"atoms", "contexts", "relations"}
    assert not made.intersection(vars(graph))
    assert graph.relations == GRAPH.relations
    assert graph.relations is graph.relations
    assert made.intersection(vars(graph)) == {"relations"}
    assert graph == GRAPH
    assert again.derived(GRAPH.contexts[:1], ()) == replace(
        GRAPH, contexts=GRAPH.contexts[:1], relations=()
    )


@pytest.mark.parametrize("graph", [GRAPH, pickle.loads(pickle.dumps(GRAPH))])
def test_columns_are_those_of_the_claims(graph: FactGraph) -> None:
    for part, cls in (("atoms", Atom), ("contexts", Context), ("relations", Relation)):
        for field in fields(cls):
            column = graph.column(part, field.name)
            assert list(column) == [getattr(entry, field.name) for entry in getattr(GRAPH, part)]


def test_a_derived_graph_has_the_columns_of_what_is_left() -> None:
    left = GRAPH.derived(GRAPH.contexts[:1], ())
    assert list(left.column("contexts", "id")) == [GRAPH.contexts[0].id]
    assert list(left.column("relations", "kind")) == []
    assert pickle.loads(pickle.dumps(left)) == left


def test_a_fact_graph_survives_pickling_copying_and_serves_as_a_key() -> None:
    twin: Any
    assert GRAPH.atom_ids == ("a1", "a2")
    for twin in (pickle.loads(pickle.dumps(GRAPH)), copy.deepcopy(GRAPH), replace(GRAPH)):
        assert twin == GRAPH
        assert hash(twin) == hash(GRAPH)
        assert twin.atom_ids == GRAPH.atom_ids
        with pytest.raises(TypeError):
            twin.metadata["model"] = "other"
    assert replace(GRAPH, metadata={}) != GRAPH
    assert GRAPH.with_priors(atoms=0.5) != GRAPH


def test_relations_held_improbable_are_reported_without_crying_wolf(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="factormodels"):
        FactGraph(
            "r",
            ATOMS,
            (*CONTEXTS, Context("c2")),
            (Relation("c1", "a1", ENTAILMENT, 0.3), Relation("c2", "a1", NEUTRAL, 0.2)),
        )
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert (
        "'r': 1 relation less probable than 0.5, neutral under every encoding"
        in record.getMessage()
    )
