"""The relation stage: judges the pairs of texts that a variant needs, each once."""

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
from factormodels.extraction.asking.stage import Extent
from factormodels.extraction.relation_models.base import (
    Judgment,
    Missing,
    NotAsked,
    RelationModel,
    TextPair,
    counted_fallbacks,
)
from factormodels.fact_graph import FactGraph
from factormodels.metadata.evidence_source import RELATIONS_KEY
from factormodels.samples import is_sample
from factormodels.validation import validated_probability
from factormodels.variants import between_claims, united

EXTRACTED_VARIANTS = ("FR1", "FR2", "FR3")

METADATA_KEY = RELATIONS_KEY

_NO_TEXT = Missing("one of the two texts is empty")


def relation_pairs(graph: FactGraph, variant: str) -> list[TextPair]:
    """Return the ordered pairs that a variant needs judged by a relation model.

    FR1: every atom with the contexts retrieved for it, at most kn pairs for n atoms and k contexts
    each. FR2: every atom with every one of m contexts, nm pairs. FR3: also every two passages in
    both orders, m(m - 1) more; sampled answers are not compared with contexts. A premise is always
    a context, with its snippet and title.

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
        passages = (context for context in graph.contexts if not is_sample(context))
        for context, other in combinations(passages, 2):
            pairs.append(_pair(context, other.content, other.id, graph.query))
            pairs.append(_pair(other, context.content, context.id, graph.query))
    return pairs


def n_relation_pairs(variant: str, extent: Extent) -> int:
    """Return the number of `relation_pairs` of a response whose size is known or assumed.

    Args:
        variant: "FR1", "FR2" or "FR3".
        extent: sizes of the response: n atoms, m contexts (FR3 compares contexts that are not
            samples), and up to kn pairs of an atom and a context that was retrieved for it.
    """
    if variant == "FR1":
        return extent.retrieved
    passages = extent.contexts - extent.samples
    return extent.atoms * extent.contexts + (passages * (passages - 1) if variant == "FR3" else 0)


def only_asked(graph: FactGraph, variant: str) -> FactGraph:
    """Return the graph with only the relations, and missing ones, of pairs in `relation_pairs`.

    The relations of a variant, and the missing ones, then do not depend on whether a wider variant
    was asked.
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


def ask(model: RelationModel, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
    """Return the answer to each pair; pairs with the same texts and ids are asked once.

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
    """Return the graph with the relations that a variant needs, replacing its relations with
    passages.

    Relations between claims are kept. The others have the distribution that the model states, which
    the encoding *mixture* reads. Neutral relations are recorded; missing ones are only counted. Two
    contexts have one relation: an equivalence if both orders entail, otherwise the more probable of
    the two. `metadata["relations"]` holds the model's name, the variant, the missing pairs, as
    [source, target, reason], and the pairs that were not asked, if any (`unasked`, in the same
    form). It also has numbers: of pairs asked; of relations of each kind, before both orders of two
    contexts are united; of answers of each origin; of answers that fell back to another origin
    (`fallbacks`, as [origin, reason, number], if there are any); and of relations made neutral
    because they were less probable than `least`.

    Args:
        graph: atoms and contexts, equal contexts merged.
        model: the relation model.
        variant: "FR1", "FR2" or "FR3".
        least: least probability of an entailment or contradiction that is kept.
        both_orders: whether FR3 asks about every two contexts in both orders; otherwise the second
            order is asked only if it can make them equivalent, or if the first has no answer.
        unite: whether two contexts have one relation; otherwise both orders are kept, for
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
        if isinstance(answer, Judgment)
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
    """Return distributions over entailment, contradiction and neutral of the relations with
    passages.

    Corrected relations have their distribution before the correction; relations without a
    distribution are left out.
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
    """Return the graph with corrected probabilities of its relations with passages.

    Each relation keeps its uncorrected distribution too; a relation without a distribution is
    unchanged. The counts in `metadata["relations"]` are updated.

    Args:
        graph: a graph made by `with_relations` with both orders of two contexts (`unite` false).
        correct: returns corrected probabilities of entailment, contradiction and neutral.
        least: least probability of an entailment or contradiction that is kept.
        facts: further facts that the answers depend on, for `metadata["relations"]`.
        unite: whether two contexts have one relation; otherwise both orders are kept.
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
) -> tuple[list[TextPair], list[Judgment | Missing]]:
    """Return the pairs that were asked, and the answers; the second order is asked only if needed.

    It is needed if the first order is an entailment, since two entailments are an equivalence, or
    has no answer. A contradiction holds in both orders, and if one order is neutral, the other is
    seldom an entailment.
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
        if isinstance(answer, Judgment) and answer.kind is not RelationKind.ENTAILMENT
    }
    again = [pair for pair in second if (pair.source, pair.target) not in decided]
    return [*first.values(), *again], [*answers, *ask(model, again)]


def missing_relations(graph: FactGraph) -> int:
    """Return the number of pairs that were asked and not answered."""
    return len(graph.metadata.get(METADATA_KEY, {}).get("missing", ()))


def made_neutral(graph: FactGraph) -> int:
    """Return the number of relations made neutral without a distribution that shows it."""
    if any(shares is not None for shares in graph.column("relations", "distribution")):
        return 0
    return int(graph.metadata.get(METADATA_KEY, {}).get("made_neutral", 0))


def unanswered_atoms(graph: FactGraph) -> frozenset[str]:
    """Return the ids of the atoms none of whose pairs has an answer.

    Their pairs failed or were not asked, so that nothing is known about these atoms, which differs
    from evidence that leaves them undecided.
    """
    facts = graph.metadata.get(METADATA_KEY, {})
    lacking = (*facts.get("missing", ()), *facts.get("unasked", ()))
    if not lacking:
        return frozenset()
    unanswered = {target for _, target, _ in lacking} - {
        relation.target for relation in graph.relations
    }
    return frozenset(unanswered.intersection(graph.atom_ids))


_KINDS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)


def relation_of(pair: TextPair, answer: Judgment, least: float) -> Relation:
    """Return the relation that an answer makes, neutral if it is less probable than `least`."""
    shares, uncorrected = _of_kinds(answer.distribution), _of_kinds(answer.uncorrected)
    stated = Relation(
        pair.source, pair.target, answer.kind, answer.probability, shares, uncorrected
    )
    return evidence_or_neutral(stated, least)


def _of_kinds(shares: tuple[float, float, float] | None) -> tuple[float, ...] | None:
    """Return the probabilities of a judgment in the order of the kinds; equivalence has 0."""
    return None if shares is None else (shares[0], shares[1], 0.0, shares[2])


def _is_weak(answer: Judgment, least: float) -> bool:
    return answer.kind is not RelationKind.NEUTRAL and answer.probability < least


def _with_evidence(
    graph: FactGraph, relations: Sequence[Relation], counts: Mapping[str, Any], *, unite: bool
) -> FactGraph:
    """Return the graph with the given relations with passages, and their counts."""
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
    # If one order is missing, the other is the pair's relation.
    yield from waiting.values()


def _pair(context: Context, hypothesis: str, target: str, question: str) -> TextPair:
    return TextPair(context.content, hypothesis, context.id, target, context.title, question)


def _has_texts(pair: TextPair) -> bool:
    return bool(pair.premise.strip()) and bool(pair.hypothesis.strip())
