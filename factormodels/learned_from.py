"""Responses whose labels taught probabilities, so that no label is used twice.

A label that taught a probability cannot judge or correct it: the error on that claim is smaller
than on others. Whatever learns from labels therefore keeps the identities of the responses, and
what writes probabilities marks each with `LearnedFrom`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from factormodels.errors import InputError
from factormodels.evidence_source import RELATIONS_KEY
from factormodels.fact_graph import FactGraph
from factormodels.variants import normalised_text

LEARNED_FROM = "learned_from"
"""Key of the mark in the metadata of an assessor, and the end of the name of its column."""

DIGITS = 12
"""Hexadecimal digits of a digest: two texts of a million agree with a chance of .002."""


class LearnedFrom(StrEnum):
    """Labels from which a probability was learned, seen from its response."""

    THIS_RESPONSE = "this response"
    """Labels of the response itself are among them."""
    OTHER_RESPONSES = "other responses"
    """Only labels of other responses."""


@dataclass(frozen=True, slots=True)
class ResponseIdentity:
    """Facts by which a response is recognized, whatever its id.

    Attributes:
        id: id of the response.
        text: digest of its text; empty without one.
        claims: digests of the texts of its claims; empty without texts.
        evidence: digest of its relations; empty without relations.
    """

    id: str
    text: str
    claims: frozenset[str]
    evidence: str


def identity_of(graph: FactGraph) -> ResponseIdentity:
    """Identity of a response. Texts count without regard to case and white space."""
    claims = frozenset(_digest(text) for text in graph.column("atoms", "text") if text.strip())
    evidence = ""
    if graph.relations:
        # Claims are numbered, since a claim without a text may be renamed with its response.
        number = {name: str(position) for position, name in enumerate(graph.atom_ids)}
        rows = sorted(
            f"{number.get(r.source, r.source)}>{number.get(r.target, r.target)}:"
            f"{r.kind.value}:{r.probability!r}"
            for r in graph.relations
        )
        evidence = _digest("\n".join(rows))
    text = _digest(graph.response) if graph.response.strip() else ""
    return ResponseIdentity(graph.id, text, claims, evidence)


def labelled_identities(graphs: Iterable[FactGraph]) -> tuple[ResponseIdentity, ...]:
    """Identities of the responses that have a label, in order."""
    return tuple(
        identity_of(graph)
        for graph in graphs
        if any(label is not None for label in graph.column("atoms", "label"))
    )


def learned_from(
    taught: Sequence[ResponseIdentity], graphs: Iterable[FactGraph]
) -> list[LearnedFrom]:
    """Mark of each response: whether it is among those whose labels taught.

    Two responses are the same if their texts are, or if half of the claims of the smaller one are
    claims of the other. Only where these texts are missing on one side, equal ids or equal
    relations make two responses the same.

    Args:
        taught: identities of the responses whose labels taught.
        graphs: the responses asked for.
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
    """Labels that taught the relation model of a response; None if none is known to have.

    Raises:
        InputError: if its metadata hold something else.
    """
    facts = graph.metadata.get(RELATIONS_KEY)
    value = facts.get(LEARNED_FROM) if isinstance(facts, Mapping) else None
    return mark_of(value, f"response {graph.id!r}: metadata {RELATIONS_KEY!r}")


def joined_mark(*marks: LearnedFrom | None) -> LearnedFrom | None:
    """Mark of a probability that depends on several learned things; None if nothing is marked."""
    known = [mark for mark in marks if mark is not None]
    if LearnedFrom.THIS_RESPONSE in known:
        return LearnedFrom.THIS_RESPONSE
    return known[0] if known else None


def mark_of(value: object, where: str) -> LearnedFrom | None:
    """Mark in a cell of a table or in metadata; None where the cell is empty.

    Raises:
        InputError: if it is no mark; `where` names the place.
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
    """Whether the texts of two responses, where both have some, show that they are different."""
    return bool((identity.claims and other.claims) or (identity.text and other.text))


def _digest(text: str) -> str:
    normal = normalised_text(text).encode("utf-8", "surrogatepass")
    return hashlib.sha256(normal).hexdigest()[:DIGITS]
