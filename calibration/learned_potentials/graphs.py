"""Graphs that are learned on: relations as entailments, hidden causes, and what columns they have.

Graphs of FR1 are forests of stars, in which claims are independent. What joins claims are contexts
that they share (FR2, FR3), or a hidden cause of each sentence and of each response.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from calibration.learned_potentials.columns import (
    RESPONSE,
    SENTENCE,
    ClaimTable,
    log_odds_of,
    stated,
)
from calibration.learned_potentials.terms import Potentials, Term, level, probability
from factormodels.claims import Context, Relation, RelationKind
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.fact_graph import FactGraph
from factormodels.variants import COPY_SEPARATOR, variant

EDGES = (0.15, 0.3, 0.45, 0.6, 0.8)
"""Where the six classes of P(entailment) end."""

FINE_EDGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Where the nine classes of the strongest passage of a claim end."""

PENALTY = 3.0
"""Standard deviation of the normal prior on learned numbers: it keeps classes that few labels bear
on near their start, and hardly moves the others."""

_JOINED = {SENTENCE: 0.7, RESPONSE: 0.65}
"""Probability with which a cause and what it causes agree, before anything is learned."""


def entailments(graph: FactGraph, least: float = 0.0) -> FactGraph:
    """Every relation as an entailment with the probability that it is one.

    Args:
        graph: the response.
        least: relations with a smaller probability of entailment are left out.
    """
    told = ((r, (r.distribution or (0.0,))[0]) for r in graph.relations)
    relations = tuple(
        Relation(r.source, r.target, RelationKind.ENTAILMENT, p) for r, p in told if p >= least
    )
    return replace(graph, relations=relations)


def with_causes(graph: FactGraph) -> FactGraph:
    """The graph with a hidden cause of each sentence's claims, and one of all sentences.

    A forest of stars becomes a tree. Causes are even, and equivalent to what they cause with a
    probability that is learned: 1/2 says that claims of a sentence have nothing in common.
    """
    sentences = dict.fromkeys(atom.sentence for atom in graph.atoms)
    causes = [Context(f"{SENTENCE} {each}", prior=0.5) for each in sentences]
    causes.append(Context(RESPONSE, prior=0.5))
    joins = [(f"{SENTENCE} {a.sentence}", a.id, _JOINED[SENTENCE]) for a in graph.atoms]
    joins += [(RESPONSE, f"{SENTENCE} {each}", _JOINED[RESPONSE]) for each in sentences]
    return replace(
        graph,
        contexts=(*graph.contexts, *causes),
        relations=(
            *graph.relations,
            *(Relation(top, below, RelationKind.EQUIVALENCE, p) for top, below, p in joins),
        ),
    )


def six_classes(graph: FactGraph, relation: Relation) -> str:
    """The class of P(entailment), of six; causes, and pairs of contexts, have their own."""
    if cause := _cause(relation):
        return cause
    if relation.target in graph.context_ids:
        return "between"
    return f"p{bisect.bisect(EDGES, relation.probability)}"


def ranked() -> Term:
    """A probability for each of nine classes of a claim's strongest passage, and six of others."""

    def columns(graph: FactGraph) -> list[dict[str, float]]:
        best: dict[str, Relation] = {}
        for relation in graph.relations:
            known = best.get(relation.target)
            if not _cause(relation) and (known is None or relation.probability > known.probability):
                best[relation.target] = relation
        names = []
        for relation in graph.relations:
            name = six_classes(graph, relation)
            if best.get(relation.target) is relation:
                name = f"first{bisect.bisect(FINE_EDGES, relation.probability)}"
            names.append({name: 1.0})
        return names

    return Term(columns, "probability", None)


def classes(encoding: str = DEFAULT_ENCODING) -> Potentials:
    """One prior of claims, and the strength of each of six classes of relations."""
    return Potentials(level("atom_prior"), None, probability(six_classes), encoding)


def view_of(graph: FactGraph, name: str) -> FactGraph:
    """A view whose relations are entailments with the probability that they are one."""
    # Where every context meets every claim, most pairs have nothing to do with each other.
    return entailments(variant(graph, name), 0.0 if name == "FR1" else EDGES[0])


def _cause(relation: Relation) -> str:
    if relation.kind is not RelationKind.EQUIVALENCE:
        return ""
    for name in (RESPONSE, SENTENCE):
        if relation.source.split(" ")[0] == name:
            return name
    return ""


def shared_contexts(graph: FactGraph, view: str) -> FactGraph:
    """The view FR2 of a response with causes, every relation an entailment that says nothing yet.

    Args:
        graph: the response.
        view: "FR1" for relations with passages that were retrieved for the claim alone, "FR2" for
            all that are recorded. Either way claims share a passage as one variable.
    """
    own = _own(graph)
    whole = variant(graph, "FR2")
    relations = tuple(
        Relation(r.source, r.target, RelationKind.ENTAILMENT, 0.5)
        for r in whole.relations
        if view == "FR2" or (r.source, r.target) in own
    )
    return with_causes(replace(whole, relations=relations))


def linear_potentials(graphs: Sequence[FactGraph], table: ClaimTable) -> Potentials:
    """Potentials of `shared_contexts` that are linear in columns.

    Log odds of claims: a level and the table's columns. Of contexts: a level and their reach, the
    share of claims that they were retrieved for. Of relations: their support, its part above a
    knot, reach and contradiction, of the claim's own passages and of others with weights of their
    own, and once more where a passage is the strongest. Strengths of causes are levels.

    Args:
        graphs: the responses as recorded.
        table: columns of their claims.
    """
    spread = table.values.std(axis=0)
    values = (table.values - table.values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    of_claim = {
        each: {"level": 1.0, **dict(zip(table.names, row, strict=True))}
        for each, row in zip(table.ids, values.tolist(), strict=True)
    }
    of_relation: dict[tuple[str, str, str], Mapping[str, float]] = {}
    reaches: dict[tuple[str, str], float] = {}
    for graph in graphs:
        own = _own(graph)
        reach = Counter(source for source, _ in own)
        reaches |= {(graph.id, name): n / len(graph.atoms) for name, n in reach.items()}
        relations = [r for r in variant(graph, "FR2").relations if r.target in graph.atom_ids]
        found = {(r.source, r.target): log_odds_of(stated(r)[0]) for r in relations}
        strongest: dict[tuple[str, bool], str] = {}
        for source, target in sorted(found, key=lambda each: found[each]):
            strongest[target, (source, target) in own] = source
        for r in relations:
            place = r.source, r.target
            kind = "own" if place in own else "other"
            support, against = found[place] / 3, math.log(max(stated(r)[1], 1e-4)) / 3 + 1
            share = reaches.get((graph.id, r.source), 0.0)
            knee = max(found[place] + 2, 0.0) / 3
            row = {kind: 1.0, f"{kind} support": support, f"{kind} support above -2": knee}
            row |= {f"{kind} reach": share, f"{kind} reached support": share * support}
            row[f"{kind} contradiction"] = against
            if strongest[r.target, kind == "own"] == r.source:
                row |= {f"{kind} first": 1.0, f"{kind} first support": support}
                row[f"{kind} first support above -2"] = knee
            of_relation[graph.id, *place] = row

    def claims(graph: FactGraph) -> list[Mapping[str, float]]:
        return [of_claim[graph.id, atom.id] for atom in graph.atoms]

    def contexts(graph: FactGraph) -> list[Mapping[str, float]]:
        names = [context.id for context in graph.contexts]
        return [
            {}
            if name == RESPONSE or name.startswith(f"{SENTENCE} ")
            else {"level": 1.0, "reach": reaches.get((graph.id, name), 0.0)}
            for name in names
        ]

    def relations_of(graph: FactGraph) -> list[Mapping[str, float]]:
        return [
            {cause: 1.0} if (cause := _cause(r)) else of_relation[graph.id, r.source, r.target]
            for r in graph.relations
        ]

    return Potentials(
        Term(claims, "claim", {"level"}),
        Term(contexts, "context", {"level"}),
        Term(relations_of, "relation", {SENTENCE, RESPONSE}),
    )


def _own(graph: FactGraph) -> set[tuple[str, str]]:
    """Passages and claims that they were retrieved for."""
    return {
        (r.source.rpartition(COPY_SEPARATOR)[0] or r.source, r.target)
        for r in variant(graph, "FR1").relations
    }
