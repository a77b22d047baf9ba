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
from typing import Annotated, Any

from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.io.formats.fastfact_bench import LABELS, REMOVED, FastfactVerdict
from factormodels.io.formats.record import (
    EMPTY_IS_NONE,
    ToolRecord,
    named,
    placed,
    record_of,
    root_path,
)
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source


class AnnotationRecord(ToolRecord):
    """A claim with what people did to it."""

    claim: str
    revised_claim: str | None = None
    annotator_label: str | None = None
    annotation_status_details: Annotated[dict[str, Any] | None, EMPTY_IS_NONE] = None
    verification_result: Annotated[FastfactVerdict | None, EMPTY_IS_NONE] = None
    pre_label: str | None = named("pre-label", None)
    claim_id: str | None = None


class AnnotationsRecord(ToolRecord):
    """A response whose claims people may have annotated."""

    claims_lst: list[AnnotationRecord]
    model: str | None = None
    prompt_source: str | None = None
    token_stats: Any = None


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


def annotated_response(obj: object, source: Source, line: int | None = None) -> AnnotatedResponse:
    """Return the annotated response of a JSON value.

    Raises:
        InputError: if the record is malformed, or an action or label is unknown.
    """
    record = record_of(AnnotationsRecord, obj, source, line)
    annotated = any(
        claim.annotation_status_details or claim.has("revised_claim") for claim in record.claims_lst
    )
    claims = [
        _claim(claim, where, annotated=annotated)
        for claim, where in placed(record.claims_lst, f"{root_path(source, line)}.claims_lst")
        # The tool writes an entry with a status where no claim remained.
        if "status" not in (claim.annotation_status_details or {})
    ]
    return AnnotatedResponse(
        record_id(source, line),
        record.model or "",
        record.prompt_source or "",
        tuple(claim for claim in claims if claim is not None),
        annotated,
        _tokens(record.token_stats),
    )


def _claim(claim: AnnotationRecord, where: str, *, annotated: bool) -> AnnotatedClaim | None:
    """Return a claim; None of one that a person added and took away again."""
    details = claim.annotation_status_details or {}
    revised = claim.revised_claim or ""
    human = _human_label(claim, where)
    operation = None
    if annotated:
        operation = _operation(claim.claim, revised, human, details, where)
        if operation is Operation.REMOVED and details.get("origin") == "new":
            return None
    verified = (claim.verification_result or FastfactVerdict()).verification_label or ""
    prelabel = claim.pre_label or ""
    stage = Stage.VERIFIED if verified else Stage.PRE_VERIFIED if prelabel else Stage.NONE
    if operation is Operation.ADDED:
        stage, verified, prelabel = Stage.NONE, "", ""
    return AnnotatedClaim(
        id=claim.claim_id or "",
        original="" if operation is Operation.ADDED else claim.claim,
        text="" if operation is Operation.REMOVED else revised or claim.claim,
        operation=operation,
        stage=stage,
        verdict=(verified or prelabel).casefold(),
        human="" if operation is Operation.REMOVED else human,
        agreement=str(details.get("agreement") or ""),
        reason=str(details.get("reason") or (human if human in REMOVED else "")),
    )


def _operation(
    original: str, revised: str, human: str, details: Mapping[str, Any], where: str
) -> Operation:
    action = details.get("action")
    if action == "removed" or human in REMOVED:
        return Operation.REMOVED
    if action == "new":
        return Operation.ADDED
    if action not in ("kept", None):
        raise InputError(
            f"{where}.annotation_status_details.action: {shown(action)} is none of kept, removed "
            "and new; correct it"
        )
    return Operation.REVISED if revised and revised != original else Operation.UNCHANGED


def _human_label(claim: AnnotationRecord, where: str) -> str:
    label = (claim.annotator_label or "").casefold()
    # Agreement with a verdict that the pipeline never gave is none.
    if label in ("unsure", ""):
        return ""
    if label not in LABELS and label not in REMOVED:
        raise InputError(
            f"{where}.annotator_label: {shown(label)} is not a label; use null or one of "
            f"{', '.join((*LABELS, *REMOVED))}"
        )
    return label


def _tokens(stats: object) -> dict[str, float]:
    """Return the tokens by stage, as far as a record says them."""
    if not isinstance(stats, dict):
        return {}
    tokens: dict[str, float] = {}
    for stage, value in stats.items():
        parts = value.values() if isinstance(value, dict) else [value]
        numbers = [number for number in parts if isinstance(number, int | float)]
        if numbers:
            tokens[str(stage)] = float(sum(numbers))
    return tokens
