"""Places of records in files, for errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from factormodels.decoded_values import as_object
from factormodels.io.source.opening import STANDARD_INPUT, source_name


def location(source: str | os.PathLike[str], line: int | None = None) -> str:
    """Return the name of a file, or of a line of it (counted from 1), for errors."""
    name = source_name(source)
    return name if line is None else f"{name}, line {line}"


def record_id(source: str | os.PathLike[str], line: int | None = None) -> str:
    """Return the id of a record without one: the file's stem, and its line if there are several."""
    path = Path("standard-input" if os.fspath(source) == STANDARD_INPUT else source)
    stem = (path.with_suffix("") if path.suffix == ".gz" else path).stem or "record"
    return stem if line is None else f"{stem}-{line:03d}"


def record_at(
    value: object, source: str | os.PathLike[str], line: int | None = None
) -> tuple[dict[str, Any], str]:
    """Return the record of a file or a line, and its place for errors.

    Raises:
        InputError: if it is not a JSON object.
    """
    where = location(source, line)
    return as_object(value, where), where
