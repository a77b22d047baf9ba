"""Data that take the place of a paper's where the user has none, made from embedded ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from factormodels.claims import Relation, RelationKind
from factormodels.fact_graph import FactGraph


def retrieved_anew(graph: FactGraph, top_k: int) -> FactGraph:
    """Return a response whose claims have the nearest of all its passages, by BM25.

    A passage that no claim finds is gone; the relations of the others stay.
    """
    from factormodels.extraction.retrieval.chunks import build_index

    index = build_index([f"{context.title} {context.text}" for context in graph.contexts])
    found: dict[str, list[str]] = {context.id: [] for context in graph.contexts}
    for atom in graph.atoms:
        for position in index.best(atom.text, top_k):
            found[graph.contexts[position].id].append(atom.id)
    kept = {*graph.atom_ids, *(name for name, atoms in found.items() if atoms)}
    return replace(
        graph,
        contexts=tuple(
            replace(context, retrieved_for=tuple(found[context.id]))
            for context in graph.contexts
            if context.id in kept
        ),
        relations=tuple(
            relation for relation in graph.relations if {relation.source, relation.target} <= kept
        ),
    )


def conflicting_claims(graphs: Iterable[FactGraph]) -> tuple[FactGraph, ...]:
    """Return the true claims with evidence on both sides, each a response with two passages.

    Of the passages that entail a claim the most probable is kept, and of those that contradict it,
    with the relation between the two if there is one: the form of FactReasoner's Conflicts.
    """
    found = []
    for graph in graphs:
        contexts = {context.id: context for context in graph.contexts}
        for atom in graph.atoms:
            if atom.label is not True:
                continue
            sides = [_strongest(graph, atom.id, kind) for kind in _SIDES]
            ends = [side.source for side in sides if side is not None]
            if len(set(ends)) < len(_SIDES):
                continue
            kept = {atom.id, *ends}
            found.append(
                replace(
                    graph,
                    id=f"{graph.id}-{atom.id}",
                    response=atom.text,
                    atoms=(atom,),
                    contexts=tuple(
                        replace(contexts[end], retrieved_for=(atom.id,)) for end in ends
                    ),
                    relations=tuple(
                        relation
                        for relation in graph.relations
                        if {relation.source, relation.target} <= kept
                    ),
                )
            )
    return tuple(found)


_SIDES = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)


def _strongest(graph: FactGraph, atom: str, kind: RelationKind) -> Relation | None:
    context_ids = set(graph.context_ids)
    sides = [
        relation
        for relation in graph.relations
        if relation.target == atom and relation.kind is kind and relation.source in context_ids
    ]
    return max(sides, key=lambda relation: relation.probability, default=None)


def without_labels(graph: FactGraph) -> FactGraph:
    """Return a response whose claims have no label, as those of the papers' unlabelled data."""
    atoms = tuple(replace(atom, label=None, annotation=None) for atom in graph.atoms)
    return replace(graph, atoms=atoms)
