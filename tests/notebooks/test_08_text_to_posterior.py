"""Notebook 8 gives, from text, the posteriors of the relations that its answers were made from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from experiments.evaluators.calls.costs import Load, fr3
from factormodels.extraction.retrieval.bm25 import build_collection
from factormodels.extraction.retrieval.documents import documents_of_graphs
from factormodels.extraction.stages.retrieval import with_contexts
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant
from inference import infer
from tests.notebooks.execution import run
from tests.notebooks.recorded_answers import (
    ANSWERS,
    PASSAGES,
    demonstration,
    record,
    response,
    stored,
    written_relations,
)

pytestmark = pytest.mark.notebook


def expected_graph() -> FactGraph:
    """Return the written claims with the passages that are found, related as was written."""
    documents = build_collection(documents_of_graphs(demonstration()), top_k=PASSAGES)
    texts = [atom.text for atom in response().atoms]
    graph = with_contexts(replace(response(), relations=()), documents, texts)
    ids = {atom.text: atom.id for atom in graph.atoms}
    ids |= {context.text: context.id for context in graph.contexts}
    relations = [
        replace(relation, source=ids[source], target=ids[other])
        for (source, other), relation in written_relations().items()
        if source in ids and other in ids
    ]
    return replace(graph, relations=tuple(relations))


@pytest.mark.nightly
def test_numbers(tmp_path: Path) -> None:
    folder = run("08_text_to_posterior", tmp_path)
    claims = pd.read_csv(folder / "claims.csv").set_index("claim")
    written = response().atoms
    assert list(claims.text) == [atom.text for atom in written]
    assert [label == "true" for label in claims.label.astype(str).str.lower()] == [
        atom.label for atom in written
    ]
    expected = expected_graph()
    for name in ("FR1", "FR2", "FR3"):
        truth = infer(variant(expected, name).to_factor_graph("implication"), "pyagrum").marginals
        # 1e-9: probabilities went through logarithms in JSON, and two exact algorithms.
        assert list(claims[name]) == pytest.approx(
            [truth[atom.id][1] for atom in written], abs=1e-9
        )
    # By hand, with a prior of 0.5 and a context of 0.99: one entailment with p gives
    # p / (p + 0.99 (1 - p) + 0.01 p); a contradiction with q weighs 0.99 (1 - q) + 0.01 q for true
    # and q for false.
    entailed, denied = 0.99 * 0.03 + 0.01 * 0.97, 0.99 * 0.15 + 0.01 * 0.85
    both = 0.97 * denied / (0.97 * denied + entailed * 0.85)
    assert claims.FR1["a2"] == pytest.approx(0.97 / (0.97 + entailed), abs=1e-9)
    assert claims.FR2["a8"] == pytest.approx(0.82 / (0.82 + 0.99 * 0.18 + 0.01 * 0.82), abs=1e-9)
    assert claims.FR2["a9"] == pytest.approx(both, abs=1e-9)
    # What the text of the notebook says of them.
    assert [round(claims[name]["a6"], 2) for name in ("FR1", "FR2")] == [0.35, 0.04]
    assert claims.FR2["a9"] - claims.FR3["a9"] == pytest.approx(0.10, abs=0.005)

    parts = pd.read_csv(folder / "contributions.csv").set_index(["title", "claim"])
    chronicle = ("City chronicle, April 1906", "a8")
    assert parts.without[chronicle] == pytest.approx(0.5, abs=1e-12)
    assert parts.posterior[chronicle] == pytest.approx(claims.FR3["a8"], abs=1e-12)
    essay = ("School essay: a family of science", "a9")
    assert parts.without[essay] == pytest.approx(0.97 / (0.97 + entailed), abs=1e-9)
    assert parts.contribution[essay] < 0

    costs = pd.read_csv(folder / "costs.csv").set_index("stage")
    load = Load(sentences=7, claims=9, per_claim=PASSAGES, contexts=len(expected.contexts))
    assert costs.answers.to_dict() == {
        "atomizer": 7,
        "reviser": 9,
        "relations": 9 * 11 + 11 * 10,
        "all": fr3(load).calls,
    }
    assert not costs.calls_now.any()
    dollars = (0.15 * costs.prompt_tokens["all"] + 0.60 * costs.completion_tokens["all"]) / 1e6
    assert costs.dollars["all"] == pytest.approx(dollars)


def test_the_answers_are_those_of_the_script(tmp_path: Path) -> None:
    record(tmp_path / "answers.sqlite")
    remedy = "a prompt or the script has changed: run python -m tests.notebooks.recorded_answers"
    assert stored(ANSWERS) == stored(tmp_path / "answers.sqlite"), remedy
    # Little enough to be kept beside the notebooks, and readable where nothing can be written.
    assert ANSWERS.stat().st_size < 120_000
    # Byte 18 of SQLite's header: 1 is a file alone, 2 one with a write-ahead log beside it.
    assert ANSWERS.read_bytes()[18] == 1
