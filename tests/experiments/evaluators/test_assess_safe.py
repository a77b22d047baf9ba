"""`assess --assessor safe`: its steps, its verdicts, and its calls by stage."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from factormodels import Atom, FactGraph, read_many
from factormodels.extraction.asking.table import ASSESSORS
from factormodels.extraction.language_model import Failure, Request
from factormodels.extraction.pipeline import assessor_stage
from factormodels.extraction.retrieval.base import Passage, Retrieved
from factormodels.extraction.stages.assessors import assess
from tests.experiments.conftest import invoke, write_batch
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.questions import claim_of
from tests.factormodels.extraction.server import Reply, ScriptedServer

MARKS = {
    "Rewrite this claim": "safe-revision",
    "bear on the question?": "safe-relevance",
    "<knowledge>": "safe-search",
    "<passages>": "safe",
    "<premise>": "relations",
}


def stage_of(question: str) -> str:
    return next(stage for mark, stage in MARKS.items() if mark in question)


def answer_to(question: str) -> str:
    """Two searches for the bridge, whose results decide; the weather is beside the question."""
    stage = stage_of(question)
    claim = claim_of(question)
    if stage == "safe-revision":
        return json.dumps({"claim": claim.replace("It", "The bridge")})
    if stage == "safe-relevance":
        return json.dumps({"relevant": "sunny" not in claim})
    if stage == "safe-search":
        n_passages = question.rpartition("<knowledge>")[2].count("[")
        return json.dumps({"query": ["bridge", "bridge trains", ""][min(n_passages, 2)]})
    assert "[2] Two: Trains cross it." in question
    assert "The bridge" in claim
    return f"They say so.\nVerdict: {'supported' if 'train' in claim else 'unsupported'}"


class Pages:
    """A search that finds one passage per query, and remembers what it was asked."""

    name = "pages"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        self.asked += queries
        pages = {"bridge": ("One", "It is a bridge."), "bridge trains": ("Two", "Trains cross it.")}
        return [Retrieved((Passage(pages[q][0], "", "", pages[q][1]),)) for q in queries]


GRAPH = FactGraph(
    "r",
    tuple(
        Atom(f"a{n}", text)
        for n, text in enumerate(("It carries trains.", "It carries cars.", "It is sunny."), 1)
    ),
    query="What of the bridge?",
    response="It carries trains. It carries cars. It is sunny.",
)


def asked_by(model: AnsweringModel) -> Counter[str]:
    return Counter(request.stage for request in model.asked)


def test_a_claim_is_revised_searched_for_in_steps_and_judged() -> None:
    model, pages = AnsweringModel(lambda r: answer_to(r.messages[-1].content)), Pages()
    trains, cars, sun = assess(GRAPH, "safe", model, pages)
    assert trains.text == "The bridge carries trains."
    assert trains.queries == cars.queries == ("bridge", "bridge trains")
    assert (trains.label, trains.p_true) == ("supported", 1.0)
    # What is not borne out is undecided; what is beside the question is never searched.
    assert (cars.label, cars.p_true) == ("unsupported", 0.5)
    assert sun.dropped
    assert sun.queries == ()
    # The third search of each is empty: there is no more to ask.
    assert asked_by(model) == {
        "safe-revision": 3, "safe-relevance": 3, "safe-search": 6, "safe": 2,
    }  # fmt: skip
    assert pages.asked == ["bridge"] * 2 + ["bridge trains"] * 2


def test_a_passage_that_is_found_again_counts_once_and_ends_the_search() -> None:
    class OnePage(Pages):
        def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
            self.asked += queries
            # Longer than what is shown of it; each search finds it twice.
            page = Passage("One", "", "", "It is a bridge. " * 100)
            return [Retrieved((page, page)) for _ in queries]

    searches: Counter[str] = Counter()
    judged: list[str] = []

    def answer(request: Request) -> str:
        question = request.messages[-1].content
        if request.stage == "safe-search":
            # Never the same query, so that passages alone can end the search.
            searches[claim_of(question)] += 1
            return json.dumps({"query": f"bridge {searches[claim_of(question)]}"})
        if request.stage == "safe":
            judged.append(question)
            return "Verdict: supported"
        return answer_to(question)

    trains, cars, _ = assess(GRAPH, "safe", AnsweringModel(answer), OnePage())
    # The second search finds nothing new, so there is no third.
    assert trains.queries == cars.queries == ("bridge 1", "bridge 2")
    assert len(judged) == 2
    assert all("[1] One" in question and "[2]" not in question for question in judged)


@pytest.mark.parametrize("prompt", ASSESSORS["safe"].prompts)
def test_a_step_that_fails_leaves_a_claim_without_a_verdict(prompt: str) -> None:
    def answer(request: Request) -> str | Failure:
        if request.prompt.name == prompt and "carries cars" in request.messages[-1].content:
            return Failure("no answer")
        return answer_to(request.messages[-1].content)

    judged = assessor_stage(["safe"], AnsweringModel(answer), Pages())(GRAPH)
    facts = judged.metadata["assessors"]["safe"]
    # A revision is asked with the whole response, in which every claim stands.
    lost = {name for name, _ in facts["missing"]}
    assert "a2" in lost
    assert all("no answer" in reason for _, reason in facts["missing"])
    assert lost.isdisjoint(facts["verdicts"])
    assert set(facts["claims"]) == {"a1", "a2", "a3"}


@pytest.mark.service
def test_calls_by_stage_are_those_that_the_server_counts(keyed: Path) -> None:
    pages = {"One.txt": "It is a bridge.", "Two.txt": "Trains cross it."}
    write_batch(keyed, ["It carries trains. It is sunny."], pages, query=GRAPH.query)
    asked: list[str] = []

    def provider(request: dict[str, Any], _: int) -> Reply:
        question = str(request["messages"][-1]["content"])
        asked.append(stage_of(question))
        if asked[-1] == "safe":
            return Reply("Verdict: supported")
        return Reply(answer_to(question))

    command = ["assess", "batch.jsonl", "--atoms", "sentences", "--no-revise", "--top-k", "1",
               "--documents", "notes", "--relations", "lexical", "--model", "openai/scripted",
               "--assessor", "safe"]  # fmt: skip
    with ScriptedServer(provider) as server:
        result = invoke(*command, "--api-base", server.url, "--out", "o")
    counts = Counter(asked)
    assert counts["safe-revision"] == counts["safe-relevance"] == 2
    assert counts["safe"] == 1
    for stage, count in counts.items():
        assert re.search(rf"^{stage} +{count} +0 +0 ", result.stdout, re.M), stage
    (graph,) = read_many(keyed / "o/graphs.jsonl")
    assert graph.metadata["assessors"]["safe"]["verdicts"]["a1"]["p"] == 1.0
    assert re.search(r"^safe-search +about +10 ", invoke(*command, "--dry-run").stdout, re.M)
    given = invoke(
        "assess", "demonstration", "--model", "openai/scripted", "--assessor", "safe", code=2
    )
    assert "searches by itself" in given.stderr
