"""WiCE: claims of Wikipedia with the cited page of each, labeled by people.

Source: Kamoi et al. 2023, "WiCE: Real-World Entailment for Claims in Wikipedia", ryokamoi/wice.
Based on: data/entailment_retrieval/claim and subclaim (`label`, `supporting_sentences`, `claim`,
`evidence`, `meta` with `id` and `claim_title`).

Supported is true and not supported false; partially supported is not a label.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import (
    EMPTY_IS_NONE,
    ToolRecord,
    filled,
    record_of,
    root_path,
    stated_id,
)
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.variants import merge_duplicate_contexts

LABELS: Mapping[str, bool | None] = MappingProxyType(
    {"supported": True, "partially_supported": None, "not_supported": False}
)
"""Annotators' labels."""

_TITLE = re.compile(r"\(meta data\) TITLE: (?P<title>.*)")
_PART = re.compile(r"-\d+$")


class WiceMeta(ToolRecord):
    """Origin of a claim."""

    id: Any = None
    claim_title: str | None = None


class WiceClaim(ToolRecord):
    """A claim, its label, and its cited page."""

    claim: str
    label: Any = None
    evidence: list[str] | None = None
    supporting_sentences: list[Any] | None = None
    meta: Annotated[WiceMeta | None, EMPTY_IS_NONE] = None


@dataclass(frozen=True)
class CitedClaim:
    """A claim, or a part of one, and its cited page.

    Attributes:
        response: id of the claim, or of the claim that it is a part of.
        text: the claim.
        label: the annotators' word.
        page: sentences of the page.
        supporting: sets of numbers of the sentences that support the claim, from 0.
        topic: title of the Wikipedia article.
    """

    response: str
    text: str
    label: str | None
    page: tuple[str, ...]
    supporting: Sequence[object]
    topic: str


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a labeled claim with its evidence."""
    return {"label", "claim", "evidence", "supporting_sentences"} <= record.keys()


def read(obj: object, source: Source, line: int | None = None) -> CitedClaim:
    """Return the claim of a line.

    Raises:
        InputError: if the record is malformed or the label unknown.
    """
    record, top = record_of(WiceClaim, obj, source, line), root_path(source, line)
    label = record.label
    if label is not None and (not isinstance(label, str) or label not in LABELS):
        raise InputError(
            f"{top}.label: {shown(label)} is not a label; use one of {', '.join(LABELS)}"
        )
    about = record.meta or WiceMeta()
    # Parts of a claim have its id and a number.
    name = _PART.sub("", stated_id(about.id, f"{top}.meta.id"))
    return CitedClaim(
        name or record_id(source, line),
        filled(record.claim, f"{top}.claim"),
        label,
        tuple(record.evidence or ()),
        record.supporting_sentences or [],
        about.claim_title or "",
    )


def gather(claims: Sequence[CitedClaim]) -> list[FactGraph]:
    """Return the fact graphs of claims; the parts of one claim, with its page, are one response.

    The metadata hold the numbers of supporting sentences (`supporting_sentences`) by atom.
    """
    by_response: dict[str, list[CitedClaim]] = {}
    for claim in claims:
        by_response.setdefault(claim.response, []).append(claim)
    return [_graph(name, parts) for name, parts in by_response.items()]


def _graph(name: str, claims: Sequence[CitedClaim]) -> FactGraph:
    contexts = []
    supporting: dict[str, Any] = {}
    for number, claim in enumerate(claims, 1):
        head = _TITLE.fullmatch(claim.page[0].strip()) if claim.page else None
        text = "\n".join(claim.page[1:] if head else claim.page)
        title = head["title"] if head else ""
        if text.strip():
            contexts.append(Context(f"c{number}", text, title=title, retrieved_for=(f"a{number}",)))
        if any(claim.supporting):
            supporting[f"a{number}"] = claim.supporting
    graph = FactGraph(
        name,
        tuple(
            Atom(
                f"a{number}",
                claim.text,
                label=None if claim.label is None else LABELS[claim.label],
                annotation=claim.label,
            )
            for number, claim in enumerate(claims, 1)
        ),
        tuple(contexts),
        response=" ".join(claim.text for claim in claims),
        topic=claims[0].topic,
        metadata={"supporting_sentences": supporting} if supporting else {},
    )
    return merge_duplicate_contexts(graph)


FORMAT = Format(
    name="wice",
    title="WiCE, claims of Wikipedia with the page that they cite",
    owner="ryokamoi/wice",
    holds="responses",
    keys=("label", "claim", "evidence", "supporting_sentences"),
    recognize=recognize,
    read=read,
    record=WiceClaim,
    fields=("label", "claim", "evidence", "supporting_sentences", "meta.id", "meta.claim_title"),
    gather=gather,
)
