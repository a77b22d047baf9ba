"""A response of Factcheck-Bench without its texts, and the fact graph that it makes.

The embedded data set stores such records and the reader of the raw file makes them, so that both
come to the same graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from factormodels.claims import Atom, Context, Relation
from factormodels.fact_graph import FactGraph
from factormodels.io.stances import StanceMapping, relation_from_stances, resolve_stances

FACTUAL = "factual"
"""The check-worthiness of an ordinary claim; "opinion" and "not_a_claim" are the others."""

_ANNOTATIONS = {True: "true", False: "false", None: "unknown"}


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """One passage as retrieved for one claim.

    Attributes:
        id: name of the evidence in its response: e1, e2, ...
        passage: id of the passage, the context of the fact graph.
        stance: what the annotator said of passage and claim; None where nobody judged them.
    """

    id: str
    passage: str
    stance: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a response, without its text.

    Attributes:
        id: name of the claim in its response, the atom of the fact graph: a1, a2, ...
        sentence: index of its sentence in the response, from 1.
        label: the human judgement; None where it is "unknown".
        checkworthiness: "factual", "opinion" or "not_a_claim".
        evidence: what was retrieved for it, in order.
    """

    id: str
    sentence: int
    label: bool | None
    checkworthiness: str
    evidence: tuple[JudgedPassage, ...]


@dataclass(frozen=True, slots=True)
class FactcheckRecord:
    """One response of Factcheck-Bench without any text.

    Attributes:
        id: name of the response: fcb-001, fcb-002, ... by line.
        factual: the annotators' verdict on the whole response; None where there is none.
        sentences: number of its sentences.
        passages: id of each passage of the response (c1, c2, ... by first appearance) -> hash of
            its normalised text, which identifies it across responses (None if it is empty).
        claims: the claims, in order.
    """

    id: str
    factual: bool | None
    sentences: int
    passages: Mapping[str, str | None]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class FactcheckTexts:
    """The texts that belong to a record: everything that the embedded data leave out.

    Attributes:
        query: the prompt.
        response: the response.
        claims: id of a claim -> its text.
        passages: id of a passage -> its text.
        links: id of a passage -> the address it was first retrieved from.
    """

    query: str = ""
    response: str = ""
    claims: Mapping[str, str] = field(default_factory=dict)
    passages: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)


def graph_from_record(
    record: FactcheckRecord,
    mapping: StanceMapping | None = None,
    texts: FactcheckTexts | None = None,
) -> FactGraph:
    """Fact graph of a record: claims are atoms, passages are contexts.

    A passage retrieved for several claims is one context, retrieved for each; its stances become
    one relation per claim. Evidence that nobody judged stays a context with its provenance and
    without a relation: it is missing, not irrelevant. The metadata hold `factual` (the verdict on
    the response, where there is one), the numbers of `sentences`, `evidence` and `stances`, the
    claims whose evidence was not judged (`claims_without_stances`), and the `checkworthiness` of
    claims that are not factual; the last two only where there are any.

    Args:
        record: the record.
        mapping: the relations of stances that differ from `DEFAULT_STANCES`.
        texts: the texts that belong to it; without them every text is empty.

    Raises:
        InputError: if the mapping is malformed.
    """
    relation_of = resolve_stances(mapping)
    texts = texts or FactcheckTexts()
    retrieved_for: dict[str, list[str]] = {passage: [] for passage in record.passages}
    relations: list[Relation] = []
    for claim in record.claims:
        stances: dict[str, list[str]] = {}
        for evidence in claim.evidence:
            if claim.id not in retrieved_for[evidence.passage]:
                retrieved_for[evidence.passage].append(claim.id)
            if evidence.stance is not None:
                stances.setdefault(evidence.passage, []).append(evidence.stance)
        for passage, given in stances.items():
            relation = relation_from_stances(passage, claim.id, given, relation_of)
            if relation is not None:
                relations.append(relation)
    return FactGraph(
        id=record.id,
        atoms=tuple(
            Atom(
                id=claim.id,
                text=texts.claims.get(claim.id, ""),
                label=claim.label,
                annotation=_ANNOTATIONS[claim.label],
                sentence=claim.sentence,
            )
            for claim in record.claims
        ),
        contexts=tuple(
            Context(
                id=passage,
                text=texts.passages.get(passage, ""),
                link=texts.links.get(passage, ""),
                retrieved_for=tuple(retrieved_for[passage]),
                key=key,
            )
            for passage, key in record.passages.items()
        ),
        relations=tuple(relations),
        query=texts.query,
        response=texts.response,
        metadata=_metadata(record),
    )


def _metadata(record: FactcheckRecord) -> dict[str, Any]:
    evidence = [item for claim in record.claims for item in claim.evidence]
    unjudged = [
        claim.id
        for claim in record.claims
        if claim.evidence and all(item.stance is None for item in claim.evidence)
    ]
    not_factual = {
        claim.id: claim.checkworthiness
        for claim in record.claims
        if claim.checkworthiness != FACTUAL
    }
    metadata: dict[str, Any] = {
        "sentences": record.sentences,
        "evidence": len(evidence),
        "stances": sum(item.stance is not None for item in evidence),
    }
    if record.factual is not None:
        metadata["factual"] = record.factual
    if unjudged:
        metadata["claims_without_stances"] = unjudged
    if not_factual:
        metadata["checkworthiness"] = not_factual
    return metadata
