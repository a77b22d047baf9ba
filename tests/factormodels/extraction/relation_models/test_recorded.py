"""Recorded relations: what is found by texts and by ids, and how a bad record is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind, datasets
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.recorded import (
    RecordedRelations,
    read_recorded,
    recorded_in_graphs,
)
from factormodels.io.fact_graph_json import write_fact_graph, write_fact_graphs
from tests.factormodels.io.formats.release_records import lines_at
from tests.refusals import refused

ENTAILED = {"premise": "It is red.", "hypothesis": "It has a color.", "relation": "entailment"}


def model_of(folder: Path, *records: dict[str, Any]) -> RecordedRelations:
    return read_recorded(lines_at(folder / "recorded.jsonl", *records))


def test_a_pair_is_found_by_its_texts_whatever_its_ids(tmp_path: Path) -> None:
    model = model_of(tmp_path, {**ENTAILED, "probability": 0.8, "source": "c1", "target": "a1"})
    expected = Judgment(RelationKind.ENTAILMENT, 0.8, "recorded")
    assert model.judge([TextPair("IT  is red.", "It has\na color.", "c9", "a9")]) == [expected]


def test_ids_do_not_stand_for_other_texts(tmp_path: Path) -> None:
    # Ids repeat from response to response; with texts in the record, they are not enough.
    model = model_of(tmp_path, {**ENTAILED, "probability": 0.8, "source": "c1", "target": "a1"})
    (answer,) = model.judge([TextPair("Other.", "Text.", "c1", "a1")])
    assert isinstance(answer, Missing)


def test_a_record_without_texts_is_found_by_ids(tmp_path: Path) -> None:
    record = {"source": "c1", "target": "a1", "relation": "contradiction", "probability": 0.7}
    distribution = [0.1, 0.7, 0.2]
    model = model_of(tmp_path, {**record, "distribution": distribution})
    pairs = [TextPair("A.", "B.", "c1", "a1"), TextPair("B.", "A.", "a1", "c1")]
    first, other = model.judge(pairs)
    assert first == Judgment(RelationKind.CONTRADICTION, 0.7, "recorded", (0.1, 0.7, 0.2))
    assert isinstance(other, Missing)


def test_an_equivalence_of_a_graph_entails_both_ways() -> None:
    graph = FactGraph(
        "g",
        (Atom("a1", "One."),),
        (Context("c1", "Two."),),
        (Relation("c1", "a1", RelationKind.EQUIVALENCE, 0.9),),
    )
    model = recorded_in_graphs([graph])
    expected = Judgment(RelationKind.ENTAILMENT, 0.9, "recorded")
    assert model.judge([TextPair("One.", "Two."), TextPair("Two.", "One.")]) == [expected] * 2


def test_unrecorded_pairs_are_missing_or_neutral_as_asked() -> None:
    graphs = datasets.load("demonstration").graphs
    pair = TextPair("Never written.", "Nor this.")
    assert isinstance(recorded_in_graphs(graphs).judge([pair])[0], Missing)
    neutral = recorded_in_graphs(graphs, unrecorded=0.75).judge([pair])
    assert neutral == [Judgment(RelationKind.NEUTRAL, 0.75, "recorded")]
    refused("unrecorded", recorded_in_graphs, graphs, unrecorded=1.5)


def test_the_relations_of_the_demonstration_corpus_come_back() -> None:
    graphs = datasets.load("demonstration").graphs
    model = recorded_in_graphs(graphs)
    for graph in graphs:
        texts = {atom.id: atom.text for atom in graph.atoms}
        texts |= {context.id: context.text for context in graph.contexts}
        pairs = [TextPair(texts[r.source], texts[r.target]) for r in graph.relations]
        answers = model.judge(pairs)
        assert [(a.kind, a.probability) for a in answers if isinstance(a, Judgment)] == [
            (r.kind, r.probability) for r in graph.relations
        ]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"relation": "entailment", "probability": 0.5}, "recorded.jsonl: it names no pair"),
        ({**ENTAILED, "probability": 1.5}, "1.5 is not between"),
        ({**ENTAILED}, "'probability' is missing"),
        ({**ENTAILED, "relation": "similar", "probability": 0.5}, "'similar' is unknown"),
        ({**ENTAILED, "probability": 0.5, "distribution": [1, 0]}, "has 2 numbers"),
        ({**ENTAILED, "probability": 0.5, "distribution": 1}, "the distribution 1 is not valid"),
        ({**ENTAILED, "probability": 0.5, "distribution": {"same": 1}}, "relation 'same'"),
        ({**ENTAILED, "probability": 0.5, "distribution": [0.5, 0.5, 0.5]}, "must sum to 1"),
        ({**ENTAILED, "probability": 0.6, "distribution": [0.2, 0.7, 0.1]}, "favors contradiction"),
        ({**ENTAILED, "probability": 0.5, "premises": "x"}, "did you mean 'premise'"),
    ],
)
def test_a_bad_record_is_refused(tmp_path: Path, record: dict[str, Any], message: str) -> None:
    refused(message, model_of, tmp_path, record)


@pytest.mark.parametrize(
    "distribution",
    [
        [0.7, 0.1, 0.2],
        [0.7, 0.1, 0.0, 0.2],
        [0.3, 0.1, 0.4, 0.2],
        {"entailment": 0.7, "contradiction": 0.1, "neutral": 0.2},
        {"entailment": 0.3, "contradiction": 0.1, "equivalence": 0.4, "neutral": 0.2},
    ],
)
def test_every_way_to_write_a_distribution_is_read(tmp_path: Path, distribution: Any) -> None:
    record = {**ENTAILED, "probability": 0.7, "distribution": distribution}
    (answer,) = model_of(tmp_path, record).judge([TextPair("It is red.", "It has a color.")])
    assert isinstance(answer, Judgment)
    assert answer.distribution == pytest.approx((0.7, 0.1, 0.2), abs=1e-12)


def test_our_files_are_read_as_recorded_relations(tmp_path: Path) -> None:
    # A graph with distributions, its file, and its edges one by one.
    atoms = (Atom("a1", "One."), Atom("a2", "Three."))
    shares = (0.7, 0.1, 0.0, 0.2)
    relations = (
        Relation("c1", "a1", RelationKind.ENTAILMENT, 0.7, shares),
        Relation("c1", "a2", RelationKind.EQUIVALENCE, 0.6, (0.1, 0.1, 0.6, 0.2)),
    )
    graph = FactGraph("g", atoms, (Context("c1", "Two."),), relations)
    write_fact_graph(graph, tmp_path / "graph.json")
    write_fact_graphs([graph], tmp_path / "graphs.jsonl")
    edges = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))["edges"]
    lines_at(tmp_path / "edges.jsonl", *edges)
    pairs = [
        TextPair("Two.", "One.", "c1", "a1"),
        TextPair("Two.", "Three.", "c1", "a2"),
        TextPair("Three.", "Two.", "a2", "c1"),
    ]
    expected = recorded_in_graphs([graph]).judge(pairs)
    first, second, third = expected
    assert first == Judgment(RelationKind.ENTAILMENT, 0.7, "recorded", (0.7, 0.1, 0.2))
    assert second == third == Judgment(RelationKind.ENTAILMENT, 0.6, "recorded")
    for name in ("graph.json", "graphs.jsonl", "edges.jsonl"):
        assert read_recorded(tmp_path / name).judge(pairs) == expected


def test_two_answers_to_one_pair_are_refused(tmp_path: Path) -> None:
    first = {**ENTAILED, "probability": 0.5}
    model_of(tmp_path, first, first)
    refused(r"line 2.*0\.6.*0\.5", model_of, tmp_path, first, {**ENTAILED, "probability": 0.6})


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    refused("there is nothing in it", model_of, tmp_path)
