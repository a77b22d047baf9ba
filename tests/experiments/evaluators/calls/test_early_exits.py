"""Responses that a rule ends before their relations are asked."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd

from experiments import assess
from experiments.evaluators.calls.early_exits import EXIT_KEY, early_exit, unless
from factormodels import Atom, Context, FactGraph
from factormodels.extraction.pipeline import relation_stage
from factormodels.extraction.stages.relations import METADATA_KEY
from tests.experiments.evaluators.calls.test_few_calls import Scripted
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


def test_a_response_that_a_rule_ends_is_asked_nothing() -> None:
    declining = replace(GRAPH, id="d", response="I am sorry, but I cannot help with that.")
    assessed = assess([GRAPH, declining], early_exit="declines")
    exits = {graph.id: graph.metadata.get(EXIT_KEY) for graph in assessed.graphs}
    assert exits == {"r": None, "d": "it declines to answer"}
    ended = next(graph for graph in assessed.graphs if graph.id == "d")
    assert not ended.relations
    assert ended.metadata[METADATA_KEY]["asked"] == 0
    assert not assessed.incomplete
    sentence = "1 response: relations were not asked for (it declines to answer)"
    assert any(sentence in each for each in assessed.sentences)
    # Nothing was asked about its claims, so that nothing is known of them.
    claims: Any = assessed["claims"]
    ended_rows = claims[claims["response"] == "d"]
    assert ended_rows["p"].isna().all()
    assert set(ended_rows["verdict"]) == {"missing"}


def test_the_sentences_of_a_refusal_are_no_claims_and_count_in_no_measure() -> None:
    refusal = FactGraph("d", (), response="I am sorry, but I cannot answer that question.")
    answer = FactGraph("r", (), response=GRAPH.response)
    documents = ["The bridge opened in 1890, to trains."]
    alone, both = (assess(graphs, documents=documents) for graphs in ([answer], [answer, refusal]))
    assert [len(graph.atoms) for graph in both.graphs] == [2, 0]
    assert "1 response declines to answer: without claims" in " ".join(both.sentences)
    assert not both.incomplete
    pd.testing.assert_frame_equal(alone["summary"], both["summary"])
    rows: Any = both["responses"].set_index("response")
    # Neither supported nor false.
    assert math.isnan(rows.loc["d", "FR2"])
    # Claims that somebody gave are judged.
    given = replace(GRAPH, id="d", response=refusal.response)
    assert len(assess([given]).graphs[0].atoms) == 2


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

    assessed = assess([GRAPH], early_exit=rule)
    assert "it is about a bridge" in str(assessed)
    assert [context.id for context in seen[0].contexts] == ["c1", "c2"]
    model = Scripted()
    inner = relation_stage(model, "FR2")
    unless(lambda _: "", inner, "FR2", 0.5)(GRAPH)
    assert len(model.asked) == 4
    wrong: Any = lambda _: True  # noqa: E731
    refused("early exit gave True of 'r'", unless(wrong, inner, "FR2", 0.5), GRAPH)


def test_an_unknown_rule_is_refused() -> None:
    refused("did you mean 'declines'", assess, [GRAPH], early_exit="decline")
