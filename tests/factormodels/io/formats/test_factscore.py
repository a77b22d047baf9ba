"""FActScore's labeled JSON Lines: what is read of them, and of passages beside them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from factormodels.io import read_many
from factormodels.io.formats import factscore
from factormodels.io.formats.factscore_passages import with_passages
from tests.factormodels.io.formats.release_records import FACTSCORE, lines_at
from tests.refusals import refused


def test_a_biography_becomes_a_graph() -> None:
    graph = factscore.read(FACTSCORE, "labeled/ChatGPT.jsonl", 12)
    assert (graph.id, graph.topic) == ("ChatGPT-012", "Ada Example")
    assert (graph.query, graph.response) == (FACTSCORE["input"], FACTSCORE["output"])
    assert [(a.id, a.text, a.label, a.annotation, a.sentence) for a in graph.atoms] == [
        ("a1", "Ada Example is a painter.", True, "S", 1),
        ("a2", "She was born in Ulm.", False, "NS", 3),
        ("a3", "Ulm is a town.", None, "IR", 3),
    ]
    assert graph.contexts == ()
    assert graph.metadata == {
        "cat": ["rare", "Europe"],
        "annotated": True,
        "sentences": 3,
        "sentences_not_annotated": [2],
        "sentences_not_relevant": [2],
    }


def test_a_record_that_nobody_annotated_has_no_atoms() -> None:
    graph = factscore.read({**FACTSCORE, "annotations": None}, "x.jsonl", 1)
    assert graph.atoms == ()
    assert graph.metadata == {"cat": ["rare", "Europe"], "annotated": False}
    assert graph.response == FACTSCORE["output"]


def test_the_31_biographies_are_read(shared_data: Path) -> None:
    graphs = read_many(shared_data / "factscore_dev" / "ChatGPT.jsonl")
    assert len(graphs) == 31
    assert sum(graph.metadata["sentences"] for graph in graphs) == 232
    labels = Counter((a.annotation, a.label) for graph in graphs for a in graph.atoms)
    assert labels == {("NS", False): 432, ("S", True): 393, ("IR", None): 149}
    for graph in graphs:
        sentences = [atom.sentence for atom in graph.atoms]
        assert sentences == sorted(s for s in sentences if s is not None)
        assert set(sentences) <= set(range(1, graph.metadata["sentences"] + 1))


PASSAGES = [
    {
        "name": "Ada Example",
        "sent": "Ada Example is a painter.",
        "passages": [
            {"title": "Ada", "text": "<s>Ada  Example paints.</s><s>She lives.</s>"},
            {"text": "Ulm is a town."},
        ],
    },
    {"name": "Someone Else", "sent": "Ada Example is a painter.", "passages": [{"text": "No."}]},
]


def test_passages_become_the_contexts_of_their_atoms(tmp_path: Path) -> None:
    graph = factscore.read(FACTSCORE, "x.jsonl", 1)
    second = {**PASSAGES[0], "sent": graph.atoms[1].text}
    (filled,) = with_passages([graph], lines_at(tmp_path / "p.jsonl", *PASSAGES, second))
    assert [(c.id, c.title, c.text, c.retrieved_for) for c in filled.contexts] == [
        ("c1", "Ada", "Ada Example paints. She lives.", ("a1", "a2")),
        ("c2", "", "Ulm is a town.", ("a1", "a2")),
    ]
    assert filled.atoms == graph.atoms


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([PASSAGES[1]], "no line names a topic and an atom"),
        ([{"name": "Ada Example", "sent": "x"}], "'passages' is missing"),
        ([{"name": "Ada Example", "sent": "x", "passages": ["text"]}], "not a JSON object"),
        ([{"sent": "x", "passages": []}], "'name' is missing"),
    ],
)
def test_bad_passages_are_refused(tmp_path: Path, records: list[Any], message: str) -> None:
    graph = factscore.read(FACTSCORE, "x.jsonl", 1)
    refused(message, with_passages, [graph], lines_at(tmp_path / "p.jsonl", *records))


def test_the_real_passages_fit_every_atom(shared_data: Path) -> None:
    folder = shared_data / "factscore_dev"
    graphs = read_many(folder / "ChatGPT.jsonl")
    filled = with_passages(graphs, folder / "passages_bm25.jsonl")
    assert sum(len(graph.contexts) for graph in filled) == 97
    for graph in filled:
        served = {atom for context in graph.contexts for atom in context.retrieved_for}
        assert served == set(graph.atom_ids)
