"""VeriScore's verification: lines of `verification_*.jsonl`.

Source: Yixiao-Song/VeriScore (MIT by its setup.py). A line has the verdict on a claim, or is a
    response with a list of verdicts, which VeriFastScore also writes; a response on which the tool
    abstained is a separate line.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from factormodels.decoded_values import as_object, as_text, shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.judged import UNSUPPORTED, Judged, judged_response
from factormodels.io.formats.record import ToolRecord, filled, placed, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    RecordedVerdict,
)

_ASSESSOR = "veriscore"

_VERDICTS: Mapping[str, RecordedVerdict] = MappingProxyType(
    {
        "supported": SUPPORTED,
        "unsupported": UNSUPPORTED,
        "contradicted": CONTRADICTED,
        "inconclusive": UNDECIDED,
    }
)


class VeriscoreVerdict(ToolRecord):
    """A claim with its verdict."""

    claim: str
    verification_result: str | None = None


class VeriscoreResponse(ToolRecord):
    """A response with its extracted and verified claims."""

    question: str | None = None
    response: str | None = None
    all_claims: list[str] | None = None
    claim_verification_result: list[VeriscoreVerdict] | None = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a line of VeriScore's verification."""
    # FaStfact also states whether a response abstains, and has claims under a different key.
    whole = {"abstained", "response"} <= record.keys() and "claims_lst" not in record
    if whole or isinstance(record.get("claim_verification_result"), list):
        return True
    verdicts = record.values()
    return bool(record) and all(
        isinstance(v, dict) and "verification_result" in v for v in verdicts
    )


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of a line.

    Extracted claims that were not verified have no verdict; a response on which the tool abstained
    has no claims.

    Raises:
        InputError: if the record is malformed.
    """
    name, top = record_id(source, line), root_path(source, line)
    if isinstance(obj, dict) and not {"claim_verification_result", "abstained"} & obj.keys():
        return judged_response(name, _by_claim(obj, top), _ASSESSOR)
    response = record_of(VeriscoreResponse, obj, source, line)
    results = placed(response.claim_verification_result or (), f"{top}.claim_verification_result")
    judged: list[Judged] = [
        (filled(verified.claim, f"{where}.claim"), _verdict(verified.verification_result))
        for verified, where in results
    ]
    known = {claim for claim, _ in judged}
    judged += [
        (claim, None) for claim in dict.fromkeys(response.all_claims or ()) if claim not in known
    ]
    return judged_response(
        name, judged, _ASSESSOR, query=response.question, response=response.response
    )


def _by_claim(record: Mapping[str, Any], top: str) -> list[Judged]:
    """Return the claims of a line whose keys are claims."""
    judged: list[Judged] = []
    for claim, value in record.items():
        if not claim.strip():
            raise InputError(f"{top}: a claim is empty; give its text or drop it")
        where = f"{top}[{shown(claim)}]"
        word = as_object(value, where).get("verification_result")
        if word is not None:
            as_text(word, f"{where}.verification_result")
        judged.append((claim, _verdict(word)))
    return judged


def _verdict(word: str | None) -> RecordedVerdict | None:
    # The tool keeps the first sentence of an answer, whatever its content.
    return _VERDICTS.get((word or "").strip().strip(".").casefold())


FORMAT = Format(
    name="veriscore-output",
    title="VeriScore, verified claims",
    owner="Yixiao-Song/VeriScore, MIT",
    holds="responses",
    keys=("verification_result",),
    recognize=recognize,
    read=read,
    record=VeriscoreResponse,
    also=("abstained", "*.verification_result", "*.response"),
    verdicts=ToolVerdicts(
        tool="VeriScore, VeriFastScore",
        file=(
            "`verification_*.jsonl` and `decomposition_verification_*.jsonl`: "
            "verdicts by claim, or a response with its `claim_verification_result`"
        ),
        probability="1, 0; inconclusive ½; a claim that was extracted and not verified has none",
    ),
)
