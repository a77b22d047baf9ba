"""The relation stage: which pairs a variant needs, each asked once, and what was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from factormodels.claims import (
    LEAST_PROBABILITY,
    Context,
    Relation,
    RelationKind,
    evidence_or_neutral,
    likeliest_kind,
)
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import (
    Judgement,
    Missing,
    NotAsked,
    RelationModel,
    TextPair,
    counted_fallbacks,
)
from factormodels.fact_graph import FactGraph
from factormodels.metadata.evidence_source import RELATIONS_KEY
from factormodels.validation import validated_probability
from factormodels.variants import between_claims, united

EXTRACTED_VARIANTS = ("FR1", "FR2", "FR3")

METADATA_KEY = RELATIONS_KEY

_NO_TEXT = Missing("one of the two texts is empty")


def relation_pairs(graph: FactGraph, variant: str) -> list[TextPair]:
    """Ordered pairs that a variant asks a relation model about.

    FR1: every atom with the contexts retrieved for it, at most kn pairs. FR2: every atom with
    every context, nm. FR3: also every two contexts in both orders, m(m - 1) more. A premise is
    always a context, and is read with its snippet and title.

    Args:
        graph: atoms and contexts, equal contexts merged.
        variant: "FR1", "FR2" or "FR3".

    Raises:
        InputError: for another variant.

    Source: FactReasoner, section 3.3.
    """
    if variant not in EXTRACTED_VARIANTS:
        raise InputError(
            f"the variant {variant!r} is unknown; use one of {', '.join(EXTRACTED_VARIANTS)}"
        )
    pairs = [
        _pair(context, atom.text, atom.id, graph.query)
        for context in graph.contexts
        for atom in graph.atoms
        if variant != "FR1" or atom.id in context.retrieved_for
    ]
    if variant == "FR3":
        for context, other in combinations(graph.contexts, 2):
            pairs.append(_pair(context, other.content, other.id, graph.query))
            pairs.append(_pair(other, context.content, context.id, graph.query))
    return pairs


def only_asked(graph: FactGraph, variant: str) -> FactGraph:
    """Graph with those of its relations, and of what is missing, that `relation_pairs` asks for.

    The relations of a variant, and the missing ones, are then the same with or without a wider
    variant.
    """
    retrieved_for = {context.id: context.retrieved_for for context in graph.contexts}
    atoms = set(graph.atom_ids)

    def asked(source: str, target: str) -> bool:
        if variant == "FR1":
            return target in retrieved_for.get(source, ())
        return variant != "FR2" or target in atoms

    facts = graph.metadata.get(METADATA_KEY, {})
    relations = tuple(
        relation for relation in graph.relations if asked(relation.source, relation.target)
    )
    lacking = {
        key: [pair for pair in facts[key] if asked(pair[0], pair[1])]
        for key in ("missing", "unasked")
        if key in facts
    }
    same = all(len(kept) == len(facts[key]) for key, kept in lacking.items())
    if len(relations) == len(graph.relations) and same:
        return graph
    metadata = dict(graph.metadata)
    if lacking:
        metadata[METADATA_KEY] = {**facts, **lacking}
    return replace(graph, relations=relations, metadata=metadata)


def ask(model: RelationModel, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
    """Answer to each pair; pairs of the same texts and ids are asked once.

    A pair with an empty text is missing and not asked.
    """
    distinct = list(dict.fromkeys(pair for pair in pairs if _has_texts(pair)))
    answers = dict(zip(distinct, model.judge(distinct) if distinct else [], strict=True))
    return [answers.get(pair, _NO_TEXT) for pair in pairs]


def with_relations(
    graph: FactGraph,
    model: RelationModel,
    variant: str,
    *,
    least: float = LEAST_PROBABILITY,
    both_orders: bool = True,
    unite: bool = True,
) -> FactGraph:
    """Graph with the relations that a variant needs, in place of those it has with passages.

    Relations between claims stay. The others keep the distribution that the model states, which the
    encoding *mixture* reads. Neutral relations are recorded; missing ones are not, and are counted.
    Two contexts have one relation: an equivalence where both orders entail, otherwise the more
    probable of the two.
    `metadata["relations"]` holds the model's name, the variant, the number of pairs asked, of
    relations of each kind (before those of two contexts are united), of answers of each origin, of
    those that fell back to another origin (`fallbacks`, as [origin, reason, number], where there
    are any), of those made neutral for being less probable than `least`, the pairs that are
    missing, as [source, target, reason], and, where some were not asked, these as `unasked`.

    Args:
        graph: atoms and contexts, equal contexts merged.
        model: what judges the pairs.
        variant: "FR1", "FR2" or "FR3".
        least: the least probability of an entailment or contradiction that is kept.
        both_orders: whether FR3 asks about every two contexts in both orders; else the second is
            asked where it can make them equivalent, or where the first has no answer.
        unite: whether two contexts have one relation; otherwise both orders stay, for
            `with_corrected_relations`, which unites them.

    Raises:
        InputError: for another variant, or `least` outside [0, 1].
    """
    least = validated_probability(least, "the least probability of a relation")
    pairs = relation_pairs(graph, variant)
    if both_orders:
        answers = ask(model, pairs)
    else:
        pairs, answers = _in_needed_orders(model, pairs)
    judged = [
        (pair, answer)
        for pair, answer in zip(pairs, answers, strict=True)
        if isinstance(answer, Judgement)
    ]
    weak = sum(_is_weak(answer, least) for _, answer in judged)
    relations = [relation_of(pair, answer, least) for pair, answer in judged]
    kinds = Counter(str(relation.kind) for relation in relations)
    origins = Counter(str(answer.origin) for _, answer in judged)
    unasked = [
        [pair.source, pair.target, answer.reason]
        for pair, answer in zip(pairs, answers, strict=True)
        if isinstance(answer, NotAsked)
    ]
    counts = {
        "model": model.name,
        "variant": variant,
        "asked": len(pairs) - len(unasked),
        **{str(kind): kinds[kind] for kind in (*_KINDS, RelationKind.NEUTRAL)},
        "origins": dict(sorted(origins.items())),
        **counted_fallbacks(
            (answer.origin, answer.fell_back) for _, answer in judged if answer.fell_back
        ),
        "least": least,
        "made_neutral": weak,
        "missing": [
            [pair.source, pair.target, answer.reason]
            for pair, answer in zip(pairs, answers, strict=True)
            if isinstance(answer, Missing) and not isinstance(answer, NotAsked)
        ],
        **({"unasked": unasked} if unasked else {}),
    }
    return _with_evidence(graph, relations, counts, unite=unite)


def evidence_distributions(graph: FactGraph) -> list[tuple[float, float, float]]:
    """Distributions of the relations with passages over entailment, contradiction and neutral.

    Those before a correction, where there was one; relations without a distribution are left out.
    """
    claims = set(between_claims(graph))
    stated = (
        relation.uncorrected or relation.distribution
        for relation in graph.relations
        if relation not in claims
    )
    return [(s[0] + s[2], s[1], s[3]) for s in stated if s is not None]


def with_corrected_relations(
    graph: FactGraph,
    correct: Callable[[list[tuple[float, float, float]]], Sequence[Sequence[float]]],
    *,
    least: float = LEAST_PROBABILITY,
    facts: Mapping[str, Any] | None = None,
    unite: bool = True,
) -> FactGraph:
    """Graph whose relations with passages have corrected probabilities, two contexts one relation.

    Each keeps the distribution before beside the corrected one; a relation without a distribution
    stays as it is. The counts of `metadata["relations"]` are made anew.

    Args:
        graph: what `with_relations` made, in both orders of two contexts.
        correct: from probabilities of entailment, contradiction and neutral to corrected ones.
        least: the least probability of an entailment or contradiction that is kept.
        facts: what else the answers depend on, for `metadata["relations"]`.
        unite: whether two contexts have one relation; otherwise both orders stay.
    """
    claims = set(between_claims(graph))
    evidence = [relation for relation in graph.relations if relation not in claims]
    shares = evidence_distributions(graph)
    corrected = iter(correct(shares) if shares else ())
    relations: list[Relation] = []
    weak = 0
    for relation in evidence:
        if (stated := relation.uncorrected or relation.distribution) is None:
            relations.append(relation)
            continue
        entails, contradicts, neutral = next(corrected)
        kind, probability = likeliest_kind(entails, contradicts, neutral)
        changed = replace(
            relation,
            kind=kind,
            probability=probability,
            distribution=(entails, contradicts, 0.0, neutral),
            uncorrected=stated,
        )
        relations.append(evidence_or_neutral(changed, least))
        weak += kind is not RelationKind.NEUTRAL and probability < least
    kinds = Counter(str(relation.kind) for relation in relations)
    counts = {
        **graph.metadata[METADATA_KEY],
        **{str(kind): kinds[kind] for kind in (*_KINDS, RelationKind.NEUTRAL)},
        "made_neutral": weak,
        **(facts or {}),
    }
    return _with_evidence(graph, relations, counts, unite=unite)


def _in_needed_orders(
    model: RelationModel, pairs: Sequence[TextPair]
) -> tuple[list[TextPair], list[Judgement | Missing]]:
    """The pairs that were asked, and the answers; of two orders the second only where it matters.

    It matters where the first entails, for both may, which is an equivalence. A contradiction is
    one in either order, and what one order finds neutral the other seldom entails.
    """
    first: dict[tuple[str, str], TextPair] = {}
    second: list[TextPair] = []
    for pair in pairs:
        if (pair.target, pair.source) in first:
            second.append(pair)
        else:
            first[pair.source, pair.target] = pair
    answers = ask(model, list(first.values()))
    decided = {
        (pair.target, pair.source)
        for pair, answer in zip(first.values(), answers, strict=True)
        if isinstance(answer, Judgement) and answer.kind is not RelationKind.ENTAILMENT
    }
    again = [pair for pair in second if (pair.source, pair.target) not in decided]
    return [*first.values(), *again], [*answers, *ask(model, again)]


def missing_relations(graph: FactGraph) -> int:
    """Number of the pairs that were asked about in vain."""
    return len(graph.metadata.get(METADATA_KEY, {}).get("missing", ()))


def made_neutral(graph: FactGraph) -> int:
    """Number of relations that were made neutral and keep no distribution to tell."""
    if any(shares is not None for shares in graph.column("relations", "distribution")):
        return 0
    return int(graph.metadata.get(METADATA_KEY, {}).get("made_neutral", 0))


def unanswered_atoms(graph: FactGraph) -> frozenset[str]:
    """Return the ids of the atoms with pairs, of which none has an answer.

    Their answers are missing, or were not asked for. Nothing is known of them, which is not the
    same as evidence that leaves them undecided.
    """
    facts = graph.metadata.get(METADATA_KEY, {})
    lacking = (*facts.get("missing", ()), *facts.get("unasked", ()))
    unanswered = {target for _, target, _ in lacking} - {
        relation.target for relation in graph.relations
    }
    return frozenset(unanswered.intersection(graph.atom_ids))


_KINDS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)


def relation_of(pair: TextPair, answer: Judgement, least: float) -> Relation:
    """Return the relation that an answer makes, neutral if it is less probable than `least`."""
    shares, uncorrected = _of_kinds(answer.distribution), _of_kinds(answer.uncorrected)
    stated = Relation(
        pair.source, pair.target, answer.kind, answer.probability, shares, uncorrected
    )
    return evidence_or_neutral(stated, least)


def _of_kinds(shares: tuple[float, float, float] | None) -> tuple[float, ...] | None:
    """Probabilities of a judgment in the order of the kinds; none is of an equivalence."""
    return None if shares is None else (shares[0], shares[1], 0.0, shares[2])


def _is_weak(answer: Judgement, least: float) -> bool:
    return answer.kind is not RelationKind.NEUTRAL and answer.probability < least


def _with_evidence(
    graph: FactGraph, relations: Sequence[Relation], counts: Mapping[str, Any], *, unite: bool
) -> FactGraph:
    """The graph with other relations with passages, and what is counted of them."""
    kept = one_per_pair(relations, set(graph.context_ids)) if unite else relations
    return replace(
        graph,
        relations=(*kept, *between_claims(graph)),
        metadata={**graph.metadata, METADATA_KEY: counts},
    )


def one_per_pair(relations: Iterable[Relation], contexts: set[str]) -> Iterator[Relation]:
    waiting: dict[tuple[str, str], Relation] = {}
    for relation in relations:
        if relation.target not in contexts:
            yield relation
            continue
        forward = waiting.pop((relation.target, relation.source), None)
        if forward is None:
            waiting[relation.source, relation.target] = relation
        else:
            yield united(forward, relation)
    # Where one order is missing, the other stands for the pair.
    yield from waiting.values()


def _pair(context: Context, hypothesis: str, target: str, question: str) -> TextPair:
    return TextPair(context.content, hypothesis, context.id, target, context.title, question)


def _has_texts(pair: TextPair) -> bool:
    return bool(pair.premise.strip()) and bool(pair.hypothesis.strip())
