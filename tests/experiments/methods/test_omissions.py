"""`omissions`: facts of passages that a response covers, contradicts or leaves out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import omissions
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.extraction.language_model import Request
from factormodels.io.fact_graph_json import write_fact_graphs
from inference import infer
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused


def bridge() -> FactGraph:
    return FactGraph(
        "bridge",
        (Atom("a1", "The bridge opened in 1890."), Atom("a2", "The bridge is red.")),
        (
            Context("c1", "The bridge opened in 1890. Ada Example built it."),
            Context("c2", "The bridge opened in 1890. The bridge is green.", prior=0.6),
        ),
        (
            Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),
            Relation("c2", "a2", RelationKind.CONTRADICTION, 0.8),
        ),
        query="What of the bridge?",
        response="The bridge opened in 1890. The bridge is red.",
    )


ANSWERS = {
    # What the response makes of each fact.
    "The bridge opened in 1890.": ("entailment", 0.9),
    "Ada Example built it.": ("neutral", 0.8),
    "The bridge is green.": ("contradiction", 0.7),
}


def answer(request: Request) -> str:
    """List a passage's sentences as facts, of which all bear on the question, and compare them."""
    text = request.messages[-1].content
    if request.prompt.name == "atomizer":
        facts = [fact for fact in ANSWERS if fact in text.split("What of")[-1]]
        return json.dumps([{"sentence": n, "claim": fact} for n, fact in enumerate(facts, 1)])
    if request.prompt.name == "safe_relevance":
        return json.dumps({"relevant": "green" not in text.rsplit("<claim>", 1)[1]})
    fact = next(fact for fact in ANSWERS if fact in text.rsplit("<hypothesis>", 1)[1])
    kind, p = ANSWERS[fact]
    if request.prompt.name == "relation":
        return kind
    return json.dumps({"relation": kind, "confidence": p})


def test_recall_is_weighed_by_the_posteriors_of_passages(tmp_path: Path) -> None:
    records = [
        {
            "premise": bridge().response,
            "hypothesis": fact,
            "relation": kind,
            "probability": p,
        }
        for fact, (kind, p) in ANSWERS.items()
    ]
    path = tmp_path / "told.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    omitted = omissions([bridge()], relations=f"recorded:{path}")
    posterior = infer(bridge().to_factor_graph()).marginals
    trust = {name: posterior[name][1] for name in ("c1", "c2")}
    # The first fact is in both passages, and weighs as much as the likelier.
    weights = [max(trust.values()), trust["c1"], trust["c2"]]
    row: Any = omitted["responses"].iloc[0]
    assert row["facts"] == 3
    recall = weights[0] * 0.9 / sum(weights)
    assert row["recall"] == pytest.approx(recall, abs=1e-12)
    assert row["contradicted"] == pytest.approx(weights[2] * 0.7 / sum(weights), abs=1e-12)
    assert row["recall"] + row["contradicted"] + row["omitted"] == pytest.approx(1.0, abs=1e-12)
    precision = (posterior["a1"][1] + posterior["a2"][1]) / 2
    assert row["precision"] == pytest.approx(precision, abs=1e-12)
    f1 = 2 * precision * recall / (precision + recall)
    assert row["f1"] == pytest.approx(f1, abs=1e-12)
    facts: Any = omitted["omitted"]
    assert facts["fact"].tolist()[0] == "Ada Example built it."
    assert facts.set_index("fact").loc["The bridge opened in 1890.", "passages"] == "c1, c2"
    assert not omitted.incomplete


def test_facts_beside_the_question_do_not_count() -> None:
    omitted = omissions([bridge()], model=AnsweringModel(answer))
    facts: Any = omitted["omitted"]
    assert "The bridge is green." not in facts["fact"].tolist()
    assert "cost" in omitted.tables


def test_missing_answers_are_named() -> None:
    omitted = omissions([bridge()], model=AnsweringModel(lambda _: "hm"))
    assert omitted.incomplete
    assert any("could not be listed" in each for each in omitted.sentences)


def test_a_response_that_says_all_has_more_recall(tmp_path: Path) -> None:
    whole = bridge()
    silent = FactGraph("silent", whole.atoms[:1], whole.contexts, whole.relations[:1],
                       response="The bridge opened in 1890.")  # fmt: skip
    full = FactGraph("full", whole.atoms[:1], whole.contexts, whole.relations[:1],
                     response=" ".join(c.text for c in whole.contexts))  # fmt: skip
    path = tmp_path / "graphs.jsonl"
    write_fact_graphs([silent, full, FactGraph("bare", (Atom("a"),))], path)
    result = invoke("omissions", str(path), "--json")
    document = json.loads(result.stdout)
    rows = {row["response"]: row for row in document["tables"]["responses"]}
    assert rows["silent"]["recall"] < rows["full"]["recall"]
    assert rows["silent"]["precision"] == rows["full"]["precision"]
    sentences = " ".join(document["findings"])
    assert "every sentence of a passage counts as a fact" in sentences
    assert "1 response without a text or passages: left out." in sentences


def test_without_passages_nothing_can_be_missed() -> None:
    refused(
        "no omission can be found", omissions, [FactGraph("r", (Atom("a"),), response="It is.")]
    )


def test_the_conventions_of_the_release_hold() -> None:
    graph = FactGraph(
        "r",
        (Atom("a1", "The bridge carries trams."),),
        (Context("c1", "It carries trains.", retrieved_for=("a1",)),),
        (Relation("c1", "a1", RelationKind.CONTRADICTION, 0.95),),
        response="The bridge carries trams.",
    )
    released = omissions([graph], like="fact-reasoner-0.8")
    # The passage at .9 contradicts the claim; without it the claim has its prior.
    precision = 0.9 * 0.05 + 0.1 * 0.5
    assert released["responses"]["precision"].tolist() == pytest.approx([precision], rel=1e-12)
    assert released["omitted"]["weight"].tolist() == pytest.approx([0.9], rel=1e-12)
    assert released.tables["responses"].notes.endswith(
        "passages at 0.9, relations below 1/2 kept, encoding conditional."
    )
