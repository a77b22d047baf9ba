"""FactReasoner's atoms-and-contexts JSON: what is read of records and of the release's files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from factormodels.io import read_many
from factormodels.io.formats import factreasoner, factreasoner_relations
from factormodels.variants import variant
from tests.factormodels.io.formats.release_records import FACTREASONER, MINED, lines_at, replaced
from tests.refusals import refused

RECORD: dict[str, Any] = {**FACTREASONER, "results": {"factuality_score": 0.5}}


def test_mined_relations_between_claims_have_texts_and_senses(tmp_path: Path) -> None:
    path = lines_at(tmp_path / "answer.json", MINED)
    (graph,) = read_many(path)
    assert graph.id == "answer"
    assert [(atom.id, atom.text) for atom in graph.atoms] == list(MINED["atoms"].items())
    (relation,) = graph.relations
    assert (relation.source, relation.target, relation.kind) == ("a0", "a1", "exclusive")
    assert (relation.probability, graph.metadata) == (0.9, {"senses": {"a0 a1": "Alternative"}})
    damaged = replaced(MINED, 5, "fact_graph", "nodes")
    refused(r"\$\.fact_graph\.nodes: 5 is not a list", factreasoner_relations.read, damaged, path)


def test_a_record_becomes_a_graph() -> None:
    graph = factreasoner.read(RECORD, "data/basalt.json")
    assert (graph.id, graph.query, graph.topic) == ("basalt", RECORD["input"], "basalt")
    assert graph.response == RECORD["output"]
    assert [(a.id, a.label, a.annotation) for a in graph.atoms] == [
        ("a0", True, "S"),
        ("a1", False, "NS"),
        ("a2", None, "C"),
    ]
    assert [(c.id, c.prior, c.retrieved_for) for c in graph.contexts] == [
        ("c_a0_0", 0.7, ("a0",)),
        ("c_a0_1", 0.99, ("a0", "a1")),
        ("c_q_0", 0.99, ()),
    ]
    first = graph.contexts[0]
    assert (first.title, first.text) == ("Basalt", "Basalt is an igneous rock.")
    assert (first.link, first.snippet) == ("https://rocks.example/basalt", "an igneous rock")
    assert graph.relations == ()
    assert graph.metadata == {
        "cat": ["rocks"],
        "original": {"a0": "It is a rock."},
        "synthetic_summary": {"c_a0_0": "It is igneous."},
    }


def test_a_line_of_a_file_of_many_has_its_number_in_the_id() -> None:
    assert factreasoner.read(RECORD, "data/nasa.jsonl", 7).id == "nasa-007"
    assert factreasoner.read(RECORD, "data/nasa.jsonl.gz", 7).id == "nasa-007"


@pytest.mark.parametrize(
    ("name", "atoms", "contexts", "merged", "labels"),
    [
        # Its contexts are snippets without a text.
        ("flaherty_google", 26, 130, 68, {False: 19, True: 7}),
        ("flaherty_wikipedia", 26, 53, 21, {False: 19, True: 7}),
        ("factreasoner_output", 21, 39, 30, {None: 21}),
    ],
)
def test_the_files_of_the_release_are_read(
    shared_data: Path,
    name: str,
    atoms: int,
    contexts: int,
    merged: int,
    labels: dict[bool | None, int],
) -> None:
    (graph,) = read_many(shared_data / "factreasoner" / f"{name}.json")
    assert (graph.id, len(graph.atoms), len(graph.contexts)) == (name, atoms, contexts)
    assert Counter(atom.label for atom in graph.atoms) == labels
    assert len(variant(graph, "FR2").contexts) == merged
    by_question = [c.id for c in graph.contexts if not c.retrieved_for]
    assert all(context.startswith("c_q") for context in by_question)
    raw = json.loads((shared_data / "factreasoner" / f"{name}.json").read_text(encoding="utf-8"))
    assert {a["id"]: set(a["contexts"]) for a in raw["atoms"]} == {
        atom: {c.id for c in graph.contexts if atom in c.retrieved_for} for atom in graph.atom_ids
    }
    assert [c.text for c in graph.contexts] == [c["text"] for c in raw["contexts"]]


def test_the_output_file_carries_the_priors_of_its_contexts(shared_data: Path) -> None:
    (graph,) = read_many(shared_data / "factreasoner" / "factreasoner_output.json")
    assert graph.contexts[0].prior == 0.7098721898272908
    assert len(graph.metadata["synthetic_summary"]) == 39
