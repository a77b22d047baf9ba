"""Pairs of a response that can be asked, what is known of each without asking, and its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.unasked import Answers, AskablePairs
from calibration.validation import Floats
from factormodels.claims import CONFLICTS, Relation, RelationKind, is_evidence
from factormodels.encodings import MIXTURE, get_encoding
from factormodels.fact_graph import FactGraph

COLUMNS = (
    *("constant", "own passage", "claims of the passage", "share of claims", "distance"),
    *("same sentence", "claims of an own passage", "rank of an own passage", "position"),
    *("claims of the response", "passages of the response"),
)
"""What is known of a pair without any text. Own: the passage was found for the claim; distance: of
the claim's sentence from those for whose claims it was found. Numbers are logarithms."""

_NO_RANK = 6
_UNSAID = 2.0
"""Log odds of entailment, or against it, of an answer that states no distribution."""

Column = Callable[[FactGraph, Sequence[tuple[int, int]]], Floats]
"""From a graph and (claim, passage) of its pairs to a further column."""


@dataclass(frozen=True, eq=False)
class Askable:
    """The pairs of one response with the names that they have in its graph.

    Attributes:
        pairs: the pairs as numbers.
        names: id of passage and of claim of each pair.
    """

    pairs: AskablePairs
    names: tuple[tuple[str, str], ...]


def askable(graph: FactGraph, variant: str = "FR2", more: Sequence[Column] = ()) -> Askable:
    """The pairs of a claim and a passage that a variant asks about, passages in order.

    Args:
        graph: claims and passages, equal passages merged.
        variant: FR1: passages that were found for the claim alone; otherwise all.
        more: further columns.
    """
    place = {atom.id: number for number, atom in enumerate(graph.atoms)}
    found_for = [[place[atom] for atom in context.retrieved_for] for context in graph.contexts]
    sentence = np.array([atom.sentence or 0 for atom in graph.atoms], dtype=np.int64)
    own = np.zeros((len(graph.atoms), len(graph.contexts)), dtype=np.bool_)
    for passage, those in enumerate(found_for):
        own[those, passage] = True
    rank = np.minimum(np.cumsum(own, axis=1) - 1, _NO_RANK) * own
    everywhere = own if variant == "FR1" else np.ones(own.shape, dtype=np.bool_)
    passages, claims = np.nonzero(everywhere.T)
    reach = own.sum(axis=0)
    distance = np.zeros(own.shape)
    for passage, those in enumerate(found_for):
        if those:
            away = np.abs(sentence[:, None] - sentence[those][None])
            distance[:, passage] = away.min(axis=1)
    n, m = own.shape
    is_own, served = own[claims, passages], np.log(np.maximum(1, reach))[passages]
    away = distance[claims, passages]
    columns = [
        np.ones(claims.size),
        is_own,
        served,
        reach[passages] / max(1, n),
        np.log1p(away),
        away == 0,
        is_own * served,
        rank[claims, passages],
        claims / max(1, n),
        np.full(claims.size, np.log(max(1, n))),
        np.full(claims.size, np.log(max(1, m))),
    ]
    numbers = list(zip(claims.tolist(), passages.tolist(), strict=True))
    columns += [column(graph, numbers) for column in more]
    prior = np.array([atom.prior for atom in graph.atoms])
    odds = np.log(prior) - np.log1p(-prior) if prior.size else np.zeros(0)
    pairs = AskablePairs(claims, passages, sentence[claims], np.column_stack(columns), odds)
    names = tuple((graph.contexts[p].id, graph.atoms[c].id) for c, p in numbers)
    return Askable(pairs, names)


def answers_of(graph: FactGraph, asked: Askable, encoding: str = "implication") -> Answers:
    """What is recorded of the pairs; a pair without a relation counts as neutral."""
    recorded = {(one.source, one.target): one for one in graph.relations}
    context = {one.id: one.prior for one in graph.contexts}
    atom = {one.id: one.prior for one in graph.atoms}
    found = [
        answer_of(recorded.get(name), context[name[0]], atom[name[1]], encoding)
        for name in asked.names
    ]
    both = np.array(found).reshape(-1, 2)
    return Answers(both[:, 0], both[:, 1])


def answer_of(
    relation: Relation | None, context: float, atom: float, encoding: str
) -> tuple[float, float]:
    """Score and weight of an answer (see `calibration.unasked.Answers`).

    The weight is the logarithm of the claim's odds that the passage alone brings: sums over the
    passage's truth of its prior times the relation's table.
    """
    if relation is None:
        return -_UNSAID, 0.0
    if relation.distribution is not None:
        entails = min(max(relation.distribution[0], 1e-6), 1 - 1e-6)
        score = float(np.log(entails) - np.log1p(-entails))
    else:
        score = _UNSAID if relation.kind is RelationKind.ENTAILMENT else -_UNSAID
        score -= relation.kind in CONFLICTS
    improbable = encoding != MIXTURE and not is_evidence(relation.kind, relation.probability)
    if relation.kind is RelationKind.NEUTRAL or improbable:
        return score, 0.0
    table = np.exp(get_encoding(encoding)(relation.kind, relation.probability, atom))
    rows = np.asarray(table, dtype=np.float64).reshape(2, 2)
    false, true = np.array([1 - context, context]) @ rows
    return score, float(np.log(true) - np.log(false))


def with_asked(graph: FactGraph, asked: Askable, numbers: Sequence[int]) -> FactGraph:
    """The graph with only those of its relations whose pairs were asked.

    Args:
        graph: with the relations of all pairs.
        asked: its pairs.
        numbers: numbers of the pairs that were asked.
    """
    kept = {asked.names[number] for number in numbers}
    relations = tuple(one for one in graph.relations if (one.source, one.target) in kept)
    return graph.derived(graph.contexts, relations)


def overlap(graph: FactGraph, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Column: the share of the claim's words that stand in the passage."""
    from factormodels.extraction.relation_models.base import TextPair
    from factormodels.extraction.relation_models.lexical_features import FEATURES, pair_features

    texts = [
        TextPair(graph.contexts[p].content, graph.atoms[c].text, title=graph.contexts[p].title)
        for c, p in pairs
    ]
    return pair_features(texts)[:, FEATURES.index("passage")]
