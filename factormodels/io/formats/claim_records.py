"""Claims with labels and a model's own judgments, the input of `factormodels self-knowledge`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.io.claim_records import ClaimRecord, parse_record
from factormodels.io.formats.format import Format
from factormodels.io.source.places import location
from factormodels.io.tables.records import Source

_KEYS = ("response", "sentence", "claim", "label")


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the keys of a claim with its label."""
    return all(key in record for key in _KEYS)


def read(obj: Any, source: Source, line: int | None = None) -> ClaimRecord:
    """Return the claim of a record.

    Raises:
        InputError: if the record is malformed.
    """
    return parse_record(obj, location(source, line))


FORMAT = Format(
    name="claim-records",
    title="claims with labels and a model's own judgments",
    owner="this project, as `factormodels self-knowledge` reads it",
    holds="claims",
    keys=_KEYS,
    recognize=recognize,
    read=read,
    fields=("sentences", "judgments|judgements"),
    closed=True,
)
