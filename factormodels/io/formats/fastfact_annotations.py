"""Human edits of a pipeline's claims, in the files of FaStfact-Bench's annotation tool.

A response has `claims_lst`; an annotated claim has `annotation_status_details`:

    {"action": "kept", "modification": "unchanged" or "revised", "agreement": "agreed",
    "disagreed_corrected" or "verification_pending"}
    {"action": "removed", "reason": "redundant"}    {"action": "new"}

It also has `claim` (the pipeline's text), `revised_claim` (null if unchanged), `pre-label`,
`verification_result.verification_label` and `annotator_label`. A file without annotations, such as
the tool's example, has the pipeline's keys only. `fastfact_bench` reads the same files as responses
with the revised claims.
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
    """A claim with its human edits."""

    claim: str
    revised_claim: str | None = None
    annotator_label: str | None = None
    annotation_status_details: Annotated[dict[str, Any] | None, EMPTY_IS_NONE] = None
    verification_result: Annotated[FastfactVerdict | None, EMPTY_IS_NONE] = None
    pre_label: str | None = named("pre-label", None)
    claim_id: str | None = None


class AnnotationsRecord(ToolRecord):
    """A response whose claims may be annotated."""

    claims_lst: list[AnnotationRecord]
    model: str | None = None
    prompt_source: str | None = None
    token_stats: Any = None


class Operation(StrEnum):
    """Human edit of a claim (FaStfact, appendix F and table 2)."""

    UNCHANGED = "unchanged"
    REVISED = "revised"
    REMOVED = "removed"
    ADDED = "added"


class Stage(StrEnum):
    """Origin of the pipeline's verdict."""

    PRE_VERIFIED = "pre-verified"
    """Extraction, without a search."""
    VERIFIED = "verified"
    """Verification, from evidence found by a search."""
    NONE = "none"
    """No verdict: people added the claim, or the pipeline gave none."""


@dataclass(frozen=True, slots=True)
class AnnotatedClaim:
    """A claim of the pipeline or of people.

    Attributes:
        id: its id in the file; empty if it has none.
        original: the pipeline's text; empty for an added claim.
        text: the text after annotation; empty for a removed claim.
        operation: the human edit; None if the response was not annotated.
        stage: origin of the pipeline's verdict.
        verdict: the pipeline's verdict, in its own words; empty if there is none.
        human: the person's label; empty if there is none.
        agreement: the person's opinion of the verdict: agreed, disagreed_corrected or
            verification_pending; empty if not stated.
        reason: reason of the removal.
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
    """A response with claims of a pipeline, possibly annotated.

    Attributes:
        id: id of the response.
        model: model that wrote it; empty if not stated.
        benchmark: source of its question; empty if not stated.
        claims: claims in order, including removed ones.
        is_annotated: whether a person annotated it.
        tokens: tokens that the pipeline used, by stage, if the file states them.
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
        # The tool writes an entry with a status if no claim remained.
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
    """Return a claim; None for one that a person added and removed again."""
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
            f"{where}.annotation_status_details.action: {shown(action)} is not an action; use "
            "kept, removed or new"
        )
    return Operation.REVISED if revised and revised != original else Operation.UNCHANGED


def _human_label(claim: AnnotationRecord, where: str) -> str:
    label = (claim.annotator_label or "").casefold()
    # Agreement with a verdict that the pipeline did not give is not a label.
    if label in ("unsure", ""):
        return ""
    if label not in LABELS and label not in REMOVED:
        raise InputError(
            f"{where}.annotator_label: {shown(label)} is not a label; use null or one of "
            f"{', '.join((*LABELS, *REMOVED))}"
        )
    return label


def _tokens(stats: object) -> dict[str, float]:
    """Return the tokens by stage, as far as stated in a record."""
    if not isinstance(stats, dict):
        return {}
    tokens: dict[str, float] = {}
    for stage, value in stats.items():
        parts = value.values() if isinstance(value, dict) else [value]
        numbers = [number for number in parts if isinstance(number, int | float)]
        if numbers:
            tokens[str(stage)] = float(sum(numbers))
    return tokens
