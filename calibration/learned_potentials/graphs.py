"""Potentials of whole graphs: strengths of classes, and passages as variables that claims share."""

from __future__ import annotations

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
    own_pairs,
    stated,
)
from calibration.learned_potentials.terms import Potentials, Term, binned, level
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant

EDGES = (0.15, 0.3, 0.45, 0.6, 0.8)
"""Where the six classes of P(entailment) end."""

FINE_EDGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Where the nine classes of the strongest passage of a claim end."""

PENALTY = 3.0
"""Standard deviation of the normal prior on learned numbers: it keeps classes that few labels bear
on near their start, and hardly moves the others."""


def classes(
    view: str = "FR1",
    strongest: Sequence[float] = (),
    causes: tuple[str, ...] = (),
    encoding: str = DEFAULT_ENCODING,
) -> Potentials:
    """One prior of claims, and the strength of each of six classes of relations.

    Args:
        view: the view that is learned on.
        strongest: as in `binned`.
        causes: levels of hidden causes.
        encoding: the encoding of relations.
    """
    # Where every context meets every claim, most pairs have nothing to do with each other.
    least = 0.0 if view == "FR1" else EDGES[0]
    return Potentials(level("atom_prior"), None, binned(EDGES, strongest), encoding, least, causes)


def own_passages(graph: FactGraph) -> FactGraph:
    """The view FR2 with the relations of each claim's own passages alone."""
    whole, own = variant(graph, "FR2"), own_pairs(graph)
    kept = (r for r in whole.relations if (r.source, r.target) in own)
    return replace(whole, relations=tuple(kept))


def linear_potentials(graphs: Sequence[FactGraph], table: ClaimTable) -> Potentials:
    """Potentials of passages as variables and of causes, linear in columns.

    Log odds of claims: a level and the table's columns. Of contexts: a level and their reach, the
    share of claims that they were retrieved for. Of relations: their support, its part above a
    knot, reach and contradiction, of the claim's own passages and of others with weights of their
    own, and once more where a passage is the strongest; between passages a level and support.
    Of equally strong passages the widest counts as the strongest, and equally wide ones share it.
    Strengths of causes are levels.

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
        own = own_pairs(graph)
        reach = Counter(source for source, _ in own)
        reaches |= {(graph.id, name): n / len(graph.atoms) for name, n in reach.items()}
        claims_of = set(graph.atom_ids)
        ranks: dict[tuple[str, bool], list[tuple[float, int]]] = {}
        read = []
        for r in variant(graph, "FR3").relations:
            (entails, contradicts), place = stated(r), (r.source, r.target)
            found = log_odds_of(entails)
            read.append((place, found, contradicts, (found, reach[r.source])))
            ranks.setdefault((r.target, place in own), []).append(read[-1][-1])
        for place, found, contradicts, rank in read:
            support, knee = found / 3, max(found + 2, 0.0) / 3
            if place[1] not in claims_of:
                of_relation[graph.id, *place] = {"between": 1.0, "between support": support}
                continue
            kind = "own" if place in own else "other"
            share = reaches.get((graph.id, place[0]), 0.0)
            row = {kind: 1.0, f"{kind} support": support, f"{kind} support above -2": knee}
            row |= {f"{kind} reach": share, f"{kind} reached support": share * support}
            row[f"{kind} contradiction"] = math.log(max(contradicts, 1e-4)) / 3 + 1
            rivals = ranks[place[1], place in own]
            if rank == max(rivals):
                first = 1.0 / rivals.count(rank)
                row |= {f"{kind} first": first, f"{kind} first support": first * support}
                row[f"{kind} first support above -2"] = first * knee
            of_relation[graph.id, *place] = row

    def contexts(graph: FactGraph) -> list[Mapping[str, float]]:
        names = [context.id for context in graph.contexts]
        return [{"level": 1.0, "reach": reaches.get((graph.id, name), 0.0)} for name in names]

    return Potentials(
        Term(lambda graph: [of_claim[graph.id, a.id] for a in graph.atoms], "claim", {"level"}),
        Term(contexts, "context", {"level"}),
        Term(
            lambda graph: [of_relation[graph.id, r.source, r.target] for r in graph.relations],
            "relation",
        ),
        support=0.0,
        causes=(SENTENCE, RESPONSE),
    )
