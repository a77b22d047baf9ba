"""Identities of the responses whose labels were learned from, so that no label is used twice.

A label that was learned from cannot evaluate or recalibrate the resulting probability: the error on
that claim is smaller than on others. Everything that learns from labels therefore stores the
identities of the responses, and marks each probability with `LearnedFrom`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.metadata.evidence_source import RELATIONS_KEY
from factormodels.variants import normalized_text

LEARNED_FROM = "learned_from"
"""Key of the mark in an assessor's metadata, and suffix of its column's name."""

DIGITS = 12
"""Hexadecimal digits of a digest; two of a million texts collide with probability .002."""


class LearnedFrom(StrEnum):
    """Labels from which the probability of a response's claim was learned."""

    THIS_RESPONSE = "this response"
    """Labels of the response itself, possibly among others."""
    OTHER_RESPONSES = "other responses"
    """Labels of other responses only."""


@dataclass(frozen=True, slots=True)
class ResponseIdentity:
    """Properties that identify a response independently of its id.

    Attributes:
        id: id of the response.
        text: digest of its text; empty without a text.
        claims: digests of the texts of its claims; empty without texts.
        evidence: digest of its relations; empty without relations.
    """

    id: str
    text: str
    claims: frozenset[str]
    evidence: str


def identity_of(graph: FactGraph) -> ResponseIdentity:
    """Return the identity of a response, ignoring case and white space of texts."""
    claims = frozenset(_digest(text) for text in graph.column("atoms", "text") if text.strip())
    evidence = ""
    if graph.relations:
        # Claims are numbered, because the ids of claims may change with the id of the response.
        number = {name: str(position) for position, name in enumerate(graph.atom_ids)}
        rows = sorted(
            f"{number.get(r.source, r.source)}>{number.get(r.target, r.target)}:"
            f"{r.kind.value}:{r.probability!r}"
            for r in graph.relations
        )
        evidence = _digest("\n".join(rows))
    text = _digest(graph.response) if graph.response.strip() else ""
    return ResponseIdentity(graph.id, text, claims, evidence)


def labeled_identities(graphs: Iterable[FactGraph]) -> tuple[ResponseIdentity, ...]:
    """Return the identities of the responses that have a label, in order."""
    return tuple(
        identity_of(graph)
        for graph in graphs
        if any(label is not None for label in graph.column("atoms", "label"))
    )


def learned_from(
    taught: Sequence[ResponseIdentity], graphs: Iterable[FactGraph]
) -> list[LearnedFrom]:
    """Return the mark of each response: whether the labels of this response were learned from.

    Two responses are the same if their texts are equal, or if at least half of the claims of the
    smaller one are claims of the other. If these texts are missing on one side, responses with
    equal ids or equal relations are the same.

    Args:
        taught: identities of the responses whose labels were learned from.
        graphs: the responses to mark.
    """
    with_claim: dict[str, list[int]] = {}
    for number, each in enumerate(taught):
        for claim in each.claims:
            with_claim.setdefault(claim, []).append(number)
    texts = {each.text for each in taught} - {""}
    by_evidence: dict[str, list[ResponseIdentity]] = {}
    for each in taught:
        by_evidence.setdefault(each.evidence, []).append(each)
    by_id = {each.id: each for each in taught}

    def is_taught(asked: ResponseIdentity) -> bool:
        if asked.text in texts:
            return True
        if asked.evidence and any(
            not _differ(asked, each) for each in by_evidence.get(asked.evidence, ())
        ):
            return True
        shared = Counter(number for claim in asked.claims for number in with_claim.get(claim, ()))
        if any(
            2 * count >= min(len(asked.claims), len(taught[number].claims))
            for number, count in shared.items()
        ):
            return True
        same_id = by_id.get(asked.id)
        return same_id is not None and not _differ(asked, same_id)

    return [
        LearnedFrom.THIS_RESPONSE if is_taught(identity_of(graph)) else LearnedFrom.OTHER_RESPONSES
        for graph in graphs
    ]


def relations_mark(graph: FactGraph) -> LearnedFrom | None:
    """Return the mark of the labels that a response's relation model was learned from; None if
    unmarked.

    Raises:
        InputError: if the metadata hold an invalid mark.
    """
    facts = graph.metadata.get(RELATIONS_KEY)
    value = facts.get(LEARNED_FROM) if isinstance(facts, Mapping) else None
    return mark_of(value, f"response {graph.id!r}: metadata {RELATIONS_KEY!r}")


def joined_mark(*marks: LearnedFrom | None) -> LearnedFrom | None:
    """Return the mark of a probability that depends on several marked inputs; None if unmarked."""
    known = [mark for mark in marks if mark is not None]
    if LearnedFrom.THIS_RESPONSE in known:
        return LearnedFrom.THIS_RESPONSE
    return known[0] if known else None


def mark_of(value: object, where: str) -> LearnedFrom | None:
    """Return the mark in a cell of a table or in metadata; None if the cell is empty.

    Raises:
        InputError: if the value is not a mark; `where` names the place.
    """
    if value is None or value != value or not str(value).strip():
        return None
    try:
        return LearnedFrom(" ".join(str(value).split()).casefold())
    except ValueError:
        raise InputError(
            f"{where}: {value!r} does not say which labels taught a probability; write "
            f"{' or '.join(map(repr, map(str, LearnedFrom)))}, or leave it empty"
        ) from None


def _differ(identity: ResponseIdentity, other: ResponseIdentity) -> bool:
    """Return whether two responses that both have texts have different ones."""
    return bool((identity.claims and other.claims) or (identity.text and other.text))


def _digest(text: str) -> str:
    normal = normalized_text(text).encode("utf-8", "surrogatepass")
    return hashlib.sha256(normal).hexdigest()[:DIGITS]
