"""The records of a file in any format: JSON, a JSON array, JSON Lines, or a table.

Tables are CSV, TSV, Excel workbooks, Parquet and Arrow. CSV is read by the standard library,
strictly: pandas would fill short rows, rename duplicate columns, read 01 as 1 and the text "NA" as
a missing value, and report an open quote as the end of the file.

Invalid records are kept with their error, so that a file can be read strictly (raising the first
error) or checked (reporting every error).
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.errors import InputError
from factormodels.io.json import counted_lines, decode, decode_elements
from factormodels.io.source.opening import (
    most_values,
    read_text_or_lines,
    refuse_larger_table,
    refuse_more_values,
)
from factormodels.io.source.places import location
from factormodels.io.tables.arrow import ARROW_MARKS, arrow_records
from factormodels.io.tables.class_names import classes_beside, stated_classes, with_class_names
from factormodels.io.tables.json_tables import rows_of_object
from factormodels.io.tables.workbooks import WORKBOOK_MARKS, is_workbook, workbook_rows
from factormodels.nouns import counted

Source = str | os.PathLike[str]

_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?[\r\n]', re.IGNORECASE)
"""Line before a table in which spreadsheets declare the separator of cells."""


@dataclass(frozen=True, slots=True)
class Record:
    """Record of a file.

    Attributes:
        value: the JSON value, or the row of a table by column (texts, or typed values for binary
            tables); None if invalid.
        line: its line in the file, from 1 (the first, if several); None if the file is a single
            value or has no lines.
        error: reason why it is invalid; None if it is valid.
    """

    value: Any
    line: int | None
    error: InputError | None = None


Content = str | Iterator[str] | tuple[Record, ...]
"""The text of a file; for JSON Lines, its lines; for a workbook, Parquet or Arrow, its rows."""


def read_content(source: Source, *, in_memory: bool) -> Content:
    """Read the text of a file; for JSON Lines, its lines, with one in memory at a time.

    Excel workbooks, Parquet and Arrow are read at once, and their rows are returned.

    Args:
        source: the file; `-` is standard input.
        in_memory: whether the results of all lines will be in memory together.

    Raises:
        InputError: if it cannot be read or is too large; for lines, during iteration.
        MissingDependencyError: for a workbook, if openpyxl is not installed.
    """
    content = read_text_or_lines(source, _are_lines, binary=is_binary, in_memory=in_memory)
    if isinstance(content, bytes):
        return binary_records(content, source)
    return counted_lines(content, source) if in_memory and not isinstance(content, str) else content


def is_binary(content: bytes) -> bool:
    """Return whether content with this beginning is a binary table."""
    return content.startswith(ARROW_MARKS + WORKBOOK_MARKS)


def binary_records(content: bytes, source: Source) -> tuple[Record, ...]:
    """Return the rows of a binary table, for whose bytes `is_binary` is true.

    Raises:
        InputError: if it is damaged, or too large when decompressed.
        MissingDependencyError: for a workbook, if openpyxl is not installed.
    """
    if is_workbook(content):
        _, rows, lines = workbook_rows(content, source)
        return tuple(map(Record, rows, lines))
    return tuple(Record(row, None) for row in arrow_records([(source, content)]).rows)


def _are_lines(first_two: Sequence[str]) -> bool:
    # An array may contain the records, and is one value.
    return _are_json_lines(first_two) and not first_two[0].lstrip().startswith("[")


def is_json(content: Content) -> bool:
    """Return whether a file is JSON Lines or a binary table, or its text begins like JSON."""
    if not isinstance(content, str):
        return True
    text = content.lstrip()
    if text.startswith("null"):
        first, _, rest = text.partition("\n")
        return _are_json_lines([first, rest.lstrip().partition("\n")[0]])
    return text.startswith(("{", "["))


def json_records(
    content: Content, source: Source, *, nan_is_missing: bool = False
) -> Iterator[Record]:
    """Yield the records of JSON: its lines, the elements of its array, or its single value.

    An array with other elements than objects is a single value. Rows of a binary table are records.

    Args:
        content: content of the file.
        source: the file, for messages.
        nan_is_missing: whether NaN is read as None; otherwise it is refused.
    """
    if isinstance(content, tuple):
        yield from content
        return
    if not isinstance(content, str):
        yield from _records_of_lines(content, source, nan_is_missing)
        return
    if content.lstrip().startswith("["):
        elements = list(decode_elements(content, source, nan_is_missing=nan_is_missing))
        if elements and all(isinstance(value, dict | InputError) for _, value in elements):
            for line, value in elements:
                if isinstance(value, InputError):
                    yield Record(None, line, value)
                else:
                    yield Record(value, line)
            return
    lines = content.split("\n")
    if _are_json_lines([line for line in lines if line.strip()][:2]):
        yield from _records_of_lines(counted_lines(lines, source), source, nan_is_missing)
        return
    yield _decoded(content, source, None, nan_is_missing)


def table_rows(records: Iterable[Record], source: Source) -> Iterator[Record]:
    """Yield records, replacing an object that is a table (`rows_of_object`) by its rows."""
    for record in records:
        # A value with a line is one of several records.
        if record.line is not None or not isinstance(record.value, dict):
            yield record
            continue
        try:
            rows = rows_of_object(record.value, source)
        except InputError as error:
            yield Record(None, None, error)
            continue
        yield from [record] if rows is None else [Record(row, None) for row in rows]


def _are_json_lines(first_two: Sequence[str]) -> bool:
    """Return whether a text with these first nonblank lines is JSON Lines."""
    if len(first_two) < 2:
        return False
    if not first_two[0].lstrip().startswith(("{", "[")):
        # A record may be null; no table has this single column and an object below it.
        is_missing = first_two[0].strip() == "null"
        return is_missing and first_two[1].startswith("{") and is_json_value(first_two[1])
    if first_two[1].startswith("{"):
        return is_json_value(first_two[1]) or not _continues(first_two[0])
    return is_json_value(first_two[0])


def _continues(line: str) -> bool:
    """Return whether a value that begins in a line continues: its brackets are open at the end.

    In damaged JSON Lines, a truncated line may end anywhere; a value that spans several lines ends
    its first one after a comma, a colon or a bracket.
    """
    text = line.strip()
    if not text.endswith((",", ":", "[", "{")):
        return False
    try:
        json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) - 1
    except (ValueError, RecursionError):
        # Errors of numbers and nesting are reported when the line is decoded.
        return False
    return False


def _records_of_lines(
    lines: Iterable[str], source: Source, nan_is_missing: bool
) -> Iterator[Record]:
    # Only line feeds separate records, since JSON text may contain other Unicode line separators.
    for number, row in enumerate(lines, start=1):
        if row.strip():
            yield _decoded(row, source, number, nan_is_missing)


def column_names(text: str) -> tuple[str, ...]:
    """Return the names of the columns of a table (CSV or TSV); none if it cannot be one."""
    try:
        return tuple(next(_reader(text), ()))
    except csv.Error:
        return ()


def table_records(text: str, source: Source) -> Iterator[Record]:
    """Yield the rows of a table whose first row names its columns.

    Raises:
        InputError: before the first row, if the table has more cells than `size_limit` allows.
    """
    _refuse_more_rows(text, source)
    reader = _reader(text)
    names: list[str] | None = None
    n_rows = 0
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except _WideLine as error:
            refuse_more_values(error.cells, source, f"a line of {counted(error.cells, 'cell')}")
            return
        except csv.Error as error:
            yield Record(None, line, _bad_row(source, line, f"it is not a row ({error})"))
            return
        if cells is None:
            return
        n_rows += 1
        refuse_larger_table(n_rows, len(names or cells), source)
        if names is None:
            names = cells
        elif len(cells) != len(names) and cells:
            why = f"the row has {counted(len(cells), 'cell')} for {len(names)} columns"
            yield Record(None, line, _bad_row(source, line, why))
        elif cells:
            yield Record(dict(zip(names, cells, strict=True)), line)


def _refuse_more_rows(text: str, source: Source) -> None:
    """Check the number of rows of a table by counting them, before they take memory.

    Errors in rows are left to the reader.
    """
    width = len(column_names(text))
    # An upper bound on the number of rows, since line ends may be quoted.
    if (text.count("\n") + text.count("\r") + 1) * max(width, 1) <= most_values():
        return
    try:
        for n_rows, _ in enumerate(_reader(text), 1):
            refuse_larger_table(n_rows, width, source)
    except csv.Error:
        return


def named_records(records: Iterable[Record], source: Source) -> Iterator[Record]:
    """Yield the records with the names of classes that files beside `source` state.

    Raises:
        InputError: if such a file cannot be interpreted.
    """
    described = classes_beside(source)
    for number, record in enumerate(records, 1):
        if not described or not isinstance(record.value, dict):
            yield record
            continue
        where = f"{location(source)}, row {number}"
        classes = stated_classes(source, described, list(record.value))
        try:
            yield Record(with_class_names(record.value, classes, where), record.line)
        except InputError as error:
            yield Record(None, record.line, error)


def strictly(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records, and raise the first error.

    Raises:
        InputError: the error of a record.
    """
    for record in records:
        if record.error is not None:
            raise record.error
        yield record


class _WideLine(csv.Error):
    """Raised for a line with more cells than the limit on values, before the cells are made."""

    def __init__(self, cells: int) -> None:
        super().__init__(f"it has {counted(cells, 'cell')}")
        self.cells = cells


def _reader(text: str) -> Any:
    if separator := _SEPARATOR.match(text):
        reader = csv.reader(_lines(text, separator[1]), delimiter=separator[1], strict=True)
        next(reader)
        return reader
    head = re.split(r"[\r\n]", text, maxsplit=1)[0]
    # Excel writes semicolons in locales with a decimal comma. Ties are resolved by order.
    delimiter = max(",\t;", key=head.count)
    return csv.reader(_lines(text, delimiter), delimiter=delimiter, strict=True)


def _lines(text: str, delimiter: str) -> Iterator[str]:
    """Yield the lines of a table, each of which `csv.reader` turns into a list."""
    for line in io.StringIO(text, newline=""):
        if (cells := line.count(delimiter) + 1) > most_values():
            raise _WideLine(cells)
        yield line


def _bad_row(source: Source, line: int, why: str) -> InputError:
    return InputError(f"{location(source, line)}: {why}; correct its quotes and cells")


def _decoded(text: str, source: Source, line: int | None, nan_is_missing: bool) -> Record:
    try:
        return Record(decode(text, source, line, nan_is_missing=nan_is_missing), line)
    except InputError as error:
        return Record(None, line, error)


def is_json_value(text: str) -> bool:
    """Return whether a text is a single complete JSON value."""
    try:
        decode(text, "")
    except InputError:
        return False
    return True
