"""The summarizer: each context cut down to what bears on its claims, or dropped.

Source: FactReasoner's release, whose summarizer does so and multiplies the prior of the context by
its confidence.
"""

from __future__ import annotations

from dataclasses import replace

from factormodels.claims import Context
from factormodels.extraction.asking import table
from factormodels.extraction.asking.loop import ask_each
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.asking.summaries import stated_summary
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import counted_fallbacks
from factormodels.fact_graph import FactGraph
from factormodels.metadata.stage_keys import SUMMARIES_KEY
from factormodels.variants import merge_duplicate_contexts

METADATA_KEY = SUMMARIES_KEY


def summarize_contexts(
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
    stage = table.SUMMARIZER
    if not log_probabilities:
        stage = replace(stage, read=stated_summary, top_logprobs=0)
    questions = {context.id: Question(stage, _fields(graph, context)) for context in read}
    answers, failures = ask_each(model, questions)
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


def _fields(graph: FactGraph, context: Context) -> dict[str, str]:
    claims = [atom.text for atom in graph.atoms if atom.id in context.retrieved_for]
    return {
        "claims": "\n".join(claims or [graph.query or graph.topic]),
        "title": context.title,
        "passage": context.content,
    }
