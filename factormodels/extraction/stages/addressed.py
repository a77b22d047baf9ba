"""Passages that address their reader, and their relations without the sentences that do so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from factormodels.claims import Context, Relation, RelationKind
from factormodels.extraction.addressed import addressing_sentences, without_sentences
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import Judgment, Missing, RelationModel
from factormodels.extraction.stages.assessors import assess, get_assessor
from factormodels.extraction.stages.relations import (
    METADATA_KEY as RELATIONS_KEY,
)
from factormodels.extraction.stages.relations import (
    ask,
    one_per_pair,
    relation_of,
    relation_pairs,
)
from factormodels.fact_graph import FactGraph

METADATA_KEY = "addressed"
"""Metadata key of the passages that address their reader, and of the relations without these
sentences."""


def marked_contexts(graph: FactGraph) -> dict[str, tuple[str, ...]]:
    """Return the sentences that address the reader, by id of their passage."""
    marked = {}
    for context in graph.contexts:
        if sentences := addressing_sentences(context.content):
            marked[context.id] = sentences
    return marked


def without_address(context: Context, sentences: Sequence[str]) -> Context:
    """Return a passage without some of its sentences."""
    return replace(
        context,
        text=without_sentences(context.text, tuple(sentences)),
        snippet=without_sentences(context.snippet, tuple(sentences)),
    )


def with_addressed(
    graph: FactGraph, model: RelationModel | None, variant: str, *, least: float, unite: bool = True
) -> FactGraph:
    """Record the passages that address their reader, and their relations without these sentences.

    `metadata["addressed"]` holds `contexts`, the sentences by id of passage. If a model is given,
    it also holds `relations`, the relations of these passages without the sentences, as [source,
    target, kind, probability, distribution], and the numbers of pairs `asked` and `missing`. A
    graph without such passages is returned unchanged.

    Args:
        graph: the graph with its relations.
        model: the relation model that judges the pairs again; None judges none.
        variant: the variant whose relations are needed.
        least: least probability of an entailment or contradiction that is kept.
        unite: whether to unite the two orders of a pair of passages.
    """
    if RELATIONS_KEY not in graph.metadata or not (marked := marked_contexts(graph)):
        return graph
    facts: dict[str, Any] = {"contexts": {id: list(texts) for id, texts in marked.items()}}
    if model is not None:
        cut = replace(
            graph,
            contexts=tuple(
                without_address(context, marked[context.id]) if context.id in marked else context
                for context in graph.contexts
            ),
        )
        pairs = [
            pair
            for pair in relation_pairs(cut, variant)
            if marked.keys() & {pair.source, pair.target}
        ]
        answers = ask(model, pairs)
        relations = [
            relation_of(pair, answer, least)
            for pair, answer in zip(pairs, answers, strict=True)
            if isinstance(answer, Judgment)
        ]
        if unite:
            relations = [*one_per_pair(relations, set(graph.context_ids))]
        facts |= {
            "asked": len(pairs),
            # A passage that consists only of such sentences has no text left.
            "missing": sum(
                isinstance(answer, Missing) and bool(pair.premise.strip())
                for pair, answer in zip(pairs, answers, strict=True)
            ),
            "relations": [_plain(relation) for relation in relations],
        }
    return replace(graph, metadata={**graph.metadata, METADATA_KEY: facts})


def with_addressed_verdicts(
    graph: FactGraph, assessors: Sequence[str], model: LanguageModel
) -> FactGraph:
    """Record assessors' verdicts on passages without the sentences that address the reader.

    `metadata["addressed"]` then holds `verdicts`: by assessor and claim, P(true), or None for a
    label that excludes the claim. Only claims with such a passage are judged again, and only by
    assessors that read the graph's passages rather than search. A graph without such passages is
    returned unchanged.

    Args:
        graph: a graph returned by `with_addressed`.
        assessors: names of assessors.
        model: the language model that judges.

    Raises:
        InputError: for an unknown assessor.
    """
    facts: Mapping[str, Any] = graph.metadata.get(METADATA_KEY, {})
    marked = facts.get("contexts", {})
    shown = {
        atom for context in graph.contexts if context.id in marked for atom in context.retrieved_for
    }
    asked = tuple(atom for atom in graph.atoms if atom.id in shown)
    reading = [name for name in assessors if not get_assessor(name).searches]
    if not asked or not reading:
        return graph
    contexts = tuple(
        without_address(context, marked[context.id]) if context.id in marked else context
        for context in graph.contexts
    )
    cut = replace(graph, atoms=asked, contexts=contexts, relations=())
    verdicts = {
        name: {
            verdict.atom: verdict.p_true
            for verdict in assess(cut, name, model)
            if not verdict.missing
        }
        for name in reading
    }
    return replace(
        graph, metadata={**graph.metadata, METADATA_KEY: {**facts, "verdicts": verdicts}}
    )


def graph_without_address(graph: FactGraph) -> FactGraph | None:
    """Return the graph with the relations of its passages without these sentences.

    Return None if no passage addresses its reader, or no pair was judged again.
    """
    facts: Mapping[str, Any] = graph.metadata.get(METADATA_KEY, {})
    if "relations" not in facts:
        return None
    marked = facts["contexts"].keys()
    kept = [r for r in graph.relations if not marked & {r.source, r.target}]
    again = [_relation(row) for row in facts["relations"]]
    return replace(graph, relations=(*kept, *again))


def with_corrected_address(
    graph: FactGraph, corrected: Callable[[FactGraph], FactGraph]
) -> FactGraph:
    """Return a graph whose recorded relations of `with_addressed` are corrected like the others.

    Args:
        graph: the graph; its own relations are unchanged.
        corrected: returns a graph with corrected relations.
    """
    facts: Mapping[str, Any] = graph.metadata.get(METADATA_KEY, {})
    if not facts.get("relations"):
        return graph
    alone = replace(graph, relations=tuple(_relation(row) for row in facts["relations"]))
    rows = [_plain(relation) for relation in corrected(alone).relations]
    return replace(graph, metadata={**graph.metadata, METADATA_KEY: {**facts, "relations": rows}})


def _plain(relation: Relation) -> list[Any]:
    shares = relation.distribution
    return [
        *(relation.source, relation.target, str(relation.kind), relation.probability),
        None if shares is None else list(shares),
    ]


def _relation(row: Sequence[Any]) -> Relation:
    source, target, kind, probability, shares = row
    return Relation(
        source, target, RelationKind(kind), probability, None if shares is None else tuple(shares)
    )
