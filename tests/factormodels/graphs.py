"""Fact graphs and comparisons of factor graphs that several tests share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from factormodels import FactGraph, FactorGraph, Relation, RelationKind, read
from factormodels.synthetic import fact_graph

ARRAYS = ("cardinalities", "scope_starts", "scope_variables", "table_starts", "evidence")
"""What the factor graphs of all settings of a fact graph share."""


def assert_same(made: FactorGraph, expected: FactorGraph) -> None:
    """Check that two factor graphs are the same to the last bit, names included."""
    assert made.names == expected.names
    for name in (*ARRAYS, "log_values"):
        first, other = getattr(made, name), getattr(expected, name)
        assert first.dtype == other.dtype
        np.testing.assert_array_equal(first, other)


def read_network(path: Path) -> FactorGraph:
    """Return the network of a file, which `read` does not tell from fact graphs by its type."""
    network = read(path)
    assert isinstance(network, FactorGraph)
    return network


def mixed() -> FactGraph:
    """Return a graph with every kind of relation, a neutral one in their middle, and certainty."""
    graph = fact_graph(4, 2, 0.4, 0.3, seed=3).with_priors(atoms={"a1": 0.0, "a3": 1.0})
    first, second, third, *others = graph.relations
    between = (
        Relation("a1", "a2", RelationKind.EXCLUSIVE, 0.8),
        Relation("a2", "a4", RelationKind.CO_NECESSITY, 0.6),
    )
    neutral, certain = replace(second, kind=RelationKind.NEUTRAL), replace(third, probability=1.0)
    mixed = replace(graph, relations=(first, certain, neutral, *others, *between))
    assert {relation.kind for relation in mixed.relations} == set(RelationKind)
    return mixed


def in_words(relations: Iterable[Relation]) -> str:
    """Return relations in words: "c1 a1 entailment 0.9, c1 c2 contradiction 0.8"."""
    return ", ".join(f"{r.source} {r.target} {r.kind} {r.probability}" for r in relations)
