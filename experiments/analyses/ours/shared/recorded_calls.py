"""Pairs of which all answers are recorded, asked as if they were not, in our order and others'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.unasked import (
    AnswerLaw,
    Answers,
    AskablePairs,
    Asked,
    early_stopped,
    learn_law,
    play,
    replay,
    stated_risk,
)
from calibration.unasked.law import TIE
from calibration.validation import Floats, Integers
from experiments.analyses.interval_values import mean_of_clusters
from experiments.evaluators.unasked import Askable, answers_of, askable, overlap, with_asked
from experiments.findings.table import named
from factormodels.claims import Relation, RelationKind
from factormodels.extraction.relation_models.consensus import Alike
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant
from inference import infer_batch

VALUE, WORDS = "value", "value, words too"
"""Our own order among the methods: without any text, and with the overlap of words."""

HINDSIGHT = "answers known"
"""The order of who knows every answer: what any order can hope for."""


_EDGES = (0.02, 0.05, 0.2, 0.5, 1.0)
"""Where classes of the stated risk end."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """Responses all of whose pairs were asked.

    Attributes:
        graphs: the responses, with equal passages merged.
        asked: their pairs of a claim and a passage.
        answers: answers to these.
        fold: number of the fold of each response.
        between: relations of two passages, which FR3 asks for as well, of each response.
    """

    graphs: Sequence[FactGraph]
    asked: Sequence[Askable]
    answers: Sequence[Answers]
    fold: Integers
    between: Sequence[Sequence[Relation]]

    @property
    def pairs(self) -> list[AskablePairs]:
        """The pairs as numbers."""
        return [each.pairs for each in self.asked]

    @property
    def calls(self) -> int:
        """How many calls all answers take; of two passages both orders are asked."""
        claims = sum(each.size for each in self.pairs)
        return claims + 2 * sum(len(each) for each in self.between)

    @property
    def has_texts(self) -> bool:
        """Whether every passage has a text."""
        return all(context.content for graph in self.graphs for context in graph.contexts)


def recorded(
    graphs: Sequence[FactGraph], name: str, folds: int, seed: int, least: float = 0.0
) -> Recorded:
    """The responses that have a pair which a variant asks about, in random folds.

    Args:
        graphs: the responses.
        name: the variant.
        folds: number of folds.
        seed: seed of the folds.
        least: relations that are less probable count as neutral; their distributions stay.
    """
    widest = "FR3" if name == "FR3" else "FR2"
    whole = [
        graph.derived(graph.contexts, tuple(
            replace(one, kind=RelationKind.NEUTRAL) if one.probability < least else one
            for one in graph.relations
        ))
        for graph in (variant(graph, widest) for graph in graphs if graph.atoms and graph.contexts)
    ]  # fmt: skip
    asked = [askable(graph, name) for graph in whole]
    answers = [answers_of(graph, each) for graph, each in zip(whole, asked, strict=True)]
    fold = np.random.default_rng(seed).permutation(len(whole)) % folds
    between = [
        [one for one in graph.relations if one.target in set(graph.context_ids)] for graph in whole
    ]
    return Recorded(whole, asked, answers, fold, between)


def learned(data: Sequence[Recorded], without: int | None = None, seed: int = 0) -> AnswerLaw:
    """The law of answers of all these responses, or of those that are not of a fold."""
    told = [
        (pairs, answers)
        for one in data
        for pairs, answers, fold in zip(one.pairs, one.answers, one.fold, strict=True)
        if fold != without
    ]
    return learn_law([pairs for pairs, _ in told], [answers for _, answers in told], seed=seed)


def laws(
    own: Recorded, learned_from: Sequence[Recorded], seed: int, step: Callable[[], None]
) -> list[AnswerLaw]:
    """For each response the law of the responses of other folds."""
    found = {}
    for number in np.unique(own.fold).tolist():
        found[number] = learned(learned_from, number, seed)
        step()
    return [found[number] for number in own.fold.tolist()]


def orders(
    own: Recorded,
    name: str,
    by_fold: Sequence[AnswerLaw],
    seed: int,
    alike: Alike | None = None,
) -> dict[str, Asked]:
    """Our order of the pairs of a claim and a passage, and those of others, by name.

    Args:
        own: the responses.
        name: the variant.
        by_fold: the law for each response.
        seed: seed of what orders leave open.
        alike: how alike two texts are: then neighbours' passages come by it, the likest first.
            Only responses with texts are compared by it, and by their words.
    """
    found = {VALUE: play(by_fold, own.pairs, own.answers)}
    words = likeness = None
    # What words buy can be told where there are texts.
    if own.has_texts:
        asked = [askable(graph, name, (overlap,)) for graph in own.graphs]
        words = np.concatenate([each.pairs.columns[:, -1] for each in asked])
        worded = replace(own, asked=asked)
        laws_of_words = laws(worded, [worded], seed, lambda: None)
        found[WORDS] = play(laws_of_words, worded.pairs, own.answers)
        likeness = words if alike is None else likenesses(own, alike)
    return found | rivals(own.pairs, own.answers, np.random.default_rng(seed), words, likeness)


def likenesses(own: Recorded, alike: Alike) -> Floats:
    """Of all pairs, how alike the texts of claim and passage are."""
    found = []
    for graph, asked in zip(own.graphs, own.asked, strict=True):
        both = alike([a.text for a in graph.atoms] + [c.content for c in graph.contexts])
        found.append(both[asked.pairs.claim, len(graph.atoms) + asked.pairs.passage])
    return np.concatenate(found)


def rivals(
    pairs: Sequence[AskablePairs],
    answers: Sequence[Answers],
    generator: np.random.Generator,
    words: Floats | None = None,
    likeness: Floats | None = None,
) -> dict[str, Asked]:
    """The orders of others: by rank and own passages first, with neighbours', at random.

    Args:
        pairs: pairs of each response.
        answers: answers to them.
        generator: draws what the orders leave open.
        words: of all pairs, the share of the claim's words that the passage has, where there are
            texts: one order has nothing else.
        likeness: of all pairs, how alike their texts are; what is alike then comes first among
            neighbours, as behind a gate that is opened ever wider.
    """
    response = np.repeat(np.arange(len(pairs)), [each.size for each in pairs])
    pair = np.concatenate([np.arange(each.size) for each in pairs])
    columns = np.concatenate([each.columns for each in pairs])
    weight = np.concatenate([each.weight for each in answers])
    own, distance, rank = columns[:, 1] > 0, np.expm1(columns[:, 4]), columns[:, 7]
    drawn = generator.random(pair.size)

    def by(*keys: NDArray[np.generic]) -> Asked:
        order = np.lexsort((drawn, *reversed(keys)))
        return Asked(response[order], pair[order])

    final = [
        (each.prior + np.bincount(each.claim, told.weight, each.prior.size))[each.claim] > TIE
        for each, told in zip(pairs, answers, strict=True)
    ]
    ends_true = np.concatenate(final)
    ranked = by(~own, np.where(own, rank, distance))
    near = np.where(own, 0, np.where(distance <= 1, 1, 2))
    found = {
        "rank order": ranked,
        "rank order, stopping early": early_stopped(ranked, pairs, answers, 1e-9),
        "own, then neighbours'": by(near, rank if likeness is None else -likeness),
        "random": by(),
        HINDSIGHT: early_stopped(
            by(~ends_true, np.where(ends_true, -weight, weight)), pairs, answers, 1e-9
        ),
    }
    if words is not None:
        found["overlap, stopping early"] = early_stopped(by(-words), pairs, answers, 1e-9)
    return found


def first(order: Asked, count: int) -> Asked:
    """The first of what is asked."""
    return Asked(order.response[:count], order.pair[:count])


def posteriors(own: Recorded, order: Asked, between: int = 0) -> Floats:
    """Posterior of every claim if these pairs were all that is asked, by exact inference.

    Args:
        own: the responses.
        order: pairs of a claim and a passage.
        between: how many pairs of two passages are asked after these.
    """
    seen = []
    for number, (graph, asked) in enumerate(zip(own.graphs, own.asked, strict=True)):
        told = with_asked(graph, asked, order.pair[order.response == number])
        own_between = own.between[number][: between // 2]
        between -= 2 * len(own_between)
        seen.append(told.derived(told.contexts, (*told.relations, *own_between)))
    found = infer_batch((graph.to_factor_graph() for graph in seen), "exact")
    return np.concatenate([
        each.marginals.of_state(1, graph.atom_ids) for each, graph in zip(found, seen, strict=True)
    ])  # fmt: skip


def stated_risks(own: Recorded, by_fold: Sequence[AnswerLaw], order: Asked, seed: int) -> Floats:
    """The risk of every claim that its verdict changes, after these pairs were asked."""
    risks = []
    of_each = zip(by_fold, own.pairs, own.answers, strict=True)
    for number, (law, pairs, told) in enumerate(of_each):
        state, odds = replay(law, pairs, told, order.pair[order.response == number])
        risks.append(stated_risk(law, pairs, state, odds, told.weight, seed=seed))
    return np.concatenate(risks)


def risk_rows(
    stated: Floats, changed: NDArray[np.bool_], response: Integers, seed: int
) -> list[dict[str, Any]]:
    """By class of the stated risk: claims, the mean risk stated, and the share that changes.

    The share has an interval over responses, whose claims are dependent.
    """
    rows = []
    for k, edge in enumerate(_EDGES):
        of = np.searchsorted(_EDGES, stated) == k
        if not of.any():
            continue
        sums, sizes = np.bincount(response[of], changed[of]), np.bincount(response[of])
        share = named("changed", mean_of_clusters(sums[sizes > 0], sizes[sizes > 0], seed))
        row = {"most": edge, "claims": int(of.sum()), "stated": float(stated[of].mean())}
        rows.append(row | share)
    return rows


def true(p: Floats) -> NDArray[np.bool_]:
    """Verdicts; a posterior of 1/2 to rounding is none of true."""
    return p > 0.5 + 1e-9
