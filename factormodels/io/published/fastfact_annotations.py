"""What people did to a pipeline's claims, in the files of FaStfact-Bench's annotation tool.

A response has `claims_lst`; an annotated claim has `annotation_status_details`:

    {"action": "kept", "modification": "unchanged" or "revised", "agreement": "agreed",
    "disagreed_corrected" or "verification_pending"}
    {"action": "removed", "reason": "redundant"}    {"action": "new"}

and beside it `claim` (the pipeline's text), `revised_claim` (null where it was left), `pre-label`,
`verification_result.verification_label` and `annotator_label`. A file that nobody annotated, such
as the tool's example, has the pipeline's side alone. `fastfact_bench` reads the same files as
responses with claims as people left them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from factormodels.decoded_values import as_object, objects_field, shown, text_field
from factormodels.errors import InputError
from factormodels.io.json_records import record_at, record_id
from factormodels.io.published.fastfact_bench import LABELS, REMOVED
from factormodels.io.records import Source

DETAILS = "annotation_status_details"


class Operation(StrEnum):
    """What people did to a claim (FaStfact, appendix F and table 2)."""

    UNCHANGED = "unchanged"
    REVISED = "revised"
    REMOVED = "removed"
    ADDED = "added"


class Stage(StrEnum):
    """Where the pipeline took its verdict."""

    PRE_VERIFIED = "pre-verified"
    """At extraction, without a search."""
    VERIFIED = "verified"
    """After a search, from evidence."""
    NONE = "none"
    """Nowhere: people added the claim, or the pipeline says nothing of it."""


@dataclass(frozen=True, slots=True)
class AnnotatedClaim:
    """A claim of the pipeline or of people.

    Attributes:
        id: its id in the file; empty if it has none.
        original: the pipeline's text; empty of an added claim.
        text: what people left of it; empty of a removed claim.
        operation: what they did; None where nobody annotated the response.
        stage: where the pipeline's verdict is from.
        verdict: the pipeline's, in its own words; empty where there is none.
        human: the person's label; empty where there is none.
        agreement: what the person said of the verdict: agreed, disagreed_corrected or
            verification_pending; empty where nothing was said.
        reason: why it was removed.
    """

    id: str
    original: str
    text: str
    operation: Operation | None
    stage: Stage
    verdict: str
    human: str
    agreement: str
    reason: str


@dataclass(frozen=True)
class AnnotatedResponse:
    """A response whose claims a pipeline found and people may have annotated.

    Attributes:
        id: of the response.
        model: that wrote it; empty if it is not said.
        benchmark: that its question is from; empty if it is not said.
        claims: in order, those that were removed included.
        is_annotated: whether a person annotated it.
        tokens: tokens that the pipeline took, by stage, where the file says them.
    """

    id: str
    model: str
    benchmark: str
    claims: tuple[AnnotatedClaim, ...]
    is_annotated: bool
    tokens: Mapping[str, float]


def parse_annotations(obj: object, source: Source, line: int | None = None) -> AnnotatedResponse:
    """Annotated response of a JSON value.

    Raises:
        InputError: if the record is malformed, or an action or label is unknown.
    """
    record, where = record_at(obj, source, line)
    entries = objects_field(record, "claims_lst", where)
    details = [_details(claim, location) for claim, location in entries]
    annotated = any(details) or any("revised_claim" in claim for claim, _ in entries)
    claims = [
        _claim(claim, detail, location, annotated=annotated)
        for (claim, location), detail in zip(entries, details, strict=True)
        # The tool writes an entry with a status where no claim remained.
        if "status" not in detail
    ]
    return AnnotatedResponse(
        record_id(source, line),
        text_field(record, "model", where, ""),
        text_field(record, "prompt_source", where, ""),
        tuple(claim for claim in claims if claim is not None),
        annotated,
        _tokens(record),
    )


def _details(claim: Mapping[str, Any], location: str) -> dict[str, Any]:
    return as_object(claim.get(DETAILS) or {}, f"{location}: key {DETAILS!r}")


def _claim(
    claim: Mapping[str, Any], details: Mapping[str, Any], location: str, *, annotated: bool
) -> AnnotatedClaim | None:
    """A claim; None of one that a person added and took away again."""
    original = text_field(claim, "claim", location)
    revised = text_field(claim, "revised_claim", location, "")
    human = _human_label(claim, location)
    operation = None
    if annotated:
        operation = _operation(original, revised, human, details, location)
        if operation is Operation.REMOVED and details.get("origin") == "new":
            return None
    checked = as_object(
        claim.get("verification_result") or {}, f"{location}: key 'verification_result'"
    )
    verified = text_field(checked, "verification_label", location, "")
    prelabel = text_field(claim, "pre-label", location, "")
    stage = Stage.VERIFIED if verified else Stage.PRE_VERIFIED if prelabel else Stage.NONE
    if operation is Operation.ADDED:
        stage, verified, prelabel = Stage.NONE, "", ""
    return AnnotatedClaim(
        id=text_field(claim, "claim_id", location, ""),
        original="" if operation is Operation.ADDED else original,
        text="" if operation is Operation.REMOVED else revised or original,
        operation=operation,
        stage=stage,
        verdict=(verified or prelabel).casefold(),
        human="" if operation is Operation.REMOVED else human,
        agreement=str(details.get("agreement") or ""),
        reason=str(details.get("reason") or (human if human in REMOVED else "")),
    )


def _operation(
    original: str, revised: str, human: str, details: Mapping[str, Any], location: str
) -> Operation:
    action = details.get("action")
    if action == "removed" or human in REMOVED:
        return Operation.REMOVED
    if action == "new":
        return Operation.ADDED
    if action not in ("kept", None):
        raise InputError(
            f"{location}: key {DETAILS!r}: the action {shown(action)} is none of kept, removed and "
            "new; correct it"
        )
    return Operation.REVISED if revised and revised != original else Operation.UNCHANGED


def _human_label(claim: Mapping[str, Any], location: str) -> str:
    label = text_field(claim, "annotator_label", location, "").casefold()
    # Agreement with a verdict that the pipeline never gave is none.
    if label in ("unsure", ""):
        return ""
    if label not in LABELS and label not in REMOVED:
        raise InputError(
            f"{location}: key 'annotator_label': {shown(label)} is not a label; use null or one of "
            f"{', '.join((*LABELS, *REMOVED))}"
        )
    return label


def _tokens(record: Mapping[str, Any]) -> dict[str, float]:
    """Tokens by stage, as far as the record says them."""
    stats = record.get("token_stats")
    if not isinstance(stats, dict):
        return {}
    tokens: dict[str, float] = {}
    for stage, value in stats.items():
        parts = value.values() if isinstance(value, dict) else [value]
        numbers = [number for number in parts if isinstance(number, int | float)]
        if numbers:
            tokens[str(stage)] = float(sum(numbers))
    return tokens
