"""What is not asked: pairs of texts too little alike, and responses that a rule ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from experiments import assess, coherence
from experiments.evaluators.gate import (
    EXIT_KEY,
    TOO_UNLIKE,
    Gate,
    early_exit,
    likeness_of_pairs,
    unless,
)
from experiments.evaluators.spending import Limits, near_duplicates_merged, spending_stage
from factormodels import Atom, Context, FactGraph, RelationKind, datasets
from factormodels.extraction.pipeline import relation_stage
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.recorded import recorded_in_graphs
from factormodels.extraction.stages.relations import METADATA_KEY, relation_pairs
from inference import infer
from tests.experiments.conftest import invoke
from tests.experiments.evaluators.test_spending import Supporting
from tests.refusals import refused

GRAPH = FactGraph(
    "r",
    (Atom("a1", "The bridge opened in 1890."), Atom("a2", "Cars cross the river Forth.")),
    (
        Context("c1", "The bridge opened in 1890, to trains.", retrieved_for=("a1",)),
        Context("c2", "No word of this.", retrieved_for=("a2",)),
    ),
    response="The bridge opened in 1890. Cars cross the river Forth.",
)


def asked_of(gate: Gate | None, graph: FactGraph = GRAPH, variant: str = "FR2") -> Supporting:
    model = Supporting()
    spending_stage(model, variant, 0.5, "implication", Limits(None, None), {}, gate)(graph)
    return model


def test_words_are_those_of_the_claim_that_the_passage_has() -> None:
    pairs = relation_pairs(GRAPH, "FR2")
    found = likeness_of_pairs("words")(pairs)
    places = {(pair.source, pair.target): own for pair, own in zip(pairs, found, strict=True)}
    assert places["c1", "a1"] == 1.0
    assert places["c2", "a1"] == places["c2", "a2"] == 0.0
    assert likeness_of_pairs("words")([]).shape == (0,)


@pytest.mark.parametrize(
    ("least", "asked"),
    [
        (0.0, {("c1", "a1"), ("c1", "a2"), ("c2", "a1"), ("c2", "a2")}),
        # A passage that was found for a claim is asked about it, however unlike they are.
        (0.9, {("c1", "a1"), ("c2", "a2")}),
    ],
)
def test_own_passages_are_asked_and_others_if_they_are_alike(
    least: float, asked: set[tuple[str, str]]
) -> None:
    assert set(asked_of(Gate(likeness_of_pairs("words"), least)).asked) == asked


def test_pairs_of_two_passages_go_through_the_gate_too() -> None:
    gate = Gate(likeness_of_pairs("words"), 0.5)
    assert not [pair for pair in asked_of(gate, variant="FR3").asked if pair[1].startswith("c")]
    assert len([p for p in asked_of(None, variant="FR3").asked if p[1].startswith("c")]) == 2


def test_what_is_kept_out_is_not_asked_and_its_risk_is_stated() -> None:
    gate = Gate(likeness_of_pairs("words"), 0.9)
    for graph in datasets.load("demonstration").graphs[:2]:
        merged = near_duplicates_merged(graph)
        model = Supporting()
        found = spending_stage(model, "FR2", 0.5, "implication", Limits(None, None), {}, gate)(
            graph
        )
        told = found.metadata[METADATA_KEY]
        let = gate.open_to(merged, relation_pairs(merged, "FR2"))
        assert told["asked"] == len(model.asked) == int(let.sum())
        assert {reason for *_, reason in told["unasked"]} == {TOO_UNLIKE.reason}
        assert len(told["unasked"]) == int((~let).sum())
        # What was never asked may still have changed something.
        assert max(told["risk"].values()) > 0.0


def test_a_gate_of_words_loses_no_verdict_of_the_demonstration() -> None:
    asked = every = 0
    for graph in datasets.load("demonstration").graphs:
        model = recorded_in_graphs([graph], unrecorded=0.99)
        found = []
        for gate in (None, Gate(likeness_of_pairs("words"), 0.4)):
            stage = spending_stage(
                *(model, "FR2", 0.5, "implication", Limits(None, None), {}, gate)
            )
            found.append(stage(graph))
        whole, part = found
        every += whole.metadata[METADATA_KEY]["asked"]
        asked += part.metadata[METADATA_KEY]["asked"]
        kept = [
            {(r.source, r.target) for r in one.relations if r.kind is not RelationKind.NEUTRAL}
            for one in found
        ]
        assert kept[0] == kept[1]
        p = [infer(one.to_factor_graph(), "exact").marginals for one in found]
        for atom in graph.atom_ids:
            assert p[1][atom][1] == pytest.approx(p[0][atom][1], abs=1e-12)
    # docs/guide/few-calls.md says so.
    assert (asked, every) == (972, 2249)


def test_one_order_of_two_passages_moves_no_verdict_of_the_demonstration() -> None:
    graphs = datasets.load("demonstration").graphs
    found = [
        assess(graphs, relations="lexical", variant=["FR3"], orders=orders)
        for orders in ("both", "needed")
    ]
    asked = [sum(g.metadata[METADATA_KEY]["asked"] for g in each.graphs) for each in found]
    p: list[Any] = [each["claims"]["p"] for each in found]
    # docs/guide/variants.md says so.
    assert asked == [5951, 4124]
    assert ((p[0] > 0.5) == (p[1] > 0.5)).all()
    assert 1e-6 < (p[0] - p[1]).abs().max() < 0.0003
    refused("with `gate` pairs of two passages", assess, graphs, orders="needed", gate=0.4)


class _Model:
    """A model of sentence-transformers in the form of one: letters that texts have."""

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        letters = "abcdefghijklmnopqrstuvwxyz"
        rows = [[text.casefold().count(letter) for letter in letters] for text in texts]
        return np.array(rows, dtype=np.float32)


@pytest.fixture
def folder_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = lambda *_, **__: _Model()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    place = tmp_path / "model"
    place.mkdir()
    (place / "weights").write_text("none", "utf-8")
    monkeypatch.chdir(tmp_path)
    return f"meaning:{place}"


def test_meaning_is_the_cosine_of_embeddings_that_are_kept(
    folder_model: str, tmp_path: Path
) -> None:
    alike = likeness_of_pairs(folder_model, tmp_path)
    found = alike([TextPair("aab", "ab"), TextPair("aa", "bb"), TextPair("b", "b", title="a")])
    assert found == pytest.approx([3 / (5 * 2) ** 0.5, 0.0, 0.5**0.5], abs=1e-6)
    assert list((tmp_path / ".embeddings").glob("*.sqlite"))


def test_passages_of_one_meaning_are_merged_by_the_same_embeddings(folder_model: str) -> None:
    # The first two have the same letters and no word in common.
    texts = ("Listen.", "Silent.", "Zebras.")
    contexts = tuple(
        Context(f"c{k}", text, retrieved_for=(f"a{k % 2 + 1}",)) for k, text in enumerate(texts)
    )
    graph = replace(GRAPH, contexts=contexts)
    counts = []
    for likeness in ("words", folder_model):
        found = assess([graph], relations="lexical", gate=0.0, likeness=likeness).graphs[0]
        counts.append([context.id for context in found.contexts])
    assert counts == [["c0", "c1", "c2"], ["c0", "c2"]]
    assert found.contexts[0].retrieved_for == ("a1", "a2")


def test_a_gate_of_meaning_from_the_command_line(folder_model: str) -> None:
    options = ("--relations", f"lexical,gate=0.97,likeness={folder_model}", "--json")
    printed = invoke("assess", "demonstration", "--response", "demo-01-marie-curie", *options)
    found = json.loads(printed.stdout)
    assert any("gate kept out" in said for said in found["findings"])
    graph = datasets.load("at-odds").graphs[0]
    # The two pairs whose letters are most alike, of all of the response.
    related: Any = coherence([graph], relations="lexical", most=2, by=folder_model)
    asked = related.graphs[0].metadata["claim_relations"]["asked"]
    assert asked == 2
    assert any("2 of 55 pairs of claims were asked about" in said for said in related.sentences)


def test_a_dry_run_counts_what_the_gate_lets_through() -> None:
    graphs = datasets.load("demonstration").graphs
    settings: dict[str, Any] = {"model": "openai/test", "dry_run": True}
    calls = [
        assess(graphs, **settings, **more).tables["calls"].frame.set_index("stage")["calls"]
        for more in ({}, {"gate": 0.4})
    ]
    assert calls[1]["relations FR2"] == 972 < calls[0]["relations FR2"]


def test_a_response_that_a_rule_ends_is_asked_nothing() -> None:
    declining = replace(GRAPH, id="d", response="I am sorry, but I cannot help with that.")
    found = assess([GRAPH, declining], early_exit="declines")
    told = {graph.id: graph.metadata.get(EXIT_KEY) for graph in found.graphs}
    assert told == {"r": None, "d": "it declines to answer"}
    ended = next(graph for graph in found.graphs if graph.id == "d")
    assert not ended.relations
    assert ended.metadata[METADATA_KEY]["asked"] == 0
    assert not found.incomplete
    said = "1 response: no relations were asked (it declines to answer)"
    assert any(said in each for each in found.sentences)
    claims: Any = found["claims"]
    assert set(claims.loc[claims["response"] == "d", "p"]) == {0.5}


def test_passages_of_something_else_end_a_response() -> None:
    other = replace(GRAPH, contexts=(replace(GRAPH.contexts[1], retrieved_for=("a1", "a2")),))
    rule = early_exit("unlike")
    assert rule(GRAPH) == ""
    assert rule(other) == rule(replace(GRAPH, contexts=())) != ""


def test_a_function_ends_responses_by_what_they_and_their_passages_say() -> None:
    seen: list[FactGraph] = []

    def rule(graph: FactGraph) -> str:
        seen.append(graph)
        return "it is about a bridge" if "bridge" in graph.response else ""

    found = assess([GRAPH], early_exit=rule)
    assert "it is about a bridge" in str(found)
    assert [context.id for context in seen[0].contexts] == ["c1", "c2"]
    model = Supporting()
    inner = relation_stage(model, "FR2")
    unless(lambda _: "", inner, "FR2", 0.5)(GRAPH)
    assert len(model.asked) == 4
    wrong: Any = lambda _: True  # noqa: E731
    refused("early exit gave True of 'r'", unless(wrong, inner, "FR2", 0.5), GRAPH)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"likeness": "meaning:none"}, "says how .gate. measures"),
        ({"gate": 0.3, "likeness": "letter"}, "the likeness 'letter'"),
        ({"gate": 0.3, "likeness": "meaning:none"}, "none: there is no such folder"),
        ({"gate": 1.5}, "gate"),
        ({"early_exit": "decline"}, "did you mean 'declines'"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], told: str) -> None:
    refused(told, assess, [GRAPH], **settings)


def test_pairs_of_claims_by_an_unknown_rule_are_refused() -> None:
    refused("meaning:FOLDER", coherence, [GRAPH], relations="lexical", most=1, by="worth")
