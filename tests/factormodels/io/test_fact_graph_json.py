"""Fact-graph JSON: what is written is read, and what could not be read is not written."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factormodels import Atom, Context, FactGraph, Relation, RelationKind, read_many
from factormodels.io.fact_graph_json import (
    fact_graph_text,
    parse_fact_graph,
    write_fact_graph,
    write_fact_graphs,
)
from factormodels.io.json import decode
from tests.refusals import refused

FULL = FactGraph(
    id="r1",
    query="What is it?",
    response="It is so.",
    topic="things",
    metadata={"cat": ["rare", 3, None], "share": 0.1, "nested": {"is": True}},
    atoms=(
        Atom("a1", "It is\u2028so – «так».", 0.5, True, "S", 1),
        Atom("a2", prior=0.1 + 0.2, label=False, annotation=""),
        Atom("a10"),
    ),
    contexts=(
        Context(
            "c1",
            text="A passage.\nTwo lines.",
            prior=0.9,
            title="Page",
            link="https://example.org/p?a=1&b=2",
            snippet="...",
            retrieved_for=("a2", "a1"),
            key="k1",
            note="misleads",
        ),
        Context("c2", key=""),
    ),
    relations=(
        Relation("c1", "a1", RelationKind.ENTAILMENT, 0.7),
        Relation("c2", "a2", RelationKind.CONTRADICTION, 1 / 3),
        Relation("c1", "c2", RelationKind.EQUIVALENCE, 1.0),
        Relation("a1", "c2", RelationKind.NEUTRAL, 0.0),
        Relation("a1", "a2", RelationKind.EXCLUSIVE, 0.8),
        Relation("a2", "a10", RelationKind.CO_NECESSITY, 0.6, (0.1, 0.0, 0.0, 0.2, 0.1, 0.6)),
    ),
)

texts = st.text(max_size=12)
ids = st.text(min_size=1, max_size=4)
probabilities = st.floats(0.0, 1.0)
# Without halves of characters.
clean_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | clean_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@st.composite
def fact_graphs(draw: st.DrawFn) -> FactGraph:
    names = draw(st.lists(ids, min_size=1, max_size=7, unique=True))
    n_atoms = draw(st.integers(0, len(names)))
    of_atoms = st.lists(st.sampled_from(names[:n_atoms]), max_size=3) if n_atoms else st.just([])
    labels, sentences = st.none() | st.booleans(), st.none() | st.integers(1, 99)
    words = st.none() | texts
    atoms = (
        draw(st.builds(Atom, st.just(name), texts, probabilities, labels, words, sentences))
        for name in names[:n_atoms]
    )
    further = (texts, texts, texts, of_atoms.map(tuple), words, texts)
    contexts = (
        draw(st.builds(Context, st.just(name), texts, probabilities, *further))
        for name in names[n_atoms:]
    )
    every = [*permutations(names, 2)]
    pairs = draw(st.lists(st.sampled_from(every), unique=True, max_size=6)) if every else []
    relations = (
        Relation(*pair, draw(st.sampled_from(list(RelationKind))), draw(probabilities))
        for pair in pairs
    )
    metadata = st.dictionaries(clean_texts, json_values, max_size=3)
    parts = (st.just(tuple(part)) for part in (atoms, contexts, relations))
    return draw(st.builds(FactGraph, ids, *parts, texts, texts, texts, metadata))


@given(fact_graphs())
@settings(deadline=None, max_examples=60)
def test_text_is_read_back_as_the_same_graph_and_written_the_same(graph: FactGraph) -> None:
    for indent in (None, 2):
        text = fact_graph_text(graph, indent=indent)
        again = parse_fact_graph(decode(text, "g.json"), "g.json")
        assert again == graph
        assert fact_graph_text(again, indent=indent) == text
        text.encode("utf-8")


def test_a_file_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    first, second = tmp_path / "one.json", tmp_path / "two.json"
    write_fact_graph(FULL, first)
    (again,) = read_many(first)
    assert again == FULL
    write_fact_graph(again, second)
    assert second.read_bytes() == first.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "two.json"]


def test_the_form_of_the_file() -> None:
    graph = FactGraph(
        "r", (Atom("a", "é"),), (Context("c"),), (Relation("c", "a", RelationKind.NEUTRAL, 1),)
    )
    assert fact_graph_text(graph, indent=2) == (
        '{\n  "format": "factormodels/fact-graph",\n  "version": 1,\n  "id": "r",\n'
        '  "nodes": [\n    {\n      "id": "a",\n      "type": "atom",\n'
        '      "probability": 0.5,\n      "text": "é"\n    },\n'
        '    {\n      "id": "c",\n      "type": "context",\n      "probability": 0.99\n    }\n'
        '  ],\n  "edges": [\n    {\n      "source": "c",\n      "target": "a",\n'
        '      "relation": "neutral",\n      "probability": 1.0\n    }\n  ]\n}'
    )
    keys = list(json.loads(fact_graph_text(FULL)))
    assert keys == [
        *("format", "version", "id", "query", "response", "topic", "metadata", "nodes", "edges")
    ]


def plain_object() -> dict[str, Any]:
    return {
        "nodes": [
            {"id": "a1", "type": "atom", "probability": 0.5},
            {"id": "c1", "type": "context", "probability": 0.99},
        ],
        "edges": [
            {"from": "c1", "to": "a1", "relation": "entailment", "probability": 0.9, "link": "x"}
        ],
    }


def test_both_spellings_of_the_ends_of_an_edge_and_a_file_without_id(tmp_path: Path) -> None:
    path = tmp_path / "graph of mine.json"
    path.write_text(json.dumps(plain_object()), encoding="utf-8")
    (graph,) = read_many(path)
    assert graph.id == "graph of mine"
    assert graph.relations == (Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),)
    other = plain_object()
    edge = other["edges"][0]
    edge["source"], edge["target"] = edge.pop("from"), edge.pop("to")
    assert parse_fact_graph(other, path) == graph


@pytest.mark.parametrize("ends", [("source", "target"), ("from", "to")])
@pytest.mark.parametrize("kind", [kind for kind in RelationKind if kind != "neutral"])
def test_graphs_of_claims_as_factreasoner_0_8_writes_them(
    kind: RelationKind, ends: tuple[str, str]
) -> None:
    """Its `as_json` says source and target, and its `from_json` reads from and to."""
    names = ("a1", "a2")
    nodes = [{"id": name, "type": "atom", "probability": 0.5} for name in names]
    edge = {"relation": str(kind), "probability": 0.9, "link": "atom_atom"}
    graph = parse_fact_graph(
        {"nodes": nodes, "edges": [{**dict(zip(ends, names, strict=True)), **edge}]}, "g"
    )
    assert graph.relations == (Relation(*names, kind, 0.9),)


def test_null_stands_for_an_absent_optional_value() -> None:
    obj = plain_object()
    obj["nodes"][0] |= {"label": None, "annotation": None, "sentence": None}
    obj["nodes"][1] |= {"key": None}
    assert parse_fact_graph(obj, "g") == parse_fact_graph(plain_object(), "g")


@pytest.mark.parametrize(
    "metadata",
    [{"a": float("nan")}, {"a": (1, 2)}, {1: "a"}, {"a": {1, 2}}, {"a": {"b": np.zeros(2)}}],
    ids=["nan", "tuple", "key", "set", "array"],
)
def test_metadata_that_json_would_change_are_not_written(
    metadata: dict[Any, Any], tmp_path: Path
) -> None:
    path = tmp_path / "g.json"
    path.write_text("before", encoding="utf-8")
    graph = FactGraph("r", (Atom("a"),), metadata=metadata)
    refused("fact graph 'r'", write_fact_graph, graph, path)
    assert path.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_attribute_of_another_type_is_not_written(tmp_path: Path) -> None:
    graph = FactGraph("r", (), (Context("c", title=5),))  # type: ignore[arg-type]
    refused("'title': 5 is not text", write_fact_graph, graph, tmp_path / "g.json")


def test_a_lone_surrogate_is_escaped_and_a_false_pair_refused() -> None:
    graph = FactGraph("r", (Atom("a", text="half \ud83d"),))
    text = fact_graph_text(graph)
    assert "half \\ud83d" in text
    assert parse_fact_graph(decode(text, "g"), "g") == graph
    # Two halves as two characters would be read back as one character.
    false = FactGraph("r", (Atom("a", text="\ud83d" + "\ude00"),))
    refused("read back as another", fact_graph_text, false)


def test_lines_of_many_graphs_refuse_a_repeated_id(tmp_path: Path) -> None:
    refused("two graphs have the id 'r1'", write_fact_graphs, [FULL, FULL], tmp_path / "g.jsonl")
    assert not list(tmp_path.iterdir())


def test_distributions_before_a_correction_are_kept() -> None:
    before, after = (0.01, 0.98, 0.0, 0.01), (0.6, 0.3, 0.0, 0.1)
    relation = Relation("c", "a", RelationKind.ENTAILMENT, 0.6, after, before)
    graph = FactGraph("r", (Atom("a"),), (Context("c"),), (relation,))
    value = json.loads(fact_graph_text(graph))
    assert value["edges"][0]["uncorrected"] == {
        "entailment": 0.01,
        "contradiction": 0.98,
        "neutral": 0.01,
    }
    assert parse_fact_graph(value, "g") == graph
    value["edges"][0]["uncorrected"] = {"entailment": 0.4}
    refused(
        "uncorrected: the probabilities of the distribution sum to 0.4",
        parse_fact_graph,
        value,
        "g",
    )


def test_a_kind_that_its_distribution_contradicts_is_refused() -> None:
    nodes = [{"id": name, "type": "atom", "probability": 0.5} for name in ("a1", "a2")]
    edge = {
        "source": "a1",
        "target": "a2",
        "relation": "entailment",
        "probability": 0.8,
        "distribution": {"entailment": 0.1, "contradiction": 0.8, "neutral": 0.1},
    }
    refused(
        r"edges\[0\].*is entailment, but its distribution favors contradiction",
        parse_fact_graph,
        {"nodes": nodes, "edges": [edge]},
        "g",
    )
    # An equivalence entails: together they outweigh a contradiction.
    edge["distribution"] = {"entailment": 0.3, "contradiction": 0.4, "equivalence": 0.3}
    assert parse_fact_graph({"nodes": nodes, "edges": [edge]}, "g").relations[0].probability == 0.8
