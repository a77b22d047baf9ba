"""Page view of a response's evidence and graphs, for assessments and studies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from experiments.evaluators.display.marked_texts import deciding_sentences
from experiments.evaluators.evidence import recorded_context
from experiments.findings.figures.graph_figure import untangled
from experiments.findings.responses import Effect, Evidence, GraphShown
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph

MOST_NODES = 60
MOST_RELATIONS = 200
"""Largest graph that is drawn; larger drawings are illegible."""


class Borne(NamedTuple):
    """A relation between a passage and a claim that several views share.

    Attributes:
        atom: id of the claim.
        context: id of the passage in the response as recorded.
        relation: kind of the relation.
        probability: probability of the relation.
    """

    atom: str
    context: str
    relation: RelationKind
    probability: float


def evidence_of(
    graph: FactGraph, borne: Mapping[Borne, Mapping[int, Effect]], n_views: int
) -> dict[str, tuple[Evidence, ...]]:
    """Evidence of every claim by its id, with the deciding sentence of each passage.

    Args:
        graph: the response.
        borne: effect of the passage on the claim, by relation and number of the view.
        n_views: number of views.
    """
    places = {context: number for number, context in enumerate(graph.context_ids)}
    texts = {atom.id: atom.text for atom in graph.atoms}
    # Views may differ only in the probability, so find the sentence once.
    asked = [*dict.fromkeys((bearing.context, bearing.atom, bearing.relation) for bearing in borne)]
    passages = [
        (graph.contexts[places[context]].content, texts[atom], relation)
        for context, atom, relation in asked
    ]
    decides = dict(zip(asked, deciding_sentences(passages), strict=True))
    evidence: dict[str, list[Evidence]] = {}
    for bearing, effects in borne.items():
        evidence.setdefault(bearing.atom, []).append(
            Evidence(
                places[bearing.context],
                bearing.relation,
                bearing.probability,
                decides[bearing.context, bearing.atom, bearing.relation],
                tuple(effects.get(view) for view in range(n_views)),
            )
        )
    return {atom: tuple(items) for atom, items in evidence.items()}


def n_relations(graph: FactGraph, seen: FactGraph) -> tuple[int, ...]:
    """Number of relations of each passage of a response in a view."""
    counts: Counter[str] = Counter()
    contexts = set(seen.context_ids)
    for relation in seen.relations:
        if relation.kind is RelationKind.NEUTRAL:
            continue
        ends = (relation.source, relation.target)
        counts.update(
            recorded_context(end, other, graph)
            for end, other in (ends, ends[::-1])
            if end in contexts
        )
    return tuple(counts[name] for name in graph.context_ids)


def graphs_shown(graph: FactGraph, seen: Sequence[FactGraph | None]) -> Iterator[GraphShown]:
    """Yield the distinct graphs of a response's views, without graphs that are too large.

    Args:
        graph: the response as recorded.
        seen: its views; None if unknown.
    """
    views: dict[GraphShown, list[int]] = {}
    for number, view in enumerate(seen):
        if view is not None and (drawn := _graph_shown(graph, view)) is not None:
            views.setdefault(drawn, []).append(number)
    for drawn, numbers in views.items():
        yield drawn._replace(views=tuple(numbers))


def _graph_shown(graph: FactGraph, seen: FactGraph) -> GraphShown | None:
    relations = [
        relation for relation in seen.relations if relation.kind is not RelationKind.NEUTRAL
    ]
    n_nodes = len(seen.atoms) + len(seen.contexts)
    if not seen.atoms or n_nodes > MOST_NODES or len(relations) > MOST_RELATIONS:
        return None
    contexts = untangled(seen)
    nodes = {name: number for number, name in enumerate(seen.atom_ids)}
    nodes |= {context.id: -1 - number for number, context in enumerate(contexts)}
    recorded = {name: number for number, name in enumerate(graph.context_ids)}
    return GraphShown(
        views=(),
        passages=tuple(
            # FR1 has a copy of a passage per claim.
            recorded[recorded_context(context.id, (context.retrieved_for or ("",))[0], graph)]
            for context in contexts
        ),
        relations=tuple(
            (nodes[relation.source], nodes[relation.target], relation.kind, relation.probability)
            for relation in relations
        ),
    )
