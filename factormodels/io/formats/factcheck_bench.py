"""Factcheck-Bench's JSON Lines: responses split into claims, with evidence, stances and labels.

Source: Wang et al. 2024, "Factcheck-Bench: Fine-Grained Evaluation Benchmark for Automatic
Fact-checkers", and its data release (yuxiaw/Factcheck-GPT, Apache-2.0).

Every claim has a label and five passages of evidence, and nearly every passage a human stance. The
embedded dataset contains records without texts, and the reader of the raw file makes the same
records, so that both give the same graphs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from factormodels.claims import Atom, Context, Relation
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import ToolRecord, path_of, placed, record_of
from factormodels.io.formats.stances import (
    DEFAULT_STANCES,
    StanceMapping,
    relation_from_stances,
    resolve_stances,
)
from factormodels.io.json import read_json_lines
from factormodels.io.source.places import location
from factormodels.io.tables.records import Source
from factormodels.nouns import counted
from factormodels.variants import normalized_text

_FACTUAL = "factual"
"""Check-worthiness of an ordinary claim; the other values are "opinion" and "not_a_claim"."""


class FactcheckSentence(ToolRecord):
    """A sentence: lists with an entry per claim."""

    claims: list[str]
    claims_factuality_label: list[Any]
    auto_evidence: list[list[str]]
    stance_claim_autoEvid: list[list[Any]]
    claim_checkworthiness: list[str | None] | None = None
    auto_evidence_url: list[list[str | None] | None] | None = None


class FactcheckResponse(ToolRecord):
    """A response by sentences, as in the release."""

    response: str
    sentences: dict[str, FactcheckSentence]
    prompt: str | None = None
    response_factuality: Any = None


_ANNOTATIONS = {True: "true", False: "false", None: "unknown"}


class _CheckWorthiness(TypedDict, total=False):
    checkworthiness: str


class FactcheckClaim(_CheckWorthiness):
    """Claim of a response, without its text.

    Attributes:
        id: name of the claim in its response, the atom of the fact graph: a1, a2, ...
        sentence: index of its sentence in the response, from 1.
        label: the human judgment; None if it is "unknown".
        checkworthiness: "opinion" or "not_a_claim"; absent for ordinary, factual claims.
        evidence: retrieved evidence, in order: the evidence's name in its response (e1, e2, ...),
            the id of the passage, and the annotator's stance on passage and claim, None if not
            judged.
    """

    id: str
    sentence: int
    label: bool | None
    evidence: list[tuple[str, str, str | None]]


class FactcheckRecord(TypedDict):
    """Response of Factcheck-Bench without texts, as on a line of the embedded file.

    Attributes:
        id: name of the response: fcb-001, fcb-002, ... by line.
        factual: the annotators' verdict on the whole response; None if there is none.
        sentences: number of its sentences.
        passages: id of each passage of the response (c1, c2, ... by first appearance) -> hash of
            its normalized text, which identifies it across responses (None if it is empty).
        claims: the claims, in order.
    """

    id: str
    factual: bool | None
    sentences: int
    passages: dict[str, str | None]
    claims: list[FactcheckClaim]


@dataclass(frozen=True)
class FactcheckTexts:
    """The texts of a record, which the embedded data omit.

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
    """Return the fact graph of a record, with claims as atoms and passages as contexts.

    A passage retrieved for several claims is one context, retrieved for each; its stances become
    one relation per claim. Evidence without a judgment remains a context with its provenance and
    without a relation: it is missing, not irrelevant. The metadata hold `factual` (the verdict on
    the response, if any), the numbers of `sentences`, `evidence` and `stances`, the claims whose
    evidence was not judged (`claims_without_stances`), and the `checkworthiness` of claims that are
    not factual; the last two only if there are any.

    Args:
        record: the record.
        mapping: the relations of stances that differ from `DEFAULT_STANCES`.
        texts: the texts of the record; without them every text is empty.

    Raises:
        InputError: if the mapping is malformed.
    """
    relation_of = resolve_stances(mapping)
    texts = texts or FactcheckTexts()
    retrieved_for: dict[str, list[str]] = {passage: [] for passage in record["passages"]}
    relations: list[Relation] = []
    for claim in record["claims"]:
        stances: dict[str, list[str]] = {}
        for _, passage, stance in claim["evidence"]:
            if claim["id"] not in retrieved_for[passage]:
                retrieved_for[passage].append(claim["id"])
            if stance is not None:
                stances.setdefault(passage, []).append(stance)
        for passage, claim_stances in stances.items():
            relation = relation_from_stances(passage, claim["id"], claim_stances, relation_of)
            if relation is not None:
                relations.append(relation)
    return FactGraph(
        id=record["id"],
        atoms=tuple(
            Atom(
                id=claim["id"],
                text=texts.claims.get(claim["id"], ""),
                label=claim["label"],
                annotation=_ANNOTATIONS[claim["label"]],
                sentence=claim["sentence"],
            )
            for claim in record["claims"]
        ),
        contexts=tuple(
            Context(
                id=passage,
                text=texts.passages.get(passage, ""),
                link=texts.links.get(passage, ""),
                retrieved_for=tuple(retrieved_for[passage]),
                key=key,
            )
            for passage, key in record["passages"].items()
        ),
        relations=tuple(relations),
        query=texts.query,
        response=texts.response,
        metadata=_metadata(record),
    )


def _metadata(record: FactcheckRecord) -> dict[str, Any]:
    claims = record["claims"]
    stances = [stance for claim in claims for _, _, stance in claim["evidence"]]
    unjudged = [
        claim["id"]
        for claim in claims
        if claim["evidence"] and all(stance is None for _, _, stance in claim["evidence"])
    ]
    not_factual = {
        claim["id"]: claim["checkworthiness"] for claim in claims if "checkworthiness" in claim
    }
    metadata: dict[str, Any] = {
        "sentences": record["sentences"],
        "evidence": len(stances),
        "stances": sum(stance is not None for stance in stances),
    }
    if record["factual"] is not None:
        metadata["factual"] = record["factual"]
    if unjudged:
        metadata["claims_without_stances"] = unjudged
    if not_factual:
        metadata["checkworthiness"] = not_factual
    return metadata


_KEY_DIGITS = 16


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a response and its sentences."""
    return "response" in record and "sentences" in record


def read(
    obj: object, source: Source, line: int | None = None, mapping: StanceMapping | None = None
) -> FactGraph:
    """Return the fact graph of one line; see `graph_from_record` for the conversion.

    Args:
        obj: the JSON value of the line.
        source: the file, for error messages.
        line: the line in the file, from 1; the id is "fcb-" and its three digits.
        mapping: the relations of stances that differ from `DEFAULT_STANCES`.

    Raises:
        InputError: if the record or the mapping is malformed.
    """
    record, texts = split_record(obj, source, 1 if line is None else line)
    return graph_from_record(record, mapping, texts)


def read_factcheck_bench(
    path: str | os.PathLike[str], mapping: StanceMapping | None = None
) -> list[FactGraph]:
    """Return one fact graph per response of a Factcheck-Bench file, in order.

    Args:
        path: the file.
        mapping: the relations of stances that differ from `DEFAULT_STANCES`.

    Raises:
        InputError: if the file cannot be read or is empty, or a line or the mapping is malformed.
    """
    graphs = [read(obj, path, line, mapping) for line, obj in read_json_lines(path)]
    if not graphs:
        raise InputError(f"{path}: the file holds no record; give one JSON object per line")
    return graphs


def split_record(obj: object, source: Source, line: int) -> tuple[FactcheckRecord, FactcheckTexts]:
    """Return the record and the texts of one line of Factcheck-Bench.

    Passages are the same if their normalized texts are equal: the release repeats passages between
    the claims of a response, sometimes with several addresses (the first is kept).

    Raises:
        InputError: if the line is malformed: a key missing or of another type, lists of unequal
            length in a sentence, an unknown label or stance.
    """
    response, where = record_of(FactcheckResponse, obj, source, line), location(source, line)
    pool = _Passages()
    claims: list[FactcheckClaim] = []
    claim_texts: dict[str, str] = {}
    for number, (name, sentence) in enumerate(response.sentences.items(), start=1):
        at = f"{where}: {path_of(['sentences', name])}"
        _check_lengths(sentence, at)
        for position, text in enumerate(sentence.claims):
            claim_id = f"a{len(claims) + 1}"
            claim_texts[claim_id] = text
            claims.append(_claim(claim_id, number, sentence, position, at, pool))
    record = FactcheckRecord(
        id=f"fcb-{line:03d}",
        factual=_verdict(response.response_factuality, f"{where}: $.response_factuality"),
        sentences=len(response.sentences),
        passages=pool.keys,
        claims=claims,
    )
    return record, FactcheckTexts(
        response.prompt or "", response.response, claim_texts, pool.texts, pool.links
    )


def _verdict(value: object, where: str) -> bool | None:
    if not (value is None or isinstance(value, bool) or value == "NA"):
        raise InputError(f"{where}: {shown(value)} is not a verdict; use true, false or 'NA'")
    return value if isinstance(value, bool) else None


class _Passages:
    """The passages of a response: ids by first appearance of their normalized text."""

    def __init__(self) -> None:
        self.keys: dict[str, str | None] = {}
        self.texts: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self.n_evidence = 0
        self._ids: dict[str, str] = {}

    def add(self, text: str, link: str) -> tuple[str, str]:
        """Return the ids of a new piece of evidence and of its passage."""
        self.n_evidence += 1
        key = passage_key(text)
        new = f"c{len(self.keys) + 1}"
        # Empty passages are not duplicates of each other.
        passage = new if key is None else self._ids.setdefault(key, new)
        if passage == new:
            self.keys[passage], self.texts[passage], self.links[passage] = key, text, link
        return f"e{self.n_evidence}", passage


def passage_key(text: str) -> str | None:
    """Return a hash that identifies a passage, or None if it is empty.

    The hash is 16 hexadecimal digits of the SHA-256 of the normalized text, so that differences of
    case, white space and Unicode form do not matter.
    """
    normalized = normalized_text(text)
    if not normalized:
        return None
    return hashlib.sha256(normalized.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_DIGITS]


_COLUMNS = (
    "claims_factuality_label",
    "claim_checkworthiness",
    "auto_evidence",
    "auto_evidence_url",
    "stance_claim_autoEvid",
)


def _check_lengths(sentence: FactcheckSentence, where: str) -> None:
    """Check that the lists of a sentence have an entry per claim."""
    for key in _COLUMNS:
        column = getattr(sentence, key)
        if column is not None and len(column) != len(sentence.claims):
            raise InputError(
                f"{where}.{key} has {counted(len(column), 'entry', 'entries')} for "
                f"{counted(len(sentence.claims), 'claim')}; give one per claim"
            )


def _claim(
    claim_id: str,
    number: int,
    sentence: FactcheckSentence,
    position: int,
    where: str,
    pool: _Passages,
) -> FactcheckClaim:
    """Return a claim, adding its passages to the pool.

    Args:
        claim_id: id of the claim.
        number: index of its sentence, from 1.
        sentence: its sentence.
        position: its position in the sentence, from 0.
        where: the place of the sentence, for errors.
        pool: the passages of the response.
    """
    label = sentence.claims_factuality_label[position]
    # 1 and 0 equal True and False, but the release has only the latter.
    if not (isinstance(label, bool) or label == "unknown"):
        raise InputError(
            f"{where}.claims_factuality_label[{position}]: {shown(label)} is not a label; "
            "use true, false or 'unknown'"
        )
    texts = sentence.auto_evidence[position]
    stances = sentence.stance_claim_autoEvid[position] or [None] * len(texts)
    addresses = sentence.auto_evidence_url
    links = (addresses[position] if addresses else None) or [None] * len(texts)
    columns: dict[str, Sequence[object]] = {
        "stance_claim_autoEvid": stances,
        "auto_evidence_url": links,
    }
    for key, column in columns.items():
        if len(column) != len(texts):
            raise InputError(
                f"{where}.{key}[{position}] has {counted(len(column), 'entry', 'entries')} for "
                f"{counted(len(texts), 'passage')}; give one per passage, or none"
            )
    stances_at = f"{where}.stance_claim_autoEvid[{position}]"
    evidence: list[tuple[str, str, str | None]] = []
    for text, (stance, at), link in zip(texts, placed(stances, stances_at), links, strict=True):
        if stance is not None and (not isinstance(stance, str) or stance not in DEFAULT_STANCES):
            raise InputError(
                f"{at}: the stance {shown(stance)} is unknown; "
                f"use one of {', '.join(DEFAULT_STANCES)}"
            )
        evidence.append((*pool.add(text, link or ""), stance))
    worths = sentence.claim_checkworthiness
    stated = worths[position] if worths else None
    worth = _FACTUAL if stated is None else stated
    check_worthiness: _CheckWorthiness = {} if worth == _FACTUAL else {"checkworthiness": worth}
    return {
        "id": claim_id,
        "sentence": number,
        "label": label if isinstance(label, bool) else None,
        **check_worthiness,
        "evidence": evidence,
    }


FORMAT = Format(
    name="factcheck-bench",
    title="Factcheck-Bench",
    owner="yuxiaw/Factcheck-GPT",
    holds="responses",
    keys=("response", "sentences"),
    recognize=recognize,
    read=read,
    record=FactcheckResponse,
    fields=(
        *("prompt", "response", "response_factuality", "sentences{}.claims"),
        *("sentences{}.claims_factuality_label", "sentences{}.auto_evidence"),
        *("sentences{}.auto_evidence_url", "sentences{}.stance_claim_autoEvid"),
    ),
    also=("sentences{}.text", "sentences{}.revised_claims"),
)
