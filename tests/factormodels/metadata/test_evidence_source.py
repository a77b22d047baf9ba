"""The source of evidence is written with it and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from factormodels import Atom, FactGraph, datasets, read_many, write_many
from factormodels.extraction.pipeline import relation_stage, retrieval_stage, run_stages
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.retrieval.bm25 import build_collection
from factormodels.extraction.retrieval.documents import Document
from factormodels.metadata.evidence_source import EvidenceSource, evidence_sources


@pytest.mark.parametrize("top_k", [1, 3])
def test_a_graph_says_what_made_its_evidence(top_k: int, tmp_path: Path) -> None:
    claims = FactGraph("r", (Atom("a1", "The river is long."), Atom("a2", "The hill is low.")))
    documents = [Document("", "", text) for text in ("A long river flows.", "The low hill.")]
    stages = [
        retrieval_stage(build_collection(documents, top_k=top_k)),
        relation_stage(LexicalRelations(), "FR1", least=0.4),
    ]
    write_many([run_stages(claims, stages)], tmp_path / "made.jsonl")
    made = evidence_sources(read_many(tmp_path / "made.jsonl"))
    assert made == (EvidenceSource("lexical", 0.4, "local", top_k),)


def test_evidence_that_no_stage_made_says_it_itself_until_a_stage_makes_a_part_again() -> None:
    facts = {"relation_model": "lexical", "retriever": "Lucene", "top_k": 5}
    graph = FactGraph("r", (), metadata={"evidence": facts})
    assert evidence_sources([graph]) == (EvidenceSource("lexical", None, "Lucene", 5),)
    related = replace(graph, metadata={**graph.metadata, "relations": {"model": "m", "least": 0.5}})
    assert evidence_sources([related]) == (EvidenceSource("m", 0.5, "Lucene", 5),)
    searched = {**related.metadata, "retrieval": {"retriever": "local", "top_k": 3}}
    made = evidence_sources([replace(graph, metadata=searched)])
    assert made == (EvidenceSource("m", 0.5, "local", 3),)


def test_the_embedded_biographies_say_what_made_their_evidence() -> None:
    made = evidence_sources(datasets.load("factscore").graphs)
    assert made == (EvidenceSource("lexical", None, "BM25 on Wikipedia", 5),)


def test_metadata_of_another_kind_is_not_taken_for_a_source() -> None:
    strange = {"relations": ["lexical"], "retrieval": {"retriever": 5, "top_k": "many"}}
    assert evidence_sources([FactGraph("r", (), metadata=strange)]) == (EvidenceSource(),)
    assert evidence_sources([FactGraph("r", ()), FactGraph("s", ())]) == (EvidenceSource(),)
