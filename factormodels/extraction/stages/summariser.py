"""The summariser: each context cut down to what bears on its claims, or dropped.

Source: FactReasoner's release, whose summariser does so and multiplies the prior of the context by
its confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from factormodels.claims import Context
from factormodels.extraction.language_model import Completion, LanguageModel
from factormodels.extraction.language_model.answers import read_confidence
from factormodels.extraction.language_model.log_probabilities import (
    Unusable,
    spelled_tokens,
    token_log_probabilities,
)
from factormodels.extraction.relation_models.base import counted_fallbacks
from factormodels.extraction.stages.asking import Question, ask_each
from factormodels.fact_graph import FactGraph
from factormodels.variants import merge_duplicate_contexts

STAGE = "summariser"
PROMPT = "summary"
METADATA_KEY = "summaries"

_TOKENS = 600


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """What a language model made of a passage.

    Attributes:
        text: what bears on the claims; empty where nothing does.
        confidence: how sure the model is of it, in [0, 1].
        fell_back: why the confidence is not that of the tokens, where it was to be.
    """

    text: str
    confidence: float
    fell_back: str = ""


def summarise_contexts(
    graph: FactGraph, model: LanguageModel, *, log_probabilities: bool = True
) -> FactGraph:
    """Graph with the contexts' summaries in place of their snippets and texts.

    A context is read for the claims it was retrieved for, or for the question where it was
    retrieved for none, one call each. Its prior is multiplied by the confidence; contexts without
    anything on their claims are dropped, and equal summaries merged. A context whose summary
    failed stays as it is. Relations are dropped. `metadata["summaries"]` holds the `confidence` of
    each summary and the `passages` that were read, by id of context, the ids of those `dropped`,
    the number of stated confidences by why log-probabilities gave none (`fallbacks`, as [origin,
    reason, number], where there are any), and the failures, as [context, reason].

    Args:
        graph: atoms and contexts, equal contexts merged.
        model: the language model.
        log_probabilities: whether the confidence is the geometric mean of the probabilities of the
            answer's tokens, where they can be used; otherwise it is what the model states.
    """
    read = [context for context in graph.contexts if context.content.strip()]
    questions = {context.id: _question(graph, context, log_probabilities) for context in read}
    answers, failures = ask_each(model, PROMPT, STAGE, questions)
    kept: list[Context] = []
    confidence: dict[str, float] = {}
    passages: dict[str, str] = {}
    dropped: list[str] = []
    for context in graph.contexts:
        answer = answers.get(context.id)
        if answer is None:
            kept.append(context)
        elif not answer.text:
            dropped.append(context.id)
        else:
            confidence[context.id] = answer.confidence
            passages[context.id] = context.content
            prior = context.prior * answer.confidence
            kept.append(replace(context, text=answer.text, snippet="", key=None, prior=prior))
    stated = [("verbalised", answer.fell_back) for answer in answers.values() if answer.fell_back]
    facts = {
        "calls": len(read),
        "confidence": confidence,
        "passages": passages,
        "dropped": dropped,
        **counted_fallbacks(stated),
        "failures": [list(failure) for failure in failures],
    }
    merged = merge_duplicate_contexts(replace(graph, contexts=tuple(kept), relations=()))
    return replace(merged, metadata={**graph.metadata, METADATA_KEY: facts})


def _question(
    graph: FactGraph, context: Context, log_probabilities: bool
) -> Question[ContextSummary]:
    claims = [atom.text for atom in graph.atoms if atom.id in context.retrieved_for]
    fields = {
        "claims": "\n".join(claims or [graph.query or graph.topic]),
        "title": context.title,
        "passage": context.content,
    }
    if not log_probabilities:
        return Question(fields, _read, _TOKENS)
    return Question(fields, _read, _TOKENS, weighed=_weighed)


def _read(value: Any) -> ContextSummary | None:
    if not isinstance(value, dict) or "summary" not in value:
        return None
    text, stated = value["summary"], read_confidence(value.get("confidence"))
    if stated is None or not (text is None or isinstance(text, str)):
        return None
    words = " ".join((text or "").split())
    # What a model writes for null as often as not.
    return ContextSummary("" if words.strip(".").casefold() in ("none", "null") else words, stated)


def _weighed(summary: ContextSummary, answer: Completion) -> ContextSummary:
    """Summary with the confidence that the tokens show; as stated where they cannot be used."""
    tokens = spelled_tokens(answer)
    values = (
        tokens
        if isinstance(tokens, Unusable)
        else token_log_probabilities(tokens, 0, len(answer.text))
    )
    if isinstance(values, Unusable):
        return replace(summary, fell_back=str(values))
    return replace(summary, confidence=math.exp(math.fsum(values) / len(values)))
