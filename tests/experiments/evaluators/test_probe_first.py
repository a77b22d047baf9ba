"""The probe before each evaluation that asks closed questions, and its row in dry runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import coherence, fastfact, omissions, revise, select, self_knowledge
from experiments.evaluators.probe_first import planned_probe
from experiments.findings.findings import Findings
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.extraction.asking.table import SELF_SETTINGS
from factormodels.extraction.language_model import Completion, Request
from factormodels.extraction.probe.asking import STAGE
from factormodels.extraction.probe.table import (
    CLAIM_RELATIONS,
    FAILURES_OF_CLAIMS,
    MISSING_FROM_CLAIMS,
    PRE_VERIFICATIONS,
    PRE_VERIFICATIONS_IN_RESPONSE,
    REFUSALS,
    RELATIONS,
    RELEVANCES,
)
from tests.experiments.conftest import invoke
from tests.experiments.evaluators.test_fastfact import RESPONSES, readable
from tests.experiments.methods.test_self_judged_claims import answer_to, graphs, provider
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.probe.scripted import (
    completion_of,
    conversation,
    related,
    right_answers,
    shares,
)
from tests.factormodels.extraction.server import Reply, ScriptedServer

PASSAGE = Context("c1", "Trains cross the bridge. The bridge is red.")
GRAPH = FactGraph(
    "r1",
    (Atom("a1", "Trains cross the bridge."), Atom("a2", "Nobody sang.")),
    (PASSAGE,),
    query="What crosses the bridge?",
    response="Trains cross the bridge. Nobody sang.",
)

REFUTED = replace(GRAPH, relations=(Relation("c1", "a2", RelationKind.CONTRADICTION, 0.95),))


def evaluated(question: str) -> str:
    """An answer that each stage of an evaluation can read."""
    for mark, answer in (
        ("bear on the question", json.dumps({"relevant": True})),
        ("each claim", json.dumps([{"claim": 1, "failures": []}])),
        ("are missing", "[]"),
        ("List and judge", "1 | Trains cross the bridge. | unsure"),
        ("</question>\n<passages>", json.dumps({"claim": "Trains cross the bridge."})),
        ("<passages>", "Verdict: supported"),
        ("<second>", json.dumps({"relation": "none", "confidence": 0.9})),
        ("List the claims", json.dumps([{"sentence": 1, "claim": "Trains cross the bridge."}])),
    ):
        if mark in question:
            return answer
    return "neutral"


def knowing(rest: Callable[[str], str]) -> AnsweringModel:
    """Answers the probe right, and the evaluation by a rule."""

    def answer(request: Request) -> Completion:
        question = request.messages[-1].content
        if "<premise>" in question:
            return related()(request)
        return Completion(right_answers().get(conversation(request)) or rest(question))

    return AnsweringModel(answer)


def ignorant(rest: Callable[[str], str]) -> AnsweringModel:
    """Gives the questions of a probe one answer, whatever is asked."""
    constant: dict[str, str] = {}

    def answer(request: Request) -> Completion:
        question = request.messages[-1].content
        if "<premise>" in question:
            return completion_of(shares("contradiction", 3.0, (0.0, 0.0, 0.0)))
        if request.stage != STAGE:
            return Completion(rest(question))
        return Completion(
            constant.setdefault(str(request.prompt), right_answers()[conversation(request)])
        )

    return AnsweringModel(answer)


Evaluate = Callable[[AnsweringModel], Findings]

EVALUATIONS: dict[str, tuple[Evaluate, Callable[[str], str], tuple[str, ...]]] = {
    "coherence by senses": (
        lambda model: coherence(GRAPH, model=model, probe=True),
        evaluated,
        (CLAIM_RELATIONS,),
    ),
    "coherence by relations": (
        lambda model: coherence(GRAPH, model=model, relations="model", probe=True),
        evaluated,
        (RELATIONS,),
    ),
    "select": (
        lambda model: select(GRAPH, model=model, relevance=model, domain="things", probe=True),
        evaluated,
        (RELATIONS, RELEVANCES),
    ),
    "omissions": (
        lambda model: omissions(GRAPH, model=model, probe=True),
        evaluated,
        (RELATIONS, RELEVANCES),
    ),
    "revise": (lambda model: revise(REFUTED, model=model, probe=True), evaluated, (RELATIONS,)),
    "fastfact": (
        lambda model: fastfact(GRAPH, model=model, failure_types=True, probe=True),
        evaluated,
        (PRE_VERIFICATIONS, "fastfact", FAILURES_OF_CLAIMS, MISSING_FROM_CLAIMS),
    ),
    "fastfact with the whole response": (
        lambda model: fastfact(GRAPH, model=model, context="response", probe=True),
        evaluated,
        (PRE_VERIFICATIONS_IN_RESPONSE, "fastfact"),
    ),
    "self-knowledge": (
        lambda model: self_knowledge(
            [*graphs(with_claims=True), FactGraph("r9", (), response="Sorry, I do not know.")],
            model=model,
            probe=True,
        ),
        answer_to,
        (*SELF_SETTINGS, REFUSALS),
    ),
}


@pytest.mark.parametrize("name", EVALUATIONS)
def test_an_evaluation_says_whether_its_answers_are_evidence(name: str) -> None:
    evaluate, rest, probed = EVALUATIONS[name]
    findings = evaluate(knowing(rest))
    assert findings["probe"]["probe"].tolist() == list(probed)
    assert findings["probe"]["evidence"].all()
    assert findings.sentences[0].startswith("Probe: answering finds ")
    assert not any("no evidence" in line for line in findings.sentences)
    assert not findings.incomplete
    calls = findings["cost"].set_index("stage")["calls"]
    assert calls[STAGE] == planned_probe(probed)[STAGE]


@pytest.mark.parametrize("name", EVALUATIONS)
def test_one_answer_to_everything_is_no_evidence_and_ends_with_1(name: str) -> None:
    evaluate, rest, probed = EVALUATIONS[name]
    findings = evaluate(ignorant(rest))
    assert not findings["probe"]["evidence"].any()
    assert findings.incomplete
    lines = [line for line in findings.sentences if line.startswith("Probe: ")]
    assert len(lines) == len(probed)
    assert all("no evidence" in line for line in lines)
    # No option of these corrects relations, so that none is named.
    assert not any("relation_correction" in line for line in findings.sentences)
    assert any("Name another model with" in line for line in findings.sentences)


def test_a_model_that_is_an_object_is_probed_where_that_is_asked_for() -> None:
    assert "probe" not in coherence(GRAPH, model=knowing(evaluated)).tables


@pytest.mark.service
def test_fastfact_is_probed_once_and_the_dry_run_counts_it(keyed: Path) -> None:
    lines = [json.dumps({"id": name, "response": text}) for name, text in RESPONSES.items()]
    (keyed / "batch.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (keyed / "notes").mkdir()
    (keyed / "notes" / "Trees.txt").write_text("Alder is a tree.", encoding="utf-8")

    def answered(request: dict[str, Any], number: int) -> Reply:
        right = right_answers().get("\n".join(str(m["content"]) for m in request["messages"]))
        return readable(request, number) if right is None else Reply(right, usage=(50, 5))

    with ScriptedServer(answered) as server:
        options = ("--documents", "notes", "--model", "openai/scripted", "--api-base", server.url)
        planned = invoke("fastfact", "batch.jsonl", *options, "--dry-run")
        row = next(line.split() for line in planned.stdout.splitlines() if "probe" in line)
        assert row == [STAGE, str(planned_probe([PRE_VERIFICATIONS, "fastfact"])[STAGE])]
        assert not server.requests
        first = invoke("fastfact", "batch.jsonl", *options, "--out", "o", "--probe")
        asked = len(server.requests)
        invoke("fastfact", "batch.jsonl", *options, "--out", "again", "--probe")
        assert len(server.requests) == asked
    assert "finds 36 of 36 verdicts of fastfact" in first.stdout
    assert "finds 48 of 48 verdicts of pre-verification" in first.stdout
    written = json.loads((keyed / "o" / "findings.json").read_text(encoding="utf-8"))
    assert [row["correct"] for row in written["tables"]["probe"]] == [48, 36]


@pytest.mark.service
def test_a_dry_run_of_self_knowledge_and_assess_counts_the_probe(keyed: Path) -> None:
    (keyed / "r.txt").write_text("Trains cross the bridge.", encoding="utf-8")
    (keyed / "notes").mkdir()
    (keyed / "notes" / "a.txt").write_text("Only trains cross it.", encoding="utf-8")
    with ScriptedServer(provider) as server:
        options = ("--model", "openai/scripted", "--api-base", server.url, "--dry-run")
        planned = invoke("assess", "r.txt", "--documents", "notes", *options, "--json")
        assert not server.requests
    calls = {row["stage"]: row["calls"] for row in json.loads(planned.stdout)["tables"]["calls"]}
    assert calls[STAGE] == planned_probe([RELATIONS])[STAGE] == 36 + 3 + 3
