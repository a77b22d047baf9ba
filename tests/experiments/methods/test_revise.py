"""`revise`: what becomes of doubtful claims, and of planted errors, by a model on the loopback."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import revise
from experiments.methods.revise import HEDGE, METADATA_KEY
from factormodels import Atom, Context, FactGraph, Relation, RelationKind, read_many
from factormodels.extraction.language_model import Request
from factormodels.extraction.language_model.litellm_model import LitellmSettings
from factormodels.io.fact_graph_json import write_fact_graphs
from inference import infer
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.server import Reply, ScriptedServer
from tests.refusals import refused

pytestmark = pytest.mark.service

E, C = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION


def bridge() -> FactGraph:
    return FactGraph(
        "bridge",
        (
            Atom("a1", "The bridge opened in 1890.", label=True, sentence=1),
            Atom("a2", "The bridge carries trams.", label=False, sentence=2),
            Atom("a3", "The bridge is green.", label=True, sentence=2),
            Atom("a4", "The bridge is 90 metres long.", label=False, sentence=3),
        ),
        (
            Context("c1", "It opened in 1890 and carries trains.", retrieved_for=("a1", "a2")),
            Context("c2", "It is 70 metres long.", title="Lengths", retrieved_for=("a4",)),
        ),
        (
            Relation("c1", "a1", E, 0.95),
            Relation("c1", "a2", C, 0.9),
            Relation("c2", "a3", C, 0.6),
            Relation("c2", "a4", C, 0.95),
        ),
        query="What of the bridge?",
        response="The bridge opened in 1890. It carries trams and is green. It is 90 metres long.",
        metadata={"sentences": 3},
    )


CORRECTIONS = {"trams": "The bridge carries trains.", "90 metres": "The bridge is 70 metres long."}


def correcting(request: Request) -> str:
    """Answer as a model would: a correction, or the relation of a passage to a claim."""
    text = request.messages[-1].content
    claim = text.rsplit("<claim>" if "<claim>" in text else "<hypothesis>", 1)[1]
    if request.prompt.name == "correction":
        correction = next((new for word, new in CORRECTIONS.items() if word in claim), "")
        return json.dumps({"claim": correction})
    premise = text.rsplit("<premise>", 1)[1].split("</premise>")[0]
    number = re.search(r"\d+|trains", claim)
    entails = bool(number and number[0] in premise)
    return json.dumps({"relation": "entailment" if entails else "neutral", "confidence": 0.95})


def changes(findings: Any) -> dict[str, tuple[str, str]]:
    frame = findings["changes"]
    return {row["claim"]: (row["action"], row["is"]) for row in frame.to_dict("records")}


def test_without_a_model_claims_are_dropped_and_hedged() -> None:
    revised = revise([bridge()])
    assert changes(revised) == {
        "a2": ("dropped", ""),
        "a3": ("hedged", f"{HEDGE}The bridge is green."),
        "a4": ("dropped", ""),
    }
    (graph,) = revised.graphs
    assert graph.response == f"The bridge opened in 1890. {HEDGE}The bridge is green."
    assert graph.atom_ids == ("a1",)
    assert {r.target for r in graph.relations} == {"a1"}
    assert graph.metadata[METADATA_KEY]["a4"]["was"] == "The bridge is 90 metres long."
    row: Any = revised["responses"].iloc[0]
    p = infer(graph.to_factor_graph()).marginals["a1"][1]
    assert row["after"] == pytest.approx(p, abs=1e-12)
    assert "1 kept, 1 hedged, 2 dropped" in revised.sentences[0]


def test_a_correction_stays_if_a_passage_holds_it() -> None:
    revised = revise([bridge()], model=AnsweringModel(correcting))
    assert changes(revised) == {
        "a2": ("corrected", "The bridge carries trains."),
        "a3": ("hedged", f"{HEDGE}The bridge is green."),
        "a4": ("corrected", "The bridge is 70 metres long."),
    }
    (graph,) = revised.graphs
    assert [(a.id, a.label) for a in graph.atoms] == [("a1", True), ("a2", None), ("a4", None)]
    # Judged by every passage, as the others were.
    judged = {(r.source, r.target, str(r.kind)) for r in graph.relations if r.target == "a4"}
    assert judged == {("c1", "a4", "neutral"), ("c2", "a4", "entailment")}
    frame: Any = revised["changes"].set_index("claim")
    assert frame.loc["a4", "passage"] == "c2"
    assert frame.loc["a4", "after"] > 0.5 > frame.loc["a4", "before"]
    assert graph.response.endswith("The bridge is 70 metres long.")
    cost: Any = revised["cost"].set_index("stage")
    assert cost.loc["corrections", "calls"] == 2


def test_a_fact_that_no_passage_holds_does_not_come_in() -> None:
    def inventing(request: Request) -> str:
        if request.prompt.name == "correction":
            return json.dumps({"claim": "The bridge was designed by Ada Example."})
        return json.dumps({"relation": "neutral", "confidence": 0.9})

    revised = revise([bridge()], model=AnsweringModel(inventing))
    frame: Any = revised["changes"].set_index("claim")
    assert frame.loc["a4", "action"] == "dropped"
    assert frame.loc["a4", "reason"] == "no passage entails the correction"
    assert "Ada" not in revised.graphs[0].response
    silent = revise([bridge()], model=AnsweringModel(lambda _: '{"claim": ""}'))
    reasons: Any = silent["changes"].set_index("claim")["reason"]
    assert reasons["a4"] == "no passage has the correction"


def test_a_correction_that_other_passages_deny_goes() -> None:
    def denied(request: Request) -> str:
        answer = correcting(request)
        text = request.messages[-1].content
        if request.prompt.name != "correction" and "1890 and carries" in text:
            return json.dumps({"relation": "contradiction", "confidence": 0.99})
        return answer

    revised = revise([bridge()], model=AnsweringModel(denied))
    frame: Any = revised["changes"].set_index("claim")
    # One passage entails it with 0.95 and one contradicts it with 0.99.
    assert (frame.loc["a4", "action"], frame.loc["a4", "reason"]) == (
        "dropped",
        "not probable enough",
    )


def test_missing_answers_are_named() -> None:
    revised = revise([bridge()], model=AnsweringModel(lambda _: "hm"))
    assert revised.incomplete
    assert "2 claims could not be corrected because there was no answer" in str(revised)
    assert changes(revised)["a2"] == ("dropped", "")


def planted(n: int, seed: int) -> tuple[list[FactGraph], dict[str, str]]:
    """Responses with claims of a number each, a third of them wrong, and passages with the truth.

    A passage is read wrongly now and then: it then speaks against a true claim, or not against a
    false one.
    """
    rng = np.random.default_rng(seed)
    graphs, truth = [], {}
    for r in range(n):
        atoms, contexts, relations = [], [], []
        for i in range(6):
            right = int(rng.integers(100, 900))
            false = bool(rng.random() < 1 / 3)
            stated = right + 1000 if false else right
            tower = f"tower {r}-{i}"
            truth[tower] = f"The {tower} has {right} steps."
            atoms.append(
                Atom(f"a{i}", f"The {tower} has {stated} steps.", label=not false, sentence=i + 1)
            )
            contexts.append(Context(f"c{i}", f"On {tower}: it has {right} steps."))
            misread = rng.random() < 0.1
            relations.append(Relation(f"c{i}", f"a{i}", C if false != misread else E, 0.9))
        graphs.append(
            FactGraph(
                f"r{r}",
                tuple(atoms),
                tuple(contexts),
                tuple(relations),
                response=" ".join(atom.text for atom in atoms),
                metadata={"sentences": 6},
            )
        )
    return graphs, truth


def test_planted_errors_go_through_a_server(tmp_path: Path) -> None:
    """Errors removed, true claims lost, new errors brought in, by litellm against the loopback."""
    graphs, truth = planted(6, 0)

    def reply(body: dict[str, Any], _: int) -> Reply:
        text = body["messages"][-1]["content"]
        if "<passages>" in text:
            passage = text.split("<passages>")[1].split("</passages>")[0]
            match = re.search(r"On (tower [\d-]+): it has (\d+)", passage)
            assert match
            return Reply(json.dumps({"claim": f"The {match[1]} has {match[2]} steps."}))
        premise = text.rsplit("<premise>", 1)[1].split("</premise>")[0]
        claim = text.rsplit("<hypothesis>", 1)[1]
        tower, steps = re.search(r"(tower [\d-]+) has (\d+)", claim).groups()  # type: ignore[union-attr]
        if f"On {tower}:" not in premise:
            kind = "neutral"
        else:
            kind = "entailment" if f"has {steps} " in premise else "contradiction"
        return Reply(json.dumps({"relation": kind, "confidence": 0.95}))

    with ScriptedServer(reply) as server:
        model = LitellmSettings("openai/loopback", server.url)
        revised = revise(graphs, model=model, cache=tmp_path / "answers.sqlite", probe=False)
    frame: Any = revised["changes"]
    labels = {(g.id, a.id): a.label for g in graphs for a in g.atoms}
    false = [key for key, label in labels.items() if not label]
    gone = {(row["response"], row["claim"]) for row in frame.to_dict("records")}
    removed = [key for key in false if key in gone]
    lost = [key for key in gone if labels[key]]
    # What was read rightly is removed, and what was misread is lost: a tenth of the relations.
    assert len(removed) / len(false) > 0.75
    assert len(lost) / (len(labels) - len(false)) < 0.25
    corrected = frame[frame["action"] == "corrected"]
    assert len(corrected) > 0
    # Nothing new is wrong.
    for text in corrected["is"]:
        tower = re.search(r"tower [\d-]+", text)
        assert tower
        assert text == truth[tower[0]]
    table: Any = revised["labels"].set_index("label")
    shares = [
        np.mean([(g.id, a.id) not in gone for a in g.atoms if not a.label])
        for g in graphs
        if any(not a.label for a in g.atoms)
    ]
    assert table.loc["false", "kept"] == pytest.approx(np.mean(shares), abs=1e-12)


def test_the_command_writes_graphs_and_a_page(tmp_path: Path) -> None:
    path = tmp_path / "graphs.jsonl"
    write_fact_graphs([bridge(), FactGraph("bare", (Atom("a"),))], path)
    page = tmp_path / "page.html"
    result = invoke("revise", str(path), "--out", str(tmp_path / "out"), "--report", str(page))
    assert "1 response without claims or relations: left out." in result.stdout
    (graph,) = read_many(tmp_path / "out" / "graphs.jsonl")
    assert graph.atom_ids == ("a1",)
    assert "The bridge is 90 metres long." in page.read_text(encoding="utf-8")


def test_doubtful_claims_have_passage_and_reason() -> None:
    frame: Any = revise([bridge()])["changes"].set_index("claim")
    assert frame["passage"].to_dict() == {"a2": "c1", "a3": "c2", "a4": "c2"}
    assert set(frame["reason"]) == {"a passage contradicts it"}
    alone: Any = revise([at_odds()])["changes"].set_index("claim")
    assert alone.loc["a2", "reason"] == "another claim contradicts it"


def test_long_passage_shows_only_its_deciding_sentences() -> None:
    filler = [f"Nothing of note happened in the village in year {n} of it all." for n in range(30)]
    filler[20] = "The bridge is 70 metres long."
    graph = bridge()
    long = replace(graph.contexts[1], text=" ".join(filler))
    asked: list[str] = []

    def answer(request: Request) -> str:
        if request.prompt.name == "correction" and "90 metres" in request.messages[-1].content:
            asked.append(request.messages[-1].content.rsplit("<passages>", 1)[1])
        return correcting(request)

    revise([replace(graph, contexts=(graph.contexts[0], long))], model=AnsweringModel(answer))
    (text,) = asked
    assert f"Lengths\n… {filler[19]} {filler[20]} {filler[21]} …" in text
    assert filler[18] not in text


def at_odds() -> FactGraph:
    """The graph at-odds.json of the guide: claims with relations between them, no passages."""
    return FactGraph(
        "at-odds",
        tuple(Atom(name, f"Claim {name}.", prior=0.5) for name in ("a1", "a2", "a3")),
        (),
        (
            Relation("a1", "a2", RelationKind.EXCLUSIVE, 0.9),
            Relation("a1", "a3", RelationKind.CO_NECESSITY, 0.7),
        ),
    )


def test_relations_between_claims_count() -> None:
    graph = at_odds()
    marginals = infer(graph.to_factor_graph()).marginals
    before = [float(marginals[name][1]) for name in graph.atom_ids]
    revised = revise([graph])
    row: Any = revised["responses"].iloc[0]
    assert row["before"] == pytest.approx(np.mean(before), abs=1e-12)
    # The less probable of the two that exclude each other goes.
    assert changes(revised) == {"a2": ("hedged", f"{HEDGE}Claim a2.")}
    assert revised.graphs[0].relations == graph.relations[1:]
    assert "leaves" not in str(revised)
    left_out = revise([graph], variant="FR2")
    assert "2 relations between claims: FR2 leaves them out." in str(left_out)
    assert changes(left_out) == {}


def test_a_response_of_which_nothing_stays() -> None:
    graph = FactGraph(
        "r",
        (Atom("a", "It rains."),),
        (Context("c", "It is dry."),),
        (Relation("c", "a", C, 0.95),),
    )
    revised = revise([graph])
    assert revised.graphs[0].atoms == ()
    assert revised.graphs[0].response == ""
    row: Any = revised["responses"].iloc[0]
    assert math.isnan(row["after"])


def test_input_that_does_not_fit_is_refused() -> None:
    refused("drop. 0.8 is more than .keep. 0.5", revise, [bridge()], drop=0.8)
    refused("no response has claims and relations", revise, [FactGraph("r", (Atom("a"),))])
    refused("and no model corrects them", revise, [bridge()], relations="lexical")


def test_the_conventions_of_the_release_hold_and_leave_the_priors_of_the_output() -> None:
    graph = FactGraph(
        "r",
        (Atom("a1", "The bridge carries trams."),),
        (Context("c1", "It carries trains.", retrieved_for=("a1",)),),
        (Relation("c1", "a1", C, 0.95),),
        response="The bridge carries trams.",
    )
    revised = revise([graph], like="fact-reasoner-0.8")
    # The passage at .9 contradicts the claim; without it the claim has its prior.
    assert revised["changes"]["before"].tolist() == pytest.approx(
        [0.9 * 0.05 + 0.1 * 0.5], rel=1e-12
    )
    assert [context.prior for context in revised.graphs[0].contexts] == [0.99]
    for name in ("responses", "changes"):
        assert revised.tables[name].notes.endswith(
            "passages at 0.9, relations below 1/2 kept, encoding conditional."
        )
    by_source = revise([graph], prior={"*": 0.6}, encoding="conditional")
    assert by_source["changes"]["before"].tolist() == pytest.approx(
        [0.6 * 0.05 + 0.4 * 0.5], rel=1e-12
    )
