"""Calls that failed: counted once, said of each stage with their share, in the exit code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments import assess, revise
from experiments.asking.failed_calls import (
    StageCalls,
    calls_of_responses,
    failed_throughout,
    failure_sentences,
)
from experiments.evaluators.display.assessed_page import findings_of_graphs
from factormodels import Context, FactGraph
from factormodels.extraction.language_model import Completion, Failure, Request, Usage
from factormodels.extraction.language_model.accounting import Account, Ledger
from tests.experiments.methods.test_revise import bridge
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.questions import claim_of, sentences_of


def test_an_account_says_how_many_calls_failed_and_why_the_first_did() -> None:
    account = Account()
    account.add("queries", Completion("q", usage=Usage(4, 1)))
    account.add("queries", Failure("the line is dead"))
    account.add("queries", Failure("unread", Usage(4, 1)))
    account.add("reviser", Failure("the line is dead"))
    account.add("relations", Completion("r"))
    taken = account.take()
    assert taken["queries"]["answers"] == 2
    assert taken["queries"]["failed"] == {
        "calls": 3, "failures": 2, "reason": "the line is dead",
    }  # fmt: skip
    assert "failed" not in taken["relations"]
    assert account.take() == {}
    calls = calls_of_responses([taken, taken, {}])
    assert calls == {
        "queries": StageCalls(6, 4, "the line is dead"),
        "relations": StageCalls(2),
        "reviser": StageCalls(2, 2, "the line is dead"),
    }
    assert failed_throughout(calls)
    del calls["reviser"]
    assert not failed_throughout(calls)
    assert failure_sentences(calls) == [
        "queries: 4 of 6 calls failed (66.7%); the first: the line is dead"
    ]


def test_a_ledger_keeps_the_first_reason() -> None:
    ledger = Ledger()
    for answer in (Completion("a"), Failure("first"), Failure("second")):
        ledger.add("stage", answer)
    assert (ledger.total.made, ledger.total.failures, ledger.total.reason) == (3, 2, "first")


def test_searches_are_calls_of_a_stage_too() -> None:
    facts = {"queries": 3, "unsearched": ["status 503"] * 3, "failures": []}
    calls = calls_of_responses([], [{"retrieval": facts}, {}])
    assert calls == {"retrieval": StageCalls(3, 3, "status 503")}


RESPONSE = FactGraph(
    "r",
    (),
    (Context("c1", "Only trains cross the bridge."),),
    response="Trains cross the bridge. Cars cross it.",
)


def answering(failing: frozenset[str]) -> AnsweringModel:
    def answer(request: Request) -> str | Failure:
        if request.stage in failing:
            return Failure("the server is asleep")
        question = request.messages[-1].content
        if request.stage == "atomizer":
            claims = [{"sentence": n, "claim": text} for n, text in sentences_of(question)]
            return json.dumps(claims)
        return json.dumps({"claim": claim_of(question)})

    return AnsweringModel(answer)


@pytest.mark.parametrize("failing", [True, False])
def test_a_stage_that_fails_throughout_leaves_a_run_incomplete(failing: bool) -> None:
    model: Any = answering(frozenset({"reviser"} if failing else set()))
    assessed = assess(
        [RESPONSE], atoms="model", revise=True, retriever="given", relations="lexical", model=model
    )
    # What was found is there all the same.
    assert len(assessed["claims"]) == 2
    assert assessed.incomplete is failing
    failure = "reviser: 2 of 2 calls failed (100.0%); the first: the server is asleep"
    assert (failure in assessed.sentences) is failing
    assert ("Without a result in other stages: revision 2." in assessed.sentences) is failing
    cost: Any = assessed["cost"].set_index("stage")
    assert cost.loc["reviser", "failures"] == (2 if failing else 0)
    # The table's count of what is missing is the sum of what the sentences say.
    assert assessed["responses"]["missing"].sum() == (2 if failing else 0)
    page = findings_of_graphs(assessed.graphs, "r").sentences
    remarks = ["Without a result in other stages: revision 2.", f"{failure}."]
    assert [sentence for sentence in remarks if sentence in page] == (remarks if failing else [])
    assert (failure in json.loads(assessed.as_json())["findings"]) is failing


def test_a_command_without_a_batch_says_the_same() -> None:
    model: Any = AnsweringModel(lambda _: Failure("the server is asleep"))
    revised = revise([bridge()], model=model)
    assert revised.incomplete
    assert (
        revised.sentences[-1]
        == "corrections: 2 of 2 calls failed (100.0%); the first: the server is asleep"
    )
