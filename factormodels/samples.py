"""Sampled answers: other answers of a language model to the question of a response, as evidence.

A sampled answer is a context of the kind "sample" that concerns every claim of its response.
Answers of a model agree on facts that it knows, and differ in details that it invents.

Source: Manakul et al. 2023, "SelfCheckGPT", section 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import count

from factormodels.claims import SAMPLE_PRIOR, Context, ContextKind
from factormodels.fact_graph import FactGraph


def sample_contexts(
    texts: Iterable[str], retrieved_for: Iterable[str] = (), taken: Collection[str] = ()
) -> tuple[Context, ...]:
    """Return sampled answers as contexts s1, s2, ...; empty answers are left out.

    Args:
        texts: the answers.
        retrieved_for: ids of all atoms of the response.
        taken: ids of other parts of the response.
    """
    names = (name for number in count(1) if (name := f"s{number}") not in taken)
    claims = tuple(retrieved_for)
    return tuple(
        Context(
            next(names),
            text.strip(),
            prior=SAMPLE_PRIOR,
            retrieved_for=claims,
            kind=ContextKind.SAMPLE,
        )
        for text in texts
        if text.strip()
    )


def is_sample(context: Context) -> bool:
    """Return whether a context is a sampled answer."""
    return context.kind is ContextKind.SAMPLE


def with_samples(graph: FactGraph, texts: Iterable[str] = ()) -> FactGraph:
    """Return the graph with further sampled answers, all retrieved for all of its claims.

    Args:
        graph: a response.
        texts: the further answers.
    """
    contexts = [
        replace(context, retrieved_for=graph.atom_ids) if is_sample(context) else context
        for context in graph.contexts
    ]
    taken = {*graph.atom_ids, *graph.context_ids}
    more = sample_contexts(texts, graph.atom_ids, taken)
    return replace(graph, contexts=(*contexts, *more))


def without_samples(graph: FactGraph) -> FactGraph:
    """Return the graph without its sampled answers and their relations."""
    return _without(graph, graph.sample_ids)


def samples_alone(graph: FactGraph) -> FactGraph:
    """Return the graph without its passages and their relations."""
    return _without(graph, frozenset(graph.context_ids) - graph.sample_ids)


def _without(graph: FactGraph, left_out: frozenset[str]) -> FactGraph:
    if not left_out:
        return graph
    return graph.derived(
        tuple(context for context in graph.contexts if context.id not in left_out),
        tuple(
            relation
            for relation in graph.relations
            if left_out.isdisjoint((relation.source, relation.target))
        ),
    )
