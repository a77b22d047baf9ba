"""Core around a scorer: both scores, counted by hand, and calls counted at the server."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import assess, fastfact
from experiments.evaluators.core import CoreSettings, core_stage
from experiments.evaluators.response import AssessedResponse, with_core
from factormodels import Atom, FactGraph, read_many
from factormodels.extraction.language_model import Request
from factormodels.extraction.probe.asking import probe_calls
from factormodels.extraction.probe.table import RELEVANCES
from factormodels.selection import templates_of
from tests.experiments.conftest import invoke
from tests.experiments.evaluators.test_assess_model import arguments, notes, provider, stage_of
from tests.experiments.evaluators.test_fastfact import answer
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.server import ScriptedServer
from tests.refusals import refused

__all__ = ["notes"]


REPEATED = FactGraph(
    "r",
    (
        Atom("a1", "The bridge opened in 1890.", sentence=1),
        Atom("a2", "The bridge opened in the year 1890.", sentence=2),
        Atom("a3", "Trains cross it daily.", sentence=2),
    ),
    response="The bridge opened in 1890. It is said that trains cross it daily.",
)


def kept(graph: FactGraph, **options: object) -> list[str]:
    settings = CoreSettings(domain="things", **options)  # type: ignore[arg-type]
    stage, _ = core_stage([graph], settings, None)
    claims: list[str] = stage(graph).metadata["core"]["kept"]
    return claims


def test_repeated_and_unfaithful_claims_do_not_count() -> None:
    assert len(kept(REPEATED, faithfulness=False)) == 2
    # The second claim is not entailed by the sentence that it is said to be from.
    assert kept(REPEATED) == ["a1", "a3"]


def test_impossible_selections_are_refused() -> None:
    bare = replace(REPEATED, response="")
    refused("add --no-faithfulness", core_stage, [bare], CoreSettings(), None)
    asked = CoreSettings(core_relations="model")
    refused("needs a language model", core_stage, [REPEATED], asked, None)


def test_claims_beside_the_question_do_not_count_with_core_relevance() -> None:
    def say(request: Request) -> str:
        return json.dumps({"relevant": "Trains" not in request.messages[-1].content})

    graph, model = replace(REPEATED, query="When did the bridge open?"), AnsweringModel(say)
    how: dict[str, Any] = {"domain": "things", "faithfulness": False}
    assert "a3" in kept(graph, faithfulness=False)
    stage, facts = core_stage([graph], CoreSettings(**how, core_relevance=True), model)
    assert len(stage(graph).metadata["core"]["kept"]) == 1
    assert facts["core"]["relevance"]
    assert len(model.asked) == 3
    refused("add --model", core_stage, [graph], CoreSettings(core_relevance=True), None)
    more: dict[str, Any] = {"model": model, "relations": "lexical", "probe": False}
    assessed = assess(
        graph, documents=["The bridge opened."], core=True, core_relevance=True, **how, **more
    )
    assert assessed["claims"]["counts"].tolist().count(True) == 1
    assert "relevance" in assessed["cost"]["stage"].tolist()
    # The judge of relevance is probed, as that of `select` is.
    more = {**more, "probe": True}
    options: dict[str, Any] = {"documents": ["The bridge opened."], "core": True, **how, **more}
    probed = assess(graph, core_relevance=True, **options)
    assert probed["probe"]["probe"].tolist() == ["relevance"]
    assert "probe" not in assess(graph, **options).tables
    options = {**options, "dry_run": True}
    del options["relations"]
    planned = [fastfact(graph, core_relevance=each, **options) for each in (True, False)]
    asked, others = (each["calls"].set_index("stage")["calls"] for each in planned)
    assert asked["probe"] - others["probe"] == probe_calls(RELEVANCES)
    # Each of the assumed claims is asked about, and compared with the others and the bleached ones.
    n = asked["fastfact"]
    assert asked["relevance"] == n
    related = fastfact(graph, core_relations="model", **options)["calls"].set_index("stage")
    assert related["calls"]["core relations"] == n * (n - 1 + len(templates_of("things")))


@pytest.mark.parametrize("how", ["relevance", "relations"])
def test_a_dry_run_counts_the_calls_of_core(how: str) -> None:
    def say(request: Request) -> str:
        if how == "relevance":
            return json.dumps({"relevant": True})
        # Without log-probabilities, the same pair is asked about again, with a stated confidence.
        stated = json.dumps({"relation": "neutral", "confidence": 0.9})
        return stated if "confidence" in request.messages[0].content else "unknown"

    model = AnsweringModel(say)
    asked_of: dict[str, dict[str, Any]] = {
        "relevance": {"core_relevance": True},
        "relations": {"core_relations": "model"},
    }
    options = asked_of[how]
    options |= {"documents": ["The bridge opened."], "model": model, "relations": "lexical"}
    options |= {"core": True, "domain": "things", "probe": False}
    graph = replace(REPEATED, query="When did the bridge open?")
    planned: Any = assess(graph, dry_run=True, **options)["calls"].set_index("stage")["calls"]
    assert not model.asked
    assess(graph, **options)
    if how == "relevance":
        assert planned["relevance"] == len(model.asked) == 3
    else:
        texts = re.compile(r"<(?:premise|hypothesis)>\s*(.*?)\s*</", re.DOTALL)
        pairs = {tuple(texts.findall(request.messages[-1].content)) for request in model.asked}
        # Each claim with both others, with its sentence and with the bleached claims.
        n_templates = len(templates_of("things"))
        assert planned["core relations"] == len(pairs) == 3 * (2 + 1 + n_templates)


def test_measures_with_core_are_over_the_claims_that_count() -> None:
    counted = AssessedResponse("r", (True, False, None), {"FR2": (0.9, 0.2, None)}, 0, 0,
                           counts=(True, False, True))  # fmt: skip
    none = replace(counted, counts=(False, False, False))
    (with_selection,) = with_core([counted, none, replace(counted, counts=None)])
    assert (with_selection.labels, with_selection.p) == ((True, None), {"FR2": (0.9, None)})


def test_evaluate_gives_both_scores() -> None:
    labeled = replace(
        REPEATED,
        atoms=tuple(replace(atom, label=atom.id != "a3") for atom in REPEATED.atoms),
    )
    documents = ["The bridge opened in 1890. No train crosses it."]
    assessed = assess(labeled, documents=documents, core=True, domain="things")
    assert assessed["claims"]["counts"].tolist() == [True, False, True]
    all_of, core = assessed["summary"].to_dict("records")
    assert (all_of["name"], core["name"]) == ("FR2", "FR2 with Core")
    assert (all_of["human_precision"], core["human_precision"]) == (2 / 3, 1 / 2)
    assert (all_of["n_atoms"], core["n_atoms"], core["k"]) == (3, 2, 3)
    plain = assess(labeled, documents=documents)
    assert "counts" not in plain["claims"]
    assert len(plain["summary"]) == 1


def test_fastfact_gives_both_scores(tmp_path: Path) -> None:
    text = "Birch is white. Cedar is red. Fig is sweet."
    graph = FactGraph("r", (), response=text)
    judged = fastfact(
        graph,
        model=AnsweringModel(answer),
        documents=["Birch, cedar and fig."],
        k_prime=2,
        cache=tmp_path / "answers.sqlite",
        core=True,
        domain="things",
    )
    row, claims = judged["responses"].iloc[0], judged["claims"]
    assert (row["supported"], row["unsupported"]) == (1, 2)
    selected = judged.graphs[0].metadata["core"]["kept"]
    types = claims[claims["claim"].isin(selected)]["type"]
    assert row["core_claims"] == len(selected) >= 1
    assert row["core_supported"] == (types == "supported").sum()
    assert row["core_unsupported"] == (types == "non-supported").sum()


def test_relations_that_cannot_be_read_leave_core_unknown_and_are_counted(tmp_path: Path) -> None:
    model = AnsweringModel(lambda request: "?" if request.stage == "relations" else answer(request))
    judged = fastfact(
        FactGraph("r", (), response="Birch is white. Cedar is red."),
        model=model,
        documents=["Birch and cedar."],
        k_prime=2,
        cache=tmp_path / "answers.sqlite",
        core=True,
        core_relations="model",
        domain="things",
    )
    # The scores of all claims stay, and nothing is made up about those that count.
    row = judged["responses"].iloc[0]
    assert row["supported"] + row["unsupported"] == 2
    assert "core" not in judged.tables
    assert judged.graphs[0].metadata["core"]["kept"] is None
    assert judged.incomplete
    (sentence,) = (each for each in judged.sentences if each.startswith("Core: "))
    missing = judged.graphs[0].metadata["core"]["missing"]
    assert missing > 0
    assert f"1 response is unknown, because {missing} answers" in sentence


@pytest.mark.service
def test_calls_for_selection_are_those_that_the_server_counts(notes: Path) -> None:
    text = "Trains cross the bridge. Cars cross it."
    (notes / "batch.jsonl").write_text(json.dumps({"id": "r0", "response": text}))
    core = ("--core", "--domain", "things", "--core-relations", "model")
    with ScriptedServer(provider) as server:
        invoke(*arguments(server.url, "plain", "--cache", "a.sqlite"))
        without = Counter(map(stage_of, server.requests))
        result = invoke(*arguments(server.url, "o", "--cache", "b.sqlite", *core))
        asked = Counter(map(stage_of, server.requests)) - without
    (graph,) = read_many(notes / "o/graphs.jsonl")
    facts = graph.metadata["core"]
    assert asked["relations"] > without["relations"]
    assert re.search(rf"^relations +{asked['relations']} +0 +0 ", result.stdout, re.M)
    assert f"Core: {len(facts['kept'])} of 2 claims count" in result.stdout
    # Both scores, one below the other.
    assert len(re.findall(r"^FR2 +implication ", result.stdout, re.M)) == (
        2 if facts["kept"] else 1
    )
