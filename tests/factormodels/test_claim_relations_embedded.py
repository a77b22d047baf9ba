"""Relations between claims of embedded responses: what the lexical model says of their texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factormodels import datasets
from factormodels.datasets.derive import main
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.stages.claim_relations import claim_pairs, with_judged_claims
from factormodels.io.published.factscore import parse_factscore_record
from factormodels.variants import between_claims, variant
from tests.refusals import refused


@pytest.mark.parametrize(("name", "n"), [("factscore", 2045), ("selfcheck", 10)])
def test_they_join_claims_near_each_other(name: str, n: int) -> None:
    plain = datasets.load(name)
    graphs = datasets.with_claim_relations(plain)
    found = [between_claims(graph) for graph in graphs]
    assert sum(map(len, found)) == n
    for graph, bare, own in zip(graphs, plain.graphs, found, strict=True):
        assert graph.relations == (*bare.relations, *own)
        place = {atom: at for at, atom in enumerate(graph.atom_ids)}
        assert all(0 < abs(place[r.source] - place[r.target]) <= 3 for r in own)
    # The paper's variants know nothing of them.
    assert variant(graphs[0], "FR1") == variant(plain.graphs[0], "FR1")


def test_they_are_what_the_lexical_model_says_of_the_texts(tmp_path: Path) -> None:
    facts = [
        {"text": text, "label": "S"}
        for text in ("Ada Example was born in Ulm in 1890.", "She was born in Ulm.", "It rained.")
    ]
    record = {
        "input": "Who was Ada Example?",
        "output": "Ada Example was born in Ulm in 1890. It rained.",
        "topic": "Ada Example",
        "cat": [],
        "annotations": [{"text": "s", "is-relevant": True, "human-atomic-facts": facts}],
    }
    path = tmp_path / "ChatGPT.jsonl"
    path.write_text(json.dumps(record) + "\n")
    out = tmp_path / "claims.jsonl"
    assert main(["factscore-claims", str(path), str(out)]) == 0
    graph = parse_factscore_record(record, path, 1)
    judged = with_judged_claims(graph, LexicalRelations(), claim_pairs(graph, 3))
    expected = [
        [*(int(end[1:]) - 1 for end in (one.source, one.target)), 0, round(one.probability, 4)]
        for one in between_claims(judged)
        if one.kind != "neutral"
    ]
    told = json.loads(out.read_text())
    assert told == {"id": graph.id, "relations": expected}
    assert expected[0][:2] == [0, 1]
    assert "Ulm" not in out.read_text()


def test_what_is_not_embedded_is_refused() -> None:
    demonstration = datasets.load("demonstration")
    refused("not embedded.*factscore, selfcheck", datasets.with_claim_relations, demonstration)
