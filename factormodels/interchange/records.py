"""Atoms, contexts and relations as plain records, and back, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from factormodels.claims import Atom, Context, Relation
from factormodels.errors import InputError

Record = TypeVar("Record", Atom, Context, Relation)


def values(record: Atom | Context | Relation) -> dict[str, Any]:
    """Fields of a record by name."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def checked_record(row: Mapping[str, Any], kind: type[Record], where: str) -> Record:
    """Record of fields by name; a missing value (None or NaN) stands for the default.

    Raises:
        InputError: for an unknown or a missing field, or a value out of range; `where` names it.
    """
    known = {field.name for field in fields(kind)}
    unknown = set(row) - known
    if unknown:
        raise InputError(
            f"{where}: there is no field {min(unknown)!r}; use {', '.join(sorted(known))}"
        )
    given: dict[str, Any] = {
        name: _native(value) for name, value in row.items() if not _is_missing(value)
    }
    lacking = [
        name
        for name in ("id", "source", "target", "kind", "probability")
        if name in known and name not in given
    ]
    if lacking:
        raise InputError(f"{where}: {lacking[0]!r} is missing; add it")
    try:
        return kind(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _is_missing(value: object) -> bool:
    import pandas as pd

    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def _native(value: object) -> object:
    """What NumPy and pandas wrap as Python's own type."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", 0) == 0 else value
