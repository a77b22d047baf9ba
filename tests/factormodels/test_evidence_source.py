"""What made evidence is written with it, read back, and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from factormodels import Atom, FactGraph, read_many, write_many
from factormodels.evidence_source import EvidenceSource, evidence_sources, other_sources
from factormodels.extraction.pipeline import relation_stage, retrieval_stage, run_stages
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.retrieval.bm25 import build_collection
from factormodels.extraction.retrieval.documents import Document


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


def test_a_sentence_says_what_differs() -> None:
    one = EvidenceSource("lexical", 0.5, "local", 5)
    other = EvidenceSource("lexical", 0.5, "wikipedia", 3)
    assert other_sources([one, other], [other]) == ""
    told = other_sources([one], [one, other])
    assert "retriever wikipedia, passages per query 3" in told
    assert "retriever local, passages per query 5" in told
    assert "not recorded" in other_sources([EvidenceSource()], [one])
    assert other_sources([EvidenceSource()], [EvidenceSource()]) == ""


def test_metadata_of_another_kind_is_not_taken_for_a_source() -> None:
    strange = {"relations": ["lexical"], "retrieval": {"retriever": 5, "top_k": "many"}}
    assert evidence_sources([FactGraph("r", (), metadata=strange)]) == (EvidenceSource(),)
    assert evidence_sources([FactGraph("r", ()), FactGraph("s", ())]) == (EvidenceSource(),)
