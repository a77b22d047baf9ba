"""The demonstration corpus as a file: shape, counts and promises, read with json alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

Record = dict[str, Any]

DATA = Path(__file__).parents[2] / "factormodels" / "datasets" / "data"
RELATIONS = {"entailment", "contradiction", "equivalence", "neutral"}
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


@pytest.fixture(scope="module")
def responses() -> list[Record]:
    text = (DATA / "demonstration.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def card() -> Record:
    record: Record = json.loads((DATA / "demonstration.card.json").read_text(encoding="utf-8"))
    return record


def nodes_of(response: Record, node_type: str) -> list[Record]:
    return [node for node in response["nodes"] if node["type"] == node_type]


def normalised(text: str) -> str:
    return " ".join(text.casefold().split())


def retrieved_verdicts(response: Record, atom: Record) -> Counter[bool]:
    """Count the relations of an atom's retrieved contexts that speak for its label (True)."""
    retrieved = {
        context["id"]
        for context in nodes_of(response, "context")
        if atom["id"] in context["retrieved_for"]
    }
    return Counter(
        (edge["relation"] == "entailment") == atom["label"]
        for edge in response["edges"]
        if edge["source"] in retrieved
        and edge["target"] == atom["id"]
        and edge["relation"] != "neutral"
    )


def test_each_line_is_a_fact_graph_with_the_agreed_keys(responses: list[Record]) -> None:
    for response in responses:
        assert list(response) == [
            "format",
            "version",
            "id",
            "query",
            "response",
            "topic",
            "nodes",
            "edges",
        ]
        assert (response["format"], response["version"]) == ("factormodels/fact-graph", 1)
        for key in ("id", "query", "response", "topic"):
            assert response[key].strip()


def test_response_ids_and_topics_are_unique(responses: list[Record]) -> None:
    for key in ("id", "topic", "query"):
        values = [response[key] for response in responses]
        assert len(set(values)) == len(values)


def test_nodes_are_atoms_then_contexts_numbered_in_order(responses: list[Record]) -> None:
    for response in responses:
        atoms, contexts = nodes_of(response, "atom"), nodes_of(response, "context")
        assert response["nodes"] == atoms + contexts
        assert [atom["id"] for atom in atoms] == [f"a{i + 1}" for i in range(len(atoms))]
        assert [node["id"] for node in contexts] == [f"c{i + 1}" for i in range(len(contexts))]


def test_atoms_are_labelled_and_come_from_a_sentence(responses: list[Record]) -> None:
    for response in responses:
        sentences = SENTENCE_END.split(response["response"])
        atoms = nodes_of(response, "atom")
        assert {atom["sentence"] for atom in atoms} == set(range(1, len(sentences) + 1))
        assert len({normalised(atom["text"]) for atom in atoms}) == len(atoms)
        for atom in atoms:
            assert isinstance(atom["label"], bool)
            assert atom["annotation"] == str(atom["label"]).lower()
            assert atom["text"].endswith(".")


def test_contexts_have_text_title_note_and_known_provenance(responses: list[Record]) -> None:
    for response in responses:
        atoms = {atom["id"] for atom in nodes_of(response, "atom")}
        provenance: Counter[str] = Counter()
        for context in nodes_of(response, "context"):
            assert all(context[key].strip() for key in ("text", "title", "note"))
            assert context["retrieved_for"]
            assert set(context["retrieved_for"]) <= atoms
            assert len(set(context["retrieved_for"])) == len(context["retrieved_for"])
            provenance.update(context["retrieved_for"])
        assert set(provenance) == atoms
        assert all(2 <= count <= 4 for count in provenance.values())


def test_edges_join_known_nodes_once_and_run_from_contexts(responses: list[Record]) -> None:
    for response in responses:
        ids = {node["id"] for node in response["nodes"]}
        contexts = {context["id"] for context in nodes_of(response, "context")}
        pairs = [(edge["source"], edge["target"]) for edge in response["edges"]]
        assert len(set(pairs)) == len(pairs)
        for source, target in pairs:
            assert source in contexts
            assert target in ids
            assert source != target


def test_relations_and_probabilities_are_in_range(responses: list[Record]) -> None:
    for response in responses:
        for node in response["nodes"]:
            assert node["probability"] == (0.5 if node["type"] == "atom" else 0.99)
        for edge in response["edges"]:
            assert edge["relation"] in RELATIONS
            assert 0.55 <= edge["probability"] <= 0.99


def test_counts_equal_those_of_the_card(responses: list[Record], card: Record) -> None:
    atoms = [atom for response in responses for atom in nodes_of(response, "atom")]
    assert card["counts"] == {
        "responses": len(responses),
        "atoms": len(atoms),
        "labelled_atoms": sum(atom["label"] is not None for atom in atoms),
        "true_atoms": sum(atom["label"] is True for atom in atoms),
        "contexts": sum(len(nodes_of(response, "context")) for response in responses),
        "relations": sum(len(response["edges"]) for response in responses),
    }


def test_card_says_what_the_corpus_is(card: Record) -> None:
    assert card["name"] == "demonstration"
    assert card["licence"] == "Apache-2.0"
    assert card["source"] == "written for this project"
    assert all(card[key].strip() for key in ("title", "description"))
    assert any("authored, not measured" in note for note in card["notes"])


def test_relations_listed_in_the_card_as_wrong_exist(responses: list[Record], card: Record) -> None:
    note = next(note for note in card["notes"] if "wrong on purpose" in note)
    listed = {
        (response, source, target)
        for response, pairs in re.findall(r"(demo-\d\d): ([^;.]*)", note)
        for source, target in re.findall(r"(c\d+)->([ac]\d+)", pairs)
    }
    present = {
        (response["id"][: len("demo-00")], edge["source"], edge["target"])
        for response in responses
        for edge in response["edges"]
    }
    assert listed <= present
    assert note.startswith(f"{len(listed)} of the {len(present)} relations")


def test_size_and_balance(responses: list[Record]) -> None:
    atoms = [atom for response in responses for atom in nodes_of(response, "atom")]
    assert len(responses) >= 12
    assert 115 <= len(atoms) <= 140
    assert all(6 <= len(nodes_of(response, "atom")) <= 12 for response in responses)
    # The share of true claims was set to 65 to 70 per cent when the corpus was written.
    assert 0.65 <= sum(atom["label"] for atom in atoms) / len(atoms) <= 0.70


def test_every_response_has_conflicting_contexts(responses: list[Record]) -> None:
    for response in responses:
        assert any(
            edge["relation"] == "contradiction" and edge["target"].startswith("c")
            for edge in response["edges"]
        )


def test_near_paraphrases_entail_each_other_in_both_directions(responses: list[Record]) -> None:
    pairs = {
        (response["id"], edge["source"], edge["target"])
        for response in responses
        for edge in response["edges"]
        if edge["relation"] == "entailment" and edge["target"].startswith("c")
    }
    assert any((name, target, source) in pairs for name, source, target in pairs)


def test_repeated_passages_serve_different_atoms_with_equal_relations(
    responses: list[Record],
) -> None:
    with_duplicates: set[str] = set()
    for response in responses:
        first: dict[str, Record] = {}
        for context in nodes_of(response, "context"):
            original = first.setdefault(normalised(context["text"]), context)
            if original is context:
                continue
            with_duplicates.add(response["id"])
            assert not set(original["retrieved_for"]) & set(context["retrieved_for"])
            outgoing = [
                {
                    edge["target"]: (edge["relation"], edge["probability"])
                    for edge in response["edges"]
                    if edge["source"] == name
                }
                for name in (original["id"], context["id"])
            ]
            assert outgoing[0] == outgoing[1]
    assert len(with_duplicates) >= 4


def test_some_contexts_serve_several_atoms(responses: list[Record]) -> None:
    contexts = [node for response in responses for node in nodes_of(response, "context")]
    shared = sum(len(context["retrieved_for"]) > 1 for context in contexts)
    # About a third was intended; the band allows for later mends of single passages.
    assert 0.25 <= shared / len(contexts) <= 0.45


def test_in_at_least_three_responses_most_evidence_on_an_atom_misleads(
    responses: list[Record],
) -> None:
    misled = 0
    for response in responses:
        verdicts = [retrieved_verdicts(response, atom) for atom in nodes_of(response, "atom")]
        misled += any(verdict[False] > verdict[True] for verdict in verdicts)
    assert misled >= 3
