"""Factcheck-Bench's JSON Lines and the stances that become relations."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from factormodels.claims import Relation, RelationKind
from factormodels.io.formats.factcheck_bench import (
    passage_key,
    read,
    read_factcheck_bench,
)
from factormodels.io.formats.stances import (
    DEFAULT_STANCES,
    relation_from_stances,
    resolve_stances,
)
from tests.factormodels.io.formats.release_records import FACTCHECK, replaced
from tests.refusals import refused

ENTAILMENT, CONTRADICTION = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION


def test_a_response_becomes_a_graph() -> None:
    graph = read(FACTCHECK, "bench.jsonl", 5)
    assert graph.id == "fcb-005"
    assert (graph.query, graph.response) == (FACTCHECK["prompt"], FACTCHECK["response"])
    assert [(a.id, a.text, a.label, a.annotation, a.sentence) for a in graph.atoms] == [
        ("a1", "Basalt is a dark rock.", True, "true", 1),
        ("a2", "Basalt floats.", False, "false", 2),
        ("a3", "Basalt is lovely.", None, "unknown", 2),
    ]
    assert [(c.id, c.text, c.link, c.retrieved_for) for c in graph.contexts] == [
        ("c1", "Basalt is  dark.", "https://a.example", ("a1",)),
        ("c2", "Basalt sinks.", "https://b.example", ("a1", "a2", "a3")),
        ("c3", "Granite is grey.", "https://e.example", ("a2",)),
    ]
    # c1 was judged twice for a1: the more probable relation stays. c2 bears on a2 alone.
    assert graph.relations == (
        Relation("c1", "a1", ENTAILMENT, 0.9),
        Relation("c2", "a2", CONTRADICTION, 0.9),
    )
    assert graph.metadata == {
        "sentences": 2,
        "evidence": 6,
        "stances": 5,
        "factual": False,
        "claims_without_stances": ["a3"],
        "checkworthiness": {"a3": "opinion"},
    }


def test_the_mapping_of_stances_is_a_parameter() -> None:
    mapping = {
        "partially-support": ("equivalence", 0.95),
        "irrelevant": ("neutral", 1.0),
        "refute": None,
    }
    graph = read(FACTCHECK, "bench.jsonl", 5, mapping)
    assert graph.relations == (
        Relation("c1", "a1", RelationKind.EQUIVALENCE, 0.95),
        Relation("c2", "a1", RelationKind.NEUTRAL, 1.0),
        Relation("c3", "a2", RelationKind.NEUTRAL, 1.0),
    )
    default = read(FACTCHECK, "bench.jsonl", 5)
    assert graph.contexts == default.contexts
    assert read(FACTCHECK, "bench.jsonl", 5, DEFAULT_STANCES) == default


def test_any_relation_outweighs_a_neutral_one() -> None:
    mapping = resolve_stances({"irrelevant": ("neutral", 1.0)})
    for stances in (["irrelevant", "refute"], ["refute", "irrelevant"]):
        relation = relation_from_stances("c1", "a1", stances, mapping)
        assert relation == Relation("c1", "a1", CONTRADICTION, 0.9)
    assert relation_from_stances("c1", "a1", ["irrelevant"], resolve_stances()) is None
    # Equal strength: the first judgment stays.
    relation = relation_from_stances("c1", "a1", ["refute", "completely-support"], mapping)
    assert relation == Relation("c1", "a1", CONTRADICTION, 0.9)


def test_a_mapping_from_a_configuration_file_is_the_same() -> None:
    assert resolve_stances(json.loads('{"refute": ["contradiction", 0.8]}')) == {
        **DEFAULT_STANCES,
        "refute": (CONTRADICTION, 0.8),
    }


@pytest.mark.parametrize(
    ("mapping", "messages"),
    [
        ({"agree": None}, ["'agree' is unknown", "completely-support"]),
        ({"refute": 0.9}, ["'refute'", "0.9", "give a pair"]),
        ({"refute": ("contradiction",)}, ["'refute'", "give a pair"]),
        ({"refute": ("denial", 0.9)}, ["'refute'", "'denial'", "contradiction"]),
        ({"refute": ("contradiction", 1.2)}, ["'refute'", "1.2", "between 0 and 1"]),
        ({"refute": ("contradiction", "0.9")}, ["'refute'", "'0.9'", "not a number"]),
    ],
)
def test_a_bad_mapping_is_refused(mapping: Any, messages: list[str]) -> None:
    refused(messages, read, FACTCHECK, "bench.jsonl", 1, mapping)


def test_passages_are_known_by_their_normalized_text() -> None:
    assert passage_key("Basalt  is\ndark. ") == passage_key("BASALT is dark.")
    assert passage_key("\ufb01re") == passage_key("fire")
    assert passage_key("Basalt is dark!") != passage_key("Basalt is dark.")
    assert passage_key(" \n") is None


def test_empty_passages_are_not_the_same_passage() -> None:
    record = replaced(
        FACTCHECK, [["", "Granite is grey."], [" "]], "sentences", "sentence2", "auto_evidence"
    )
    graph = read(record, "bench.jsonl", 1)
    empty = [context for context in graph.contexts if not context.text.strip()]
    assert [(passage.retrieved_for, passage.key) for passage in empty] == [
        (("a2",), None),
        (("a3",), None),
    ]


def test_columns_that_only_describe_may_be_absent() -> None:
    record = copy.deepcopy(FACTCHECK)
    for sentence in record["sentences"].values():
        del sentence["auto_evidence_url"], sentence["claim_checkworthiness"]
    del record["prompt"], record["response_factuality"]
    graph = read(record, "bench.jsonl", 5)
    assert graph.relations == read(FACTCHECK, "bench.jsonl", 5).relations
    assert {context.link for context in graph.contexts} == {""}
    assert not {"factual", "checkworthiness"} & set(graph.metadata)


def test_a_file_without_records_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("\n", encoding="utf-8")
    refused(r"empty\.jsonl: the file holds no record", read_factcheck_bench, path)


def test_the_94_responses_are_read(shared_data: Path) -> None:
    path = shared_data / "factcheck_bench" / "factcheck-GPT-benchmark.jsonl"
    graphs = read_factcheck_bench(path)
    assert len(graphs) == 94
    assert Counter(a.label for g in graphs for a in g.atoms) == {True: 472, False: 159, None: 47}
    assert sum(graph.metadata["stances"] for graph in graphs) == 3305
    raw = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for graph, record in zip(graphs, raw, strict=True):
        sentences = record["sentences"].values()
        claims = [claim for sentence in sentences for claim in sentence["claims"]]
        assert [atom.text for atom in graph.atoms] == claims
        # Every piece of evidence, found again by its text, is a context retrieved for its claim.
        keys = {context.key: context for context in graph.contexts}
        evidence = [texts for sentence in sentences for texts in sentence["auto_evidence"]]
        for atom, texts in zip(graph.atoms, evidence, strict=True):
            expected = {passage_key(text) for text in texts}
            assert all(atom.id in keys[key].retrieved_for for key in expected)
            assert expected == {c.key for c in graph.contexts if atom.id in c.retrieved_for}
