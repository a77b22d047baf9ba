"""Relations between atoms in a fact graph, so that repetition adds no evidence.

FR1, FR2 and FR3 have no relations between atoms: apply the view first, then relate its atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from factormodels.claims import Context, Relation, RelationKind
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.fact_graph import FactGraph
from factormodels.selection.entailment import Entailments, pairwise_entailments
from factormodels.selection.subclaims import subclaims_of
from factormodels.variants import COPY_SEPARATOR, normalized_text


@dataclass(frozen=True)
class RelatedAtoms:
    """A fact graph with relations between its atoms.

    Attributes:
        graph: the graph with atom-atom relations.
        representative: for each atom, the index of the first atom with the same meaning; its own
            index if there is none.
        dropped: number of relations of evidence that would have counted twice.
        missing: number of missing judgments of the relation model.
    """

    graph: FactGraph
    representative: tuple[int, ...]
    dropped: int
    missing: int


def relate_atoms(graph: FactGraph, relations: RelationModel) -> RelatedAtoms:
    """Return a graph with the entailments between its atoms.

    An atom with the same meaning as an earlier one (each entails the other) is joined to the first
    such atom by an equivalence, with the smaller of the two probabilities; it has no other
    relations to atoms. Between the remaining atoms, each entailment is a relation.

    A passage that is related to an atom bears on its repetitions only through that atom: their own
    relations to the passage are dropped, since the passage would otherwise count once per
    repetition. A repetition without other relations is a leaf with prior 1/2, which adds a constant
    to the partition function and leaves all other posteriors unchanged.

    Args:
        graph: the response, in the view used for inference.
        relations: predicts entailments between atoms.

    Raises:
        InputError: if an atom has no text.
    """
    entailments = pairwise_entailments(subclaims_of(graph), relations)
    representative = _representatives(entailments)
    between = _between_atoms(graph, entailments, representative)
    joined = {frozenset((r.source, r.target)) for r in graph.relations}
    fresh = [r for r in between if frozenset((r.source, r.target)) not in joined]
    kept = _without_repeated(graph, representative)
    return RelatedAtoms(
        graph=replace(graph, relations=(*kept, *fresh)),
        representative=representative,
        dropped=len(graph.relations) - len(kept),
        missing=entailments.missing,
    )


def _representatives(entailments: Entailments) -> tuple[int, ...]:
    same = entailments.decided & entailments.decided.T
    first: list[int] = []
    for atom in range(len(same)):
        earlier = (k for k in range(atom) if first[k] == k and same[k, atom])
        first.append(next(earlier, atom))
    return tuple(first)


def _between_atoms(
    graph: FactGraph, entailments: Entailments, representative: Sequence[int]
) -> list[Relation]:
    ids, p = graph.atom_ids, entailments.probabilities
    relations = []
    for j, first in enumerate(representative):
        if first != j:
            both = min(float(p[first, j]), float(p[j, first]))
            relations.append(Relation(ids[first], ids[j], RelationKind.EQUIVALENCE, both))
            continue
        for i in range(len(ids)):
            if i != j and representative[i] == i and entailments.decided[i, j]:
                relations.append(Relation(ids[i], ids[j], RelationKind.ENTAILMENT, float(p[i, j])))
    return relations


def _without_repeated(graph: FactGraph, representative: Sequence[int]) -> tuple[Relation, ...]:
    ids = graph.atom_ids
    first = {ids[atom]: ids[owner] for atom, owner in enumerate(representative)}
    passage = {context.id: _passage(context) for context in graph.contexts}
    heard: set[tuple[str, str]] = set()
    kept = []
    # The representative's own relation to a passage precedes those of its repetitions.
    ordered = sorted(graph.relations, key=lambda r: not any(first.get(e) == e for e in _ends(r)))
    for relation in ordered:
        context = next((end for end in _ends(relation) if end in passage), None)
        atom = next((end for end in _ends(relation) if end in first), None)
        if context is not None and atom is not None:
            testimony = (passage[context], first[atom])
            if first[atom] != atom and testimony in heard:
                continue
            heard.add(testimony)
        kept.append(relation)
    position_of = {(r.source, r.target): k for k, r in enumerate(graph.relations)}
    return tuple(sorted(kept, key=lambda r: position_of[r.source, r.target]))


def _ends(relation: Relation) -> tuple[str, str]:
    return relation.source, relation.target


def _passage(context: Context) -> str:
    """Return the identity of a passage: FR1's copies of a context are the same passage."""
    identity = context.key or normalized_text(context.text or context.snippet)
    return identity or context.id.partition(COPY_SEPARATOR)[0]
