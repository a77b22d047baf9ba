"""The cost model against FaStfact's table 6 and against counted runs of the stages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from experiments.evaluators.calls.costs import METHODS, Load
from factormodels import Atom, Context, FactGraph, InputError
from factormodels.extraction.fastfact import FastFactSettings, fastfact
from factormodels.extraction.language_model import Completion, Request
from factormodels.extraction.language_model.accounting import Ledger, MeteredModel
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.pipeline import (
    atomizer_stage,
    relation_stage,
    retrieval_stage,
    reviser_stage,
    run_stages,
)
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.retrieval.base import Passage, Retrieved
from factormodels.extraction.stages.assessors import assess
from factormodels.selection import CachedRelations, Core, Informativeness, select, subclaims_of
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.questions import claim_of, sentences_of
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply
from tests.refusals import refused

pytestmark = pytest.mark.service

N = 6
SENTENCES = [f"Sentence number {k} tells of ship {k}." for k in range(1, N + 1)]
RESPONSE = " ".join(SENTENCES)


def test_the_formulas_are_those_of_table_6_by_hand() -> None:
    load = Load(sentences=10, claims=40, queries=2, unsure=0.25, stride=4, per_claim=3, contexts=50)
    formulas = {
        name: (cost(load).extracting, cost(load).verifying, cost(load).searches)
        for name, cost in METHODS.items()
    }
    assert formulas == {
        "FactScore": (10, 40, 0),
        "SAFE": (10 + 80 + 80, 40, 80),
        "VeriScore": (10, 40, 80),
        "FaStfact": (3, 10, 20),
        "FR1": (3 + 40, 120, 80),
        "FR2": (3 + 40, 2000, 80),
        "FR3": (3 + 40, 2000 + 50 * 49, 80),
    }
    # O_LLM of SAFE is N + (3 + q) M.
    assert METHODS["SAFE"](load).calls == 10 + (3 + 2) * 40


class CountingRetriever:
    """k passages per query; every second one is the same for all queries."""

    name = "counting"

    def __init__(self, k: int) -> None:
        self.k, self.queries = k, 0

    def retrieve(self, queries: Any) -> list[Retrieved]:
        answers = []
        for query in queries:
            self.queries += 1
            texts = [f"common {j}" if j % 2 else f"{query} {j}" for j in range(self.k)]
            answers.append(Retrieved(tuple(Passage("", "", "", text) for text in texts)))
        return answers


def script(request: dict[str, Any], _number: int) -> Reply:
    """Two claims per sentence, a revised claim, and neutral for every pair."""
    question = request["messages"][-1]["content"]
    if "<sentences>" in question:
        claims = [
            {"sentence": n, "claim": f"Ship {n} has {i} masts"}
            for n, _ in sentences_of(question)
            for i in (1, 2)
        ]
        return Reply(json.dumps(claims))
    if "<premise>" in question:
        return label_reply("neutral", 0.8, {"entailment": 0.2})
    return Reply(json.dumps({"claim": claim_of(question)}))


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        with ScriptedServer(script) as running:
            yield running


@pytest.mark.parametrize(
    ("variant", "stride", "sentences"), [("FR1", 1, 3), ("FR2", 2, 3), ("FR3", 3, 2)]
)
def test_factreasoner_costs_what_the_formulas_say_on_the_server(
    server: ScriptedServer, variant: str, stride: int, sentences: int
) -> None:
    before = len(server.requests)
    model = LitellmModel(LitellmSettings("openai/test", api_base=server.url, attempts=1))
    retriever = CountingRetriever(3)
    graph = run_stages(
        FactGraph("g", (), response=" ".join(SENTENCES[:sentences]), topic="ships"),
        [
            atomizer_stage(model, stride),
            reviser_stage(model),
            retrieval_stage(retriever),
            relation_stage(PromptedRelationModel(model), variant),
        ],
    )
    n = len(graph.atoms)
    load = Load(sentences, n, stride=stride, per_claim=3, contexts=len(graph.contexts))
    expected = METHODS[variant](load)
    assert (n, len(graph.contexts)) == (2 * sentences, 2 * n + 1)
    assert len(server.requests) - before == expected.calls
    assert retriever.queries == expected.searches
    assert graph.metadata["relations"]["asked"] == expected.verifying


@pytest.mark.parametrize("name", ["factscore", "veriscore"])
def test_prompted_assessors_cost_a_call_per_claim(name: str) -> None:
    ledger = Ledger()
    answers = {"factscore": "true", "veriscore": "supported"}
    model = MeteredModel(AnsweringModel(lambda _: answers[name]), ledger)
    atoms = tuple(Atom(f"a{k}", f"Claim {k}.") for k in range(7))
    assess(FactGraph("g", atoms, (Context("c"),)), name, model)
    cost = METHODS["FactScore" if name == "factscore" else "VeriScore"](Load(0, 7))
    assert ledger.stages[name].calls == cost.verifying


def test_fastfact_costs_what_the_formulas_say() -> None:
    def answer(request: Request) -> str | Completion:
        if request.stage == "fastfact":
            return "Verdict: supported"
        # Every third sentence is uncertain.
        return "\n".join(
            f"{n} | It tells of ship {n}. | {'unsure' if n % 3 == 0 else 'supported'}"
            for n, _ in sentences_of(request.messages[-1].content)
        )

    model, retriever = AnsweringModel(answer), CountingRetriever(1)
    judged = fastfact(
        FactGraph("g", (), response=RESPONSE),
        model,
        retriever,
        FastFactSettings(stride=4, threshold=0.5),
    )
    effort = judged.effort
    load = Load(effort.sentences, effort.claims, unsure=effort.verified_share, stride=4)
    cost = METHODS["FaStfact"](load)
    assert effort.claims == N
    assert len(model.asked) == pytest.approx(cost.calls)
    assert retriever.queries == pytest.approx(cost.searches)
    assert effort.extracting_calls == cost.extracting


def test_selection_asks_every_ordered_pair_and_each_claim_with_templates_and_source() -> None:
    model = AnsweringModel(lambda _: "neutral")
    relations = CachedRelations(PromptedRelationModel(model, fallback=None))
    atoms = tuple(Atom(f"a{k}", f"Claim {k}.", sentence=1) for k in range(5))
    claims = subclaims_of(FactGraph("g", atoms, topic="it"), ["It."])
    with pytest.raises(InputError, match="no bleached claim was judged"):
        # Without log-probabilities and without a fallback every pair is missing.
        select(claims, Core(relations, Informativeness(relations, ("{topic} is.",))))
    verbal = AnsweringModel(lambda _: '{"relation": "neutral", "confidence": 0.9}')
    relations = CachedRelations(PromptedRelationModel(verbal, method="verbalized"))
    core = Core(relations, Informativeness(relations, ("{topic} is.", "{topic} was.")), share=0.0)
    select(claims, core)
    assert relations.asked == 5 * 4 + 5 * 2 + 5 == len(verbal.asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sentences": -1}, "sentences is -1"),
        ({"unsure": 1.5}, "unsure is 1.5"),
        ({"stride": 0}, "stride is 0"),
        ({"contexts": -2}, "contexts is -2"),
    ],
)
def test_a_bad_load_is_named(arguments: dict[str, Any], message: str) -> None:
    refused(re.escape(message), Load, **{"sentences": 1, "claims": 1, **arguments})
