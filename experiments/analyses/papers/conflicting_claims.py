"""Claims with evidence on both sides, as FactReasoner's Conflicts takes them from ConflictBank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from factormodels.claims import Relation, RelationKind
from factormodels.fact_graph import FactGraph


def conflicting_claims(graphs: Iterable[FactGraph]) -> tuple[FactGraph, ...]:
    """True claims with evidence on both sides, each a response with two passages.

    Of the passages that entail a claim the most probable is kept, and of those that contradict it,
    with the relation between the two if there is one.
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
