"""Settings of a fact graph are the factor graphs that one would make for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.parameter_settings import drawn_probabilities, log_tables
from tests.chance import DEVIATIONS
from tests.factormodels.graphs import mixed
from tests.refusals import refused


def with_numbers(
    graph: FactGraph,
    atoms: Sequence[float],
    contexts: Sequence[float],
    probabilities: Sequence[float],
) -> FactGraph:
    """Return the fact graph with other numbers, made object by object."""
    return replace(
        graph,
        atoms=tuple(replace(a, prior=p) for a, p in zip(graph.atoms, atoms, strict=True)),
        contexts=tuple(replace(c, prior=p) for c, p in zip(graph.contexts, contexts, strict=True)),
        relations=tuple(
            replace(r, probability=p) for r, p in zip(graph.relations, probabilities, strict=True)
        ),
    )


@pytest.mark.parametrize("certain", [False, True])
def test_a_row_is_the_factor_graph_of_its_setting(certain: bool) -> None:
    graph = mixed()
    rng = np.random.default_rng(int(certain))
    atoms, contexts, probabilities = (
        rng.random((5, len(items))) for items in (graph.atoms, graph.contexts, graph.relations)
    )
    if certain:
        atoms, contexts, probabilities = atoms.round(), contexts.round(), probabilities.round()
    encodings = ["implication", "conditional", "implication", "conditional", "conditional"]
    rows = log_tables(
        graph,
        atom_priors=atoms,
        context_priors=contexts,
        relation_probabilities=probabilities,
        encoding=encodings,
    )
    assert rows.dtype == np.float64
    for row, a, c, p, encoding in zip(rows, atoms, contexts, probabilities, encodings, strict=True):
        made = with_numbers(graph, a.tolist(), c.tolist(), p.tolist())
        np.testing.assert_array_equal(row, made.to_factor_graph(encoding).log_values)


def test_what_is_not_given_stays_and_what_is_given_broadcasts() -> None:
    graph = mixed()
    recorded = [r.probability for r in graph.relations]
    own = [c.prior for c in graph.contexts]
    np.testing.assert_array_equal(log_tables(graph), [graph.to_factor_graph().log_values])
    each = np.linspace(0.1, 0.9, len(graph.atoms))
    strengths = np.array([[0.2], [0.9], [1.0]])
    rows = log_tables(graph, atom_priors=each, relation_probabilities=strengths)
    assert len(rows) == 3
    for row, strength in zip(rows, strengths[:, 0].tolist(), strict=True):
        made = with_numbers(graph, each.tolist(), own, [strength] * len(recorded))
        np.testing.assert_array_equal(row, made.to_factor_graph().log_values)
    (row,) = log_tables(graph, context_priors=0.25, encoding="conditional")
    made = with_numbers(graph, [a.prior for a in graph.atoms], [0.25] * len(own), recorded)
    np.testing.assert_array_equal(row, made.to_factor_graph("conditional").log_values)


def test_graphs_without_contexts_or_relations() -> None:
    lone = FactGraph("lone", (Atom("a"), Atom("b")))
    rows = log_tables(lone, atom_priors=[[0.5, 0.0], [0.25, 1.0]])
    np.testing.assert_array_equal(np.exp(rows), [[0.5, 0.5, 1.0, 0.0], [0.75, 0.25, 0.0, 1.0]])
    neutral = Relation("c", "a", RelationKind.NEUTRAL, 0.5)
    graph = FactGraph("neutral", (Atom("a"),), (Context("c"),), (neutral,))
    rows = log_tables(graph, relation_probabilities=[[0.1], [0.2], [0.3]])
    np.testing.assert_array_equal(rows, [graph.to_factor_graph().log_values] * 3)


def test_draws_follow_their_law() -> None:
    graph = mixed()
    n, c = 4000, 9.0
    drawn = drawn_probabilities(graph, concentration=c, draws=n, seed=1)
    assert drawn.shape == (n, len(graph.relations))
    for relation, column in zip(graph.relations, drawn.T, strict=True):
        if relation.kind is RelationKind.NEUTRAL or relation.probability == 1.0:
            assert (column == relation.probability).all()
            continue
        p = relation.probability
        deviation = np.sqrt(p * (1.0 - p) / (c + 1.0) / n)
        assert abs(column.mean() - p) < DEVIATIONS * deviation
    again = drawn_probabilities(graph, concentration=c, draws=n, seed=1)
    np.testing.assert_array_equal(drawn, again)
    assert not np.array_equal(drawn, drawn_probabilities(graph, concentration=c, draws=n, seed=2))


def test_certain_relations_are_not_drawn() -> None:
    relations = tuple(
        Relation(f"c{i}", "a", RelationKind.ENTAILMENT, p) for i, p in enumerate([0.0, 1.0, 0.5])
    )
    contexts = tuple(Context(f"c{i}") for i in range(3))
    graph = FactGraph("certain", (Atom("a"),), contexts, relations)
    drawn = drawn_probabilities(graph, concentration=2.0, draws=50, seed=0)
    np.testing.assert_array_equal(drawn[:, :2], [[0.0, 1.0]] * 50)
    assert len(np.unique(drawn[:, 2])) == 50


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"atom_priors": np.ones((2, 3))}, r"atom_priors has the shape \(2, 3\); give .*, 4\)"),
        ({"context_priors": np.ones((1, 1, 8))}, "context_priors has the shape"),
        ({"atom_priors": "many"}, "atom_priors is not an array of numbers"),
        ({"atom_priors": [[0.5, 0.5, 1.5, 0.5]]}, r"1\.5 of 'a3' in setting 0 is not between 0"),
        ({"relation_probabilities": [[0.5], [np.nan]]}, "nan in setting 1 is not"),
        (
            {"atom_priors": [[0.5], [0.6]], "context_priors": [[0.5], [0.6], [0.7]]},
            "numbers of settings differ: 2 for atom_priors, 3 for context_priors",
        ),
        ({"encoding": ["implication", "no"]}, "the encoding 'no' is unknown"),
        ({"encoding": ["implication"] * 3, "atom_priors": [[0.5], [0.6]]}, "settings differ"),
    ],
)
def test_bad_settings_are_named(arguments: dict[str, object], match: str) -> None:
    refused(match, log_tables, mixed(), **arguments)
