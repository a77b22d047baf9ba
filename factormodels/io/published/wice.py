"""WiCE: claims of Wikipedia with the page that each cites, labelled by people.

Source: Kamoi et al. 2023, "WiCE: Real-World Entailment for Claims in Wikipedia", ryokamoi/wice.
Relied on: data/entailment_retrieval/claim and subclaim (`label`, `supporting_sentences`, `claim`,
`evidence`, `meta` with `id` and `claim_title`).

Supported is true and not supported false; partially supported is no label.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import (
    as_object,
    filled_field,
    list_field,
    named_id,
    shown,
    text_field,
    texts_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.records import Source
from factormodels.variants import merge_duplicate_contexts

LABELS: Mapping[str, bool | None] = MappingProxyType(
    {"supported": True, "partially_supported": None, "not_supported": False}
)
"""Annotators' labels."""

_TITLE = re.compile(r"\(meta data\) TITLE: (?P<title>.*)")
_PART = re.compile(r"-\d+$")


@dataclass(frozen=True)
class CitedClaim:
    """A claim, or a part of one, and the page that it cites.

    Attributes:
        response: id of the claim that it is, or is a part of.
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


def parse_wice(obj: object, source: Source, line: int | None = None) -> CitedClaim:
    """Return the claim of a line.

    Raises:
        InputError: if the record is malformed or the label unknown.
    """
    record, where = record_at(obj, source, line)
    label = record.get("label")
    if label is not None and (not isinstance(label, str) or label not in LABELS):
        raise InputError(
            f"{where}: key 'label': {shown(label)} is not a label; use one of {', '.join(LABELS)}"
        )
    about = as_object(record.get("meta") or {}, f"{where}: key 'meta'")
    name = named_id(about, ("id",), f"{where}: key 'meta'") or record_id(source, line)
    return CitedClaim(
        _PART.sub("", name) if about.get("id") else name,
        filled_field(record, "claim", where),
        label,
        tuple(texts_field(record, "evidence", where)),
        list_field(record, "supporting_sentences", where, []),
        text_field(about, "claim_title", f"{where}: key 'meta'", ""),
    )


def gather_wice(claims: Sequence[CitedClaim]) -> list[FactGraph]:
    """Fact graphs of claims: the parts of one claim, which share its page, are one response.

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
