"""`coherence`: the readouts of responses, their conflicts, and where relations come from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import assess, coherence
from experiments.evaluators.coherence import CoherenceSettings, values_of_pairs
from factormodels import (
    Atom,
    Context,
    FactGraph,
    Relation,
    RelationKind,
    datasets,
    read_many,
)
from factormodels.extraction.language_model import Request
from factormodels.extraction.stages.claim_relations import claim_pairs, lexical_shares
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.variants import claims_alone
from inference.tasks import coherence as readouts
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused


def graph(name: str = "r", *relations: Relation) -> FactGraph:
    return FactGraph(
        name,
        tuple(Atom(f"a{i}", text) for i, text in enumerate(("It opened in 1890.", "It opened in "
              "1900.", "It carries trains."), 1)),
        (Context("c1", "It opened in 1890."),),
        (Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9), *relations),
        response="It opened in 1890. It opened in 1900. It carries trains.",
    )  # fmt: skip


EXCLUSIVE = Relation("a1", "a2", RelationKind.EXCLUSIVE, 0.9)
CONTRADICTION = Relation("a2", "a3", RelationKind.CONTRADICTION, 0.6)


def test_a_row_is_what_the_graph_of_the_claims_says() -> None:
    graphs = [graph("one", EXCLUSIVE, CONTRADICTION), graph("two")]
    measured = coherence(graphs)
    expected = readouts(claims_alone(graphs[0]).compiled, prior=0.99)
    row: Any = measured["responses"].iloc[0]
    for name in ("agreement", "consistency", "mean_marginal", "no_active_conflict", "reified"):
        assert row[name] == getattr(expected, name)
    assert (row["relations"], row["conflicts"]) == (2, 2)
    assert measured["responses"]["agreement"][1] == 1.0
    conflicts: Any = measured["conflicts"]
    note = measured.tables["responses"].notes
    assert "relations below 1/2 left out, encoding implication" in note
    assert "passages" not in note
    with_evidence = coherence(graphs, evidence=True).tables["responses"].notes
    assert "priors of passages as in the data" in with_evidence
    # The surer one costs more.
    assert conflicts[["first", "second", "p"]].to_numpy().tolist() == [
        ["a1", "a2", 0.9],
        ["a2", "a3", 0.6],
    ]
    assert conflicts["first_text"][0] == "It opened in 1890."
    assert "2 relations between the 6 claims of 2 responses, 2 of them conflicts" in str(measured)


def test_the_embedded_answers_show_what_the_command_is_for() -> None:
    measured = coherence("at-odds")
    graphs = datasets.load("at-odds").graphs
    rows: Any = measured["responses"].set_index("response")
    kinds = {str(relation.kind) for relation in graphs[0].relations}
    assert kinds == {"entailment", "equivalence", "exclusive", "co_necessity", "contradiction"}
    planted = [each.metadata["planted_conflicts"] / len(each.atoms) for each in graphs]
    # An answer that says nothing two ways has agreement 1, and those that do the least.
    assert rows["agreement"]["odds-2-honey-bees"] == 1.0
    at_odds = [rows["agreement"][each.id] for each, n in zip(graphs, planted, strict=True) if n]
    others = [rows["agreement"][each.id] for each, n in zip(graphs, planted, strict=True) if not n]
    assert max(at_odds) < 0.5 < min(others)
    # The readout that others call a probability of no conflict is high of the surest one.
    worst: Any = measured["conflicts"].iloc[0]
    assert worst["response"] == "odds-4-the-moon"
    assert rows["no_active_conflict"].drop("odds-2-honey-bees").idxmax() == "odds-4-the-moon"
    assert "depends only on conflicts" in measured.tables["responses"].notes


def test_evidence_takes_part_if_it_is_asked_for() -> None:
    graph_of_two = graph("one", EXCLUSIVE)
    with_evidence: Any = coherence([graph_of_two], evidence=True, prior=0.5)["responses"]
    alone: Any = coherence([graph_of_two], prior=0.5)["responses"]
    assert with_evidence["mean_marginal"][0] != alone["mean_marginal"][0]
    expected = readouts(graph_of_two.compiled, prior=0.5)
    assert with_evidence["consistency"][0] == expected.consistency
    encoded: Any = coherence([graph_of_two], encoding="mixture")["responses"]
    assert encoded["agreement"][0] != alone["agreement"][0]


def test_a_language_model_says_how_claims_stand_to_each_other(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        second = "1900" in request.messages[-1].content.rsplit("<second>", 1)[1]
        return json.dumps({"relation": "alternative" if second else "none", "confidence": 0.9})

    model = AnsweringModel(answer)
    measured = coherence([graph()], model=model, window=1)
    assert len(model.asked) == 2
    conflicts: Any = measured["conflicts"]
    assert conflicts["relation"].tolist() == ["exclusive"]
    assert "relations: senses" in measured.sentences[0]
    assert measured["cost"]["calls"].sum() == 2
    measured.save(tmp_path)
    # What is written every command reads, this one too.
    again: Any = coherence(tmp_path / "graphs.jsonl")["responses"]
    assert again["agreement"].tolist() == measured["responses"]["agreement"].tolist()


def test_a_model_that_the_relations_leave_nothing_to_ask_is_named() -> None:
    model = AnsweringModel(lambda _: "hm")
    assert "so the model was not asked" in str(coherence([graph("r", EXCLUSIVE)], model=model))
    assert model.asked == []
    # Without the model, or with relations that are asked for, nothing is to be said.
    assert "was not asked" not in str(coherence([graph("r", EXCLUSIVE)]))
    assert "was not asked" not in str(coherence([graph()], model=model))
    assert model.asked


def test_unjudged_claims_are_reported() -> None:
    measured = coherence([graph()], model=AnsweringModel(lambda _: "hm"))
    assert measured.incomplete
    assert any("3 pairs could not be judged" in each for each in measured.sentences)


def test_the_lexical_model_needs_no_key(tmp_path: Path) -> None:
    path = tmp_path / "graphs.jsonl"
    write_fact_graphs([graph("one"), FactGraph("empty", (), response="It is.")], path)
    result = invoke("coherence", str(path), "--most", "1", "--out", str(tmp_path / "out"))
    assert "compares the words" in result.stdout
    assert "1 response without claims: left out." in result.stdout
    (written,) = read_many(tmp_path / "out" / "graphs.jsonl")
    assert written.metadata["claim_relations"]["asked"] == 1
    shown = invoke("coherence", str(path), "--json")
    assert json.loads(shown.stdout)["settings"]["relations"] == "lexical"


def test_input_that_does_not_fit_is_refused() -> None:
    related = [graph("r", EXCLUSIVE)]
    refused("window.*add .*relations.* lexical", coherence, related, window=2)
    model = AnsweringModel(lambda _: "hm")
    refused("window.*add .*relations.* senses", coherence, related, window=2, model=model)
    refused("no response has claims", coherence, [FactGraph("r", ())])
    refused("senses needs a language model", coherence, [graph()], relations="senses")
    refused("lexicl'.*is unknown .did you mean 'lexical'", coherence, [graph()], relations="lexicl")
    refused("use one of given, senses, lexical", coherence, [graph()], relations="psychic")
    refused("claims have no texts", coherence, [FactGraph("r", (Atom("a"), Atom("b")))])
    refused("encoding", coherence, [graph()], encoding="tables")


def test_a_response_without_an_answer_is_counted() -> None:
    # A passage that is certain contradicts for certain what is taken for certain.
    certain = graph("one", Relation("c1", "a2", RelationKind.CONTRADICTION, 1.0))
    certain = certain.with_priors(contexts=1.0)
    measured = coherence([certain, graph("two", EXCLUSIVE)], prior=1.0, evidence=True)
    assert measured.incomplete
    assert any(each.startswith("one: ") for each in measured.sentences)
    agreement: Any = measured["responses"]["agreement"]
    assert agreement.isna().tolist() == [True, False]


def test_a_response_whose_claims_have_no_state_agrees_least() -> None:
    certain = graph("one", Relation("a1", "a2", RelationKind.CONTRADICTION, 1.0))
    measured = coherence([certain, graph("two", EXCLUSIVE)], prior=1.0)
    assert not measured.incomplete
    assert measured["responses"]["agreement"].round(3).tolist() == [0.0, 0.464]
    assert measured["responses"]["mean_marginal"].isna().tolist() == [True, False]
    assert any("1 response leave no possible state" in each for each in measured.sentences)


def test_an_assessment_says_it_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = invoke(
        *("assess", "demonstration", "--response", "demo-01-marie-curie"),
        *("--coherence", "--claim-window", "3", "--out", str(out), "--json"),
    )
    document = json.loads(printed.stdout)
    (row,) = document["tables"]["coherence"]
    assert row["response"] == "demo-01-marie-curie"
    assert any("Agreement per claim" in each for each in document["findings"])
    plain = invoke("assess", "demonstration", "--response", "demo-01-marie-curie", "--json")
    tables = json.loads(plain.stdout)["tables"]
    assert "coherence" not in tables
    # Relations between claims change no posterior of the paper's variants.
    assert tables["claims"] == document["tables"]["claims"]
    (graph,) = read_many(out / "graphs.jsonl")
    again: Any = coherence([graph], relations="lexical", window=3)["responses"]
    assert again["agreement"][0] == pytest.approx(row["agreement"], abs=1e-12)


@pytest.mark.parametrize("window", [None, 1])
def test_a_dry_run_counts_what_coherence_would_ask(window: int | None) -> None:
    def answer(request: Request) -> str:
        if request.prompt.name == "claim_relation":
            return json.dumps({"relation": "none", "confidence": 0.9})
        return json.dumps({"relation": "neutral", "confidence": 0.9})

    asked: dict[str, Any] = {
        "coherence": True, "claim_window": window, "method": "verbalized", "variant": "FR2",
    }  # fmt: skip
    model = AnsweringModel(answer)
    planned: Any = assess([graph()], model=model, dry_run=True, **asked)["calls"]
    assert model.asked == []
    cost: Any = assess([graph()], model=model, **asked)["cost"]
    calls = planned.set_index("stage")["calls"]
    assert calls["claim relations"] == cost.set_index("stage")["calls"]["claim relations"]
    assert calls["claim relations"] == (3 if window is None else 2)
    # What a response says itself of its claims is taken as it is.
    given = graph("g", EXCLUSIVE)
    of_given: Any = assess([given], model=model, dry_run=True, **asked)["calls"]
    assert of_given.set_index("stage")["calls"]["claim relations"] == 0
    judged: Any = assess([given], model=model, **asked)
    assert "claim relations" not in set(judged["cost"]["stage"])
    assert judged["conflicts"]["relation"].tolist() == ["exclusive"]


@pytest.mark.parametrize("evidence", [False, True])
def test_pairs_are_asked_by_what_their_conflict_would_cost(evidence: bool) -> None:
    texts = (
        "The bridge opened in 1890.",
        "The bridge did not open in 1890.",
        "The bridge did not carry trains in 1890.",
    )
    atoms = tuple(Atom(f"a{at}", text) for at, text in enumerate(texts, 1))
    # A passage is against the second claim.
    against = Relation("c1", "a2", RelationKind.CONTRADICTION, 0.99)
    whole = FactGraph("r", atoms, (Context("c1", "It opened in 1890."),), (against,))
    settings = CoherenceSettings(evidence=evidence, prior=0.8)
    pairs = claim_pairs(whole)
    values = values_of_pairs(whole, pairs, settings)
    q = lexical_shares(pairs)[:, :, 1].max(axis=1)
    for number, (a, b) in enumerate(pairs):
        # The readout of a graph in which it is the only conflict, as sure as its words say.
        only = Relation(a.id, b.id, RelationKind.CONTRADICTION, float(q[number]))
        seen = replace(whole, relations=(against, only) if evidence else (only,))
        seen = seen.with_parameters()
        (cost,) = readouts(seen.compiled, prior=0.8).costs
        assert values[number] == pytest.approx(cost, abs=1e-12)
    asked: list[set[str]] = []

    def answer(request: Request) -> str:
        text = request.messages[-1].content
        asked.append({atom.id for atom in atoms if f"\n{atom.text}\n" in text.split("<first>")[-1]})
        return json.dumps({"relation": "none", "confidence": 0.9})

    coherence(
        [whole], model=AnsweringModel(answer), most=1, by="value", prior=0.8, evidence=evidence
    )
    first, second = pairs[int(values.argmax())]
    assert asked == [{first.id, second.id}]
    # Where evidence is against the second claim, its conflicts cost little.
    assert ("a2" in asked[0]) is not evidence


def test_an_order_of_pairs_needs_their_number() -> None:
    refused("--by value|`by` value", coherence, [graph()], relations="lexical", by="value")


def test_agreement_without_any_relation_is_said_to_say_nothing() -> None:
    asked = coherence("demonstration", relations="given")
    assert "No graph has relations between claims" in str(asked)
    assert "No graph has relations" not in str(coherence("demonstration", relations="lexical"))
