"""The summarizer: reduces each context to the parts that bear on its claims, or drops it.

Source: FactReasoner's release, whose summarizer also multiplies the prior of the context by its
confidence.
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
from factormodels.samples import is_sample
from factormodels.variants import merge_duplicate_contexts

METADATA_KEY = SUMMARIES_KEY


def summarize_contexts(
    graph: FactGraph, model: LanguageModel, *, log_probabilities: bool = True
) -> FactGraph:
    """Return the graph with the contexts' summaries in place of their snippets and texts.

    A context is summarized for the claims that it was retrieved for, or for the question if it was
    retrieved for none, with one call per context. Its prior is multiplied by the confidence.
    Contexts without content on their claims are dropped, equal summaries are merged, and a context
    whose summary failed is kept unchanged, like sampled answers. Relations are dropped.
    `metadata["summaries"]` holds, by id of context, the `confidence` of each summary and the
    original `passages`; the ids of `dropped` contexts; the numbers of stated confidences by the
    reason why log-probabilities gave none (`fallbacks`, as [origin, reason, number], if there are
    any); and the failures, as [context, reason].

    Args:
        graph: atoms and contexts, equal contexts merged.
        model: the language model.
        log_probabilities: whether the confidence is the geometric mean of the probabilities of the
            answer's tokens, if they are usable; otherwise it is the confidence that the model
            states.
    """
    read = [
        context for context in graph.contexts if context.content.strip() and not is_sample(context)
    ]
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
    stated = [("verbalized", answer.fell_back) for answer in answers.values() if answer.fell_back]
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
