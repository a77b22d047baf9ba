"""The summarizer: what it asks, and what becomes of contexts."""

from __future__ import annotations

import json
import math

import pytest

from factormodels import Atom, Context, FactGraph
from factormodels.extraction.language_model import Completion, Failure, Request, Token
from factormodels.extraction.pipeline import run_stages, summary_stage
from factormodels.extraction.stages.summarizer import summarize_contexts
from tests.factormodels.extraction.models import AnsweringModel

GRAPH = FactGraph(
    "g",
    (Atom("a1", "It opened in 1890."), Atom("a2", "It is red.")),
    (
        Context("c1", "Long text on the opening.", title="Bridge", retrieved_for=("a1",)),
        Context("c2", "", snippet="Only a snippet.", retrieved_for=("a1", "a2"), prior=0.8),
        Context("c3", "Of ferries.", retrieved_for=("a2",)),
        Context("c4", "Of the question.", snippet="Found for it."),
        Context("c5", "Unreadable.", retrieved_for=("a1",)),
        Context("c6", "", title="Nothing in it"),
    ),
    query="When did the bridge open?",
)

SAID = {
    "Long text": ("It opened on 4 March 1890.", 0.9),
    "Only a snippet": ("It is  red and\nold.", 0.5),
    "Of ferries": (None, 0.95),
    "Found for it": ("None.", 0.9),
}


def answer(request: Request) -> str | Completion | Failure:
    question = request.messages[-1].content
    for part, (summary, confidence) in SAID.items():
        if part in question:
            return json.dumps({"summary": summary, "confidence": confidence})
    return Failure("no answer in time")


def test_contexts_become_summaries_and_confidence_scales_their_priors() -> None:
    model = AnsweringModel(answer)
    staged = run_stages(GRAPH, [summary_stage(model, log_probabilities=False)])
    assert [(c.id, c.content, c.prior) for c in staged.contexts] == [
        ("c1", "It opened on 4 March 1890.", pytest.approx(0.99 * 0.9)),
        ("c2", "It is red and old.", pytest.approx(0.8 * 0.5)),
        # Of what failed nothing is known: it stays.
        ("c5", "Unreadable.", 0.99),
        ("c6", "", 0.99),
    ]
    assert staged.contexts[0].retrieved_for == ("a1",)
    facts = staged.metadata["summaries"]
    assert facts["dropped"] == ["c3", "c4"]
    assert facts["failures"] == [["c5", "no answer in time"]]
    assert facts["confidence"] == {"c1": 0.9, "c2": 0.5}
    assert facts["passages"] == {"c1": "Long text on the opening.", "c2": "Only a snippet."}
    assert facts["calls"] == 5


def test_a_context_is_read_for_its_claims_or_for_the_question() -> None:
    model = AnsweringModel(answer)
    summarize_contexts(GRAPH, model)
    first, second, _, fourth, _ = (request.messages[-1].content for request in model.asked)
    assert "It opened in 1890." in first
    assert "It is red." not in first
    assert "Bridge" in first
    assert "It opened in 1890.\nIt is red." in second
    assert "When did the bridge open?" in fourth
    assert "It is red." not in fourth
    assert "Found for it.\n\nOf the question." in fourth


def test_the_confidence_is_the_mean_probability_of_the_tokens_where_these_are_known() -> None:
    text = json.dumps({"summary": "It is red.", "confidence": 1.0})
    tokens = (Token(text[:9], math.log(0.5)), Token(text[9:], math.log(0.08)))
    model = AnsweringModel(lambda _: Completion(text, tokens))
    summarized = summarize_contexts(GRAPH, model)
    assert model.asked[0].top_logprobs == 1
    # All summaries are equal, and so one context: with the first one's prior.
    (red, empty) = summarized.contexts
    assert red.prior == pytest.approx(0.99 * math.sqrt(0.5 * 0.08))
    assert red.retrieved_for == ("a1", "a2")
    assert empty.id == "c6"
    assert "fallbacks" not in summarized.metadata["summaries"]


def test_log_probabilities_of_another_text_are_not_believed() -> None:
    text = json.dumps({"summary": "It is red.", "confidence": 0.5})
    tokens = (Token("a", math.log(0.5)), Token("b", math.log(0.08)))
    summarized = summarize_contexts(GRAPH, AnsweringModel(lambda _: Completion(text, tokens)))
    assert summarized.contexts[0].prior == pytest.approx(0.99 * 0.5)
    assert summarized.metadata["summaries"]["fallbacks"] == [
        ["verbalized", "the tokens do not spell the answer", 5]
    ]
