"""The only module that reads Excel workbooks: the rows of a single sheet, or an error with advice.

A workbook is an archive of XML that may declare a false size; its decompressed content, and the
cells that its rows declare, are limited to the size of `source.opening`.
"""

from __future__ import annotations

import datetime
import io
import posixpath
import re
import warnings
import zipfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any
from xml.parsers import expat

from factormodels.decoded_values import shown
from factormodels.errors import InputError, MissingDependencyError
from factormodels.io.source.opening import Source, refuse_larger, refuse_more_values

_ZIP = b"PK\x03\x04"
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

WORKBOOK_MARKS = (_ZIP, _OLD)
"""First bytes of spreadsheet files."""

_SHEETS = "xl/worksheets/"
_TEXTS = "xl/sharedStrings.xml"
_BOOK, _RELATIONSHIPS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
_MOST_MARKS = 200_000
"""Maximum tags of XML in a part such as the styles; Excel supports 65,490 formats."""

_MOST_ROWS = 2**20
"""Maximum rows of a sheet in Excel."""
_ROW, _CELL = (re.compile(rb"<(?:\w+:)?" + name + rb"[\s/>]") for name in (b"row", b"c"))

_REASON_SHOWN = 120


def is_workbook(content: bytes) -> bool:
    """Return whether a file's content has the compression of spreadsheet files."""
    return content.startswith(WORKBOOK_MARKS)


def workbook_rows(
    content: bytes, source: Source
) -> tuple[tuple[str, ...], list[dict[str, Any]], list[int]]:
    """Return the columns named in the first row, the rows below it, and their numbers.

    Rows and columns without values are left out, each of several merged cells below the first row
    has their value, and dates are texts. For formulas, the last result is used.

    Args:
        content: the bytes, for which `is_workbook` is true.
        source: their file, for messages.

    Raises:
        InputError: if it is not an Excel workbook, is damaged or too large, does not have exactly
            one sheet with values, or has duplicate columns.
        MissingDependencyError: if openpyxl is not installed.
    """
    try:
        import openpyxl
    except ImportError:
        raise MissingDependencyError(
            f"{source}: reading a workbook needs openpyxl; install it with: pip install "
            "'factorfacts[excel]', or save the sheet as CSV (UTF-8)"
        ) from None
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            refuse_larger(sum(info.file_size for info in archive.infolist()), source)
            _refuse_many_elements(archive, source)
        if _BOOK not in names:
            raise InputError(
                f"{source}: this is an archive, and neither a workbook of Excel nor a table; save "
                "a sheet as CSV (UTF-8)"
            )
        # openpyxl warns of styles and extensions, which are not read.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            with closing(book), zipfile.ZipFile(io.BytesIO(content)) as archive:
                parts = _parts_of_sheets(archive)
                by_title = {
                    # A sheet that is read row by row has no information on merged cells.
                    sheet.title: _filled(
                        _rows(sheet, source),
                        _merged(archive, parts[sheet.title], source),
                        source,
                    )
                    for sheet in book.worksheets
                }
    except InputError:
        raise
    # openpyxl, zlib and the XML parsers raise arbitrary exceptions.
    except Exception as error:
        reason = " ".join(str(error).split())[:_REASON_SHOWN] or type(error).__name__
        raise InputError(
            f"{source}: it is damaged, or a workbook of another kind ({reason}); save it again as "
            ".xlsx, or a sheet as CSV (UTF-8)"
        ) from None
    sheets = {title: rows for title, rows in by_title.items() if rows}
    if len(sheets) != 1:
        several = f"{len(sheets)} sheets with values ({', '.join(map(shown, sheets))})"
        raise InputError(
            f"{source}: the workbook has {several if sheets else 'no values'}; save the one with "
            "the table as CSV (UTF-8), or alone"
        )
    (rows,) = sheets.values()
    return _named(rows, source)


def _refuse_many_elements(archive: zipfile.ZipFile, source: Source) -> None:
    """Check the numbers of rows, cells, and elements in other parts of a workbook.

    Elements are counted as text, since openpyxl takes minutes for some millions of them.
    """
    for name in archive.namelist():
        content = archive.read(name)
        if name.startswith(_SHEETS):
            # Some programs write a namespace prefix before the names of elements.
            rows, cells = (sum(1 for _ in begin.finditer(content)) for begin in (_ROW, _CELL))
            if rows > _MOST_ROWS:
                raise InputError(
                    f"{source}: a sheet has {rows:,} rows, and a workbook of Excel at most "
                    f"{_MOST_ROWS:,}; save it as CSV (UTF-8)"
                )
            refuse_more_values(cells, source, f"{rows:,} rows with {cells:,} cells")
        elif name == _TEXTS:
            refuse_more_values(content.count(b"<si"), source)
        elif content.count(b"<") > _MOST_MARKS:
            raise InputError(
                f"{source}: its part {name} has more than {_MOST_MARKS:,} marks of XML, such as "
                "formats of cells; save the sheet as CSV (UTF-8)"
            )


def _rows(sheet: Any, source: Source) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the rows that have a value, with their numbers, from 1."""
    # The declared size of a sheet may be wrong.
    sheet.reset_dimensions()
    filled = []
    cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        # Skipped rows have no cells, and there may be any number of them.
        cells += max(len(row), 1)
        refuse_more_values(cells, source, f"{number:,} rows or more, with {cells:,} cells")
        if any(value is not None and value != "" for value in row):
            filled.append((number, row))
    return filled


def _parts_of_sheets(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the part of the archive that has the cells of each sheet, by the sheet's title.

    The workbook names a relationship for each sheet, whose target is relative to the workbook's
    folder (ECMA-376-1, *Office Open XML File Formats*).
    """
    ids: dict[str, str] = {}
    targets: dict[str, str] = {}

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        # Names without their namespaces; that of a relationship's id is the only `id` of a sheet.
        local = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        element = name.rpartition(" ")[2]
        if element == "sheet":
            ids[local["name"]] = local.get("id", "")
        elif element == "Relationship":
            targets[local["Id"]] = posixpath.normpath(posixpath.join("/xl", local["Target"]))[1:]

    for part in (_BOOK, _RELATIONSHIPS):
        _parse(archive, part, begin)
    # openpyxl leaves out a sheet without a relationship.
    return {title: targets[sheet] for title, sheet in ids.items() if sheet in targets}


def _parse(
    archive: zipfile.ZipFile, part: str, begin: Callable[[str, Mapping[str, str]], None]
) -> None:
    """Call a function for each element of a part, with its name and attributes."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = begin
    with archive.open(part) as file:
        parser.ParseFile(file)


def _merged(archive: zipfile.ZipFile, path: str, source: Source) -> list[tuple[int, int, int, int]]:
    """Return the merged cells of a sheet: first column and row, last column and row, from 1."""
    from openpyxl.utils import range_boundaries

    merged: list[tuple[int, int, int, int]] = []

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        if name.rpartition(" ")[2] == "mergeCell":
            merged.append(range_boundaries(attributes["ref"]))
            refuse_more_values(4 * len(merged), source)

    _parse(archive, path, begin)
    return merged


def _filled(
    rows: list[tuple[int, tuple[Any, ...]]],
    merged: Sequence[tuple[int, int, int, int]],
    source: Source,
) -> list[tuple[int, tuple[Any, ...]]]:
    """Return rows with the value of merged cells in each of them, except for the head."""
    numbers = [number for number, _ in rows]
    changed: dict[int, list[Any]] = {}
    covered = 0
    for left, top, right, bottom in merged:
        first, last = bisect_left(numbers, top), bisect_right(numbers, bottom)
        # Columns beyond the head have no name.
        right = min(right, len(rows[0][1])) if rows else 0
        if first in (0, len(rows)) or numbers[first] != top or left > right:
            continue
        covered += (right - left + 1) * (last - first)
        refuse_more_values(covered, source)
        value = rows[first][1][left - 1] if left <= len(rows[first][1]) else None
        for index in range(first, last):
            cells = changed.setdefault(index, list(rows[index][1]))
            # A row ends with its last cell in the file.
            cells += [None] * (right - len(cells))
            cells[left - 1 : right] = [value] * (right - left + 1)
    return [
        (number, tuple(changed.get(index, cells))) for index, (number, cells) in enumerate(rows)
    ]


def _named(
    rows: list[tuple[int, tuple[Any, ...]]], source: Source
) -> tuple[tuple[str, ...], list[dict[str, Any]], list[int]]:
    (line, head), *rest = rows
    columns = ["" if name is None else str(name).strip() for name in head]
    for index, name in enumerate(columns):
        if name and name in columns[:index]:
            raise InputError(
                f"{source}, line {line}: two columns have the name {name!r}; give each its own"
            )
    records = [
        {name: _plain(value) for name, value in zip(columns, row, strict=False) if name}
        for _, row in rest
    ]
    return tuple(name for name in columns if name), records, [number for number, _ in rest]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        # Excel stores a date as midnight.
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, datetime.timedelta) else value
