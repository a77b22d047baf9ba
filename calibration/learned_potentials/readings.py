"""Readings: graphs as potentials read them, relations as support and claims joined by causes.

Graphs of FR1 are forests of stars, in which claims are independent. What joins claims are contexts
that they share (FR2, FR3), or a hidden cause of each sentence and of each response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibration.learned_potentials.columns import RESPONSE, SENTENCE, stated
from factormodels.claims import Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph

AGREEMENT = {SENTENCE: 0.7, RESPONSE: 0.65}
"""Levels of causes, from the finest, and the probability with which a cause and what it causes
agree before anything is learned."""


def as_support(graph: FactGraph, least: float) -> FactGraph:
    """Relations of contexts as entailments with the probability that they are one.

    Args:
        graph: the response.
        least: relations of contexts with a smaller probability are left out.
    """
    contexts, kept = set(graph.context_ids), []
    for relation in graph.relations:
        if relation.source not in contexts:
            kept.append(relation)
        elif (p := stated(relation)[0]) >= least:
            kept.append(Relation(relation.source, relation.target, RelationKind.ENTAILMENT, p))
    return replace(graph, relations=tuple(kept))


def with_causes(graph: FactGraph, levels: Sequence[str]) -> FactGraph:
    """The graph with a hidden cause of each group of claims, and of causes of the level below.

    A forest of stars stays a forest. Causes are even, and equivalent to what they cause with a
    probability that is learned: 1/2 says that what they join has nothing in common. They follow
    the graph's own contexts, and their relations its own.

    Args:
        graph: the response.
        levels: some of `AGREEMENT`, from the finest.
    """
    if not levels:
        return graph
    below = {atom.id: atom.sentence for atom in graph.atoms}
    causes: list[Context] = []
    joins: list[Relation] = []
    for level in levels:
        above = {}
        for name, sentence in below.items():
            cause = level if level == RESPONSE else f"{level} {sentence}"
            above[cause] = sentence
            joins.append(Relation(cause, name, RelationKind.EQUIVALENCE, AGREEMENT[level]))
        causes += [Context(cause, prior=0.5) for cause in above]
        below = above
    return replace(graph, contexts=(*graph.contexts, *causes), relations=(*graph.relations, *joins))
