"""Pairs of texts whose relation is known, from FACTOR's true and false continuations."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.assess.relation_quality import LabelledPair
from factormodels.claims import RelationKind
from factormodels.extraction.relation_models.base import TextPair
from factormodels.fact_graph import FactGraph


def continuation_pairs(graphs: Iterable[FactGraph]) -> list[LabelledPair]:
    """Return the pairs of texts with relations that FACTOR implies.

    The text with its true continuation entails that continuation and contradicts the false ones.
    FactReasoner does not say how it made its pairs. Graphs without a text, or without exactly one
    true continuation, give none.
    """
    found = []
    for graph in graphs:
        true = [atom for atom in graph.atoms if atom.label]
        if not graph.query or len(true) != 1:
            continue
        premise = f"{graph.query.rstrip()} {true[0].text}"
        found += [
            LabelledPair(
                TextPair(premise, atom.text, "text", atom.id),
                RelationKind.ENTAILMENT if atom.label else RelationKind.CONTRADICTION,
                graph.id,
            )
            for atom in graph.atoms
            if atom.label is not None
        ]
    return found
