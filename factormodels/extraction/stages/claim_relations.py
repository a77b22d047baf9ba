"""Relations between the claims of one response: selection of pairs, and their judgment.

A relation model judges a pair of claims like a passage and a claim, in both orders. A language
model can also state the discourse sense of one claim relative to the other
(`factormodels.discourse`); a passage cannot have some of these relations to a claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import LEAST_PROBABILITY, Atom, Relation
from factormodels.discourse import SensedPair, compiled_senses
from factormodels.errors import InputError
from factormodels.extraction.asking import table
from factormodels.extraction.asking.loop import ask_all
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.relation_models.base import Judgment, Missing, RelationModel, TextPair
from factormodels.extraction.stages.relations import ask, relation_of
from factormodels.fact_graph import FactGraph
from factormodels.validation import validated_probability
from factormodels.variants import between_claims, united

METADATA_KEY = "claim_relations"
"""Metadata key of the judged pairs of claims, and of the missing ones."""

Pairs = Sequence[tuple[Atom, Atom]]


def claim_pairs(graph: FactGraph, window: int | None = None) -> list[tuple[Atom, Atom]]:
    """Return pairs of claims with texts, the earlier first: all, or those at most `window` apart.

    Raises:
        InputError: if the window is less than 1.
    """
    if window is not None and window < 1:
        raise InputError(f"the window is {window}; give 1 or more claims")
    atoms = graph.atoms
    return [
        (first, second)
        for index, first in enumerate(atoms)
        for second in atoms[index + 1 : None if window is None else index + 1 + window]
        if first.text.strip() and second.text.strip()
    ]


def n_claim_pairs(n: int, window: int | None = None) -> int:
    """Return the number of pairs of n claims at most `window` apart; None is any distance."""
    reach = n if window is None else min(window, n)
    return reach * n - reach * (reach + 1) // 2


def lexical_shares(pairs: Pairs) -> NDArray[np.float64]:
    """Return the lexical model's probabilities for pairs in both orders, (n, 2, 3), without a call.

    The last axis is entailment, contradiction and neutral.
    """
    from factormodels.extraction.relation_models.lexical import relation_distributions
    from factormodels.extraction.relation_models.lexical_features import pair_features

    asked = [TextPair(*texts) for a, b in pairs for texts in ((a.text, b.text), (b.text, a.text))]
    if not asked:
        return np.empty((0, 2, 3))
    result: NDArray[np.float64] = relation_distributions(pair_features(asked)).reshape(-1, 2, 3)
    return result


def likeliest_related(pairs: Pairs, most: int) -> list[tuple[Atom, Atom]]:
    """Return the pairs that are likeliest related by their words, in the order of `pairs`.

    The score is the lexical model's probability that either order is not neutral, so that calls are
    spent on the pairs most likely to give a factor.
    """
    return most_valuable(pairs, 1.0 - lexical_shares(pairs)[:, :, 2].min(axis=1), most)


def most_valuable(pairs: Pairs, values: NDArray[np.float64], most: int) -> list[tuple[Atom, Atom]]:
    """Return the pairs with the largest values, in the order of `pairs`; the first among equals."""
    chosen = np.sort(np.argsort(-values, kind="stable")[:most])
    return [pairs[at] for at in chosen.tolist()]


def with_judged_claims(
    graph: FactGraph,
    model: RelationModel,
    pairs: Pairs,
    *,
    least: float = LEAST_PROBABILITY,
) -> FactGraph:
    """Return the graph with relations between claims by a relation model, replacing earlier ones.

    Each pair is judged in both orders. Two entailments become an equivalence; otherwise the more
    probable relation is kept. If one order is missing, the other is used. Relations with passages
    are kept. `metadata["claim_relations"]` holds the model's name, the number of pairs, the number
    of relations of each kind, and the missing pairs, as [first, second, reason].

    Raises:
        InputError: if `least` is outside [0, 1].
    """
    least = validated_probability(least, "the least probability of a relation")
    asked = [
        TextPair(claim.text, other.text, claim.id, other.id, "", graph.query)
        for a, b in pairs
        for claim, other in ((a, b), (b, a))
    ]
    answers = ask(model, asked)
    relations: list[Relation] = []
    missing: list[list[str]] = []
    for at in range(0, len(asked), 2):
        judged = [
            relation_of(pair, answer, least)
            for pair, answer in zip(asked[at : at + 2], answers[at : at + 2], strict=True)
            if isinstance(answer, Judgment)
        ]
        if judged:
            relations.append(judged[0] if len(judged) == 1 else united(judged[0], judged[1]))
        else:
            reason = next(
                answer.reason for answer in answers[at : at + 2] if isinstance(answer, Missing)
            )
            missing.append([asked[at].source, asked[at].target, reason])
    return _with(graph, relations, model.name, len(pairs), missing)


def with_senses(
    graph: FactGraph,
    model: LanguageModel,
    pairs: Pairs,
    *,
    least: float = LEAST_PROBABILITY,
) -> FactGraph:
    """Return the graph with the relations that discourse senses between claims compile to.

    The language model is asked once about each pair, and shown the response. A sense less probable
    than `least` gives no relation, and neither does a temporal sense. Relations with passages are
    kept, and `metadata["claim_relations"]` is as in `with_judged_claims`, with the number of pairs
    of each sense.

    Raises:
        InputError: if `least` is outside [0, 1].
    """
    least = validated_probability(least, "the least probability of a relation")
    questions = [
        Question(
            table.CLAIM_RELATION,
            {"response": graph.response, "first": a.text, "second": b.text},
        )
        for a, b in pairs
    ]
    answers = ask_all(model, questions)
    sensed: list[SensedPair] = []
    missing: list[list[str]] = []
    for (first, second), answer in zip(pairs, answers, strict=True):
        if isinstance(answer, Failure):
            missing.append([first.id, second.id, answer.reason])
            continue
        sense, probability = answer
        if sense is not None:
            sensed.append(SensedPair(first.id, second.id, sense, probability))
    relations = [relation for relation in compiled_senses(sensed) if relation.probability >= least]
    senses = Counter(str(pair.sense) for pair in sensed)
    return _with(graph, relations, model.name, len(pairs), missing, {"senses": dict(senses)})


def _with(
    graph: FactGraph,
    relations: Sequence[Relation],
    name: str,
    asked: int,
    missing: list[list[str]],
    further: dict[str, Any] | None = None,
) -> FactGraph:
    before = set(between_claims(graph))
    kinds = Counter(str(relation.kind) for relation in relations)
    facts = {"model": name, "asked": asked, **dict(kinds), "missing": missing, **(further or {})}
    return replace(
        graph,
        relations=(
            *(relation for relation in graph.relations if relation not in before),
            *relations,
        ),
        metadata={**graph.metadata, METADATA_KEY: facts},
    )
