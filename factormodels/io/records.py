"""The records of a file, whatever it is written as: JSON, a JSON array, JSON Lines, or a table.

A record that cannot be made out is kept with its error, so that a file can be read strictly (the
first error is raised) or checked (every error is told).
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from factormodels.errors import InputError
from factormodels.io.json_records import location
from factormodels.io.json_text import decode, decode_elements

Source = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file.

    Attributes:
        value: the JSON value, or the row of a table as texts by column; None if it is bad.
        line: its line in the file, from 1 (the first, of a row over several); None where one value
            fills the file.
        error: why it cannot be made out; None if it can.
    """

    value: Any
    line: int | None
    error: InputError | None = None


def is_json(text: str) -> bool:
    """Whether a text begins as JSON does."""
    return text.lstrip().startswith(("{", "["))


def json_records(text: str, source: Source) -> Iterator[Record]:
    """Yield the records of JSON text: of its lines, of the array that it is, or its one value.

    An array with anything but objects is one value.
    """
    if text.lstrip().startswith("["):
        elements = list(decode_elements(text, source))
        if elements and all(isinstance(value, dict | InputError) for _, value in elements):
            for line, value in elements:
                if isinstance(value, InputError):
                    yield Record(None, line, value)
                else:
                    yield Record(value, line)
            return
    first, *others = [line for line in text.split("\n") if line.strip()]
    if not others or not (others[0].startswith("{") or _is_value(first)):
        yield _decoded(text, source, None)
        return
    # Only line feeds part records: a JSON text may hold other line separators of Unicode raw.
    for number, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            yield _decoded(row, source, number)


def column_names(text: str) -> tuple[str, ...]:
    """Names of the columns of a table (CSV, or with tabs); none if it cannot be one."""
    try:
        return tuple(next(_reader(text), ()))
    except csv.Error:
        return ()


def table_records(text: str, source: Source) -> Iterator[Record]:
    """Yield the rows of a table whose first row names its columns."""
    reader = _reader(text)
    names: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Record(None, line, _bad_row(source, line, f"it is no row ({error})"))
            return
        if cells is None:
            return
        if names is None:
            names = cells
        elif len(cells) != len(names) and cells:
            why = f"the row has {len(cells)} cells for {len(names)} columns"
            yield Record(None, line, _bad_row(source, line, why))
        elif cells:
            yield Record(dict(zip(names, cells, strict=True)), line)


def strictly(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records, and raise the error of the first that has one.

    Raises:
        InputError: the error of a record.
    """
    for record in records:
        if record.error is not None:
            raise record.error
        yield record


def _reader(text: str) -> Any:
    head = text.partition("\n")[0]
    delimiter = "\t" if head.count("\t") > head.count(",") else ","
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _bad_row(source: Source, line: int, why: str) -> InputError:
    return InputError(f"{location(source, line)}: {why}; correct its quotes and cells")


def _decoded(text: str, source: Source, line: int | None) -> Record:
    try:
        return Record(decode(text, source, line), line)
    except InputError as error:
        return Record(None, line, error)


def _is_value(text: str) -> bool:
    try:
        decode(text, "")
    except InputError:
        return False
    return True
