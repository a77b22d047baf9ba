"""Rows of records that hold lists: one row per innermost object, or per entry of parallel lists.

A table is read as it is. JSON in which responses hold a list of claims, or lists of equal length
with an entry per sentence, is taken apart at the column that is asked for:

    {"id": "r1", "claims": [{"text": "...", "label": "S"}, ...]}
    {"id": "r1", "labels": ["S", ...], "answers": [["yes", "no"], ...]}

Keys within objects are joined with a dot, as in ``answers.sampled``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from factormodels.errors import InputError
from factormodels.io.tables.data_table import DataTable


@dataclass(frozen=True, eq=False)
class FlatTable(DataTable):
    """A table whose rows stood in lists of records.

    Attributes:
        places: place of the record of each row in the file.
        parents: number of the object that holds each row, from 1 and in order; None for a record
            that is a row itself.
    """

    places: tuple[str, ...] = ()
    parents: tuple[int | None, ...] = ()

    @property
    def is_nested(self) -> bool:
        """Return whether every row comes from a list within an object."""
        return None not in self.parents

    def place(self, row: int, column: str | None = None) -> str:
        """Return the name of a row, counted from 0, or of its cell in a column, for errors."""
        return self.places[row] if column is None else f"{self.places[row]}, column {column!r}"


def column_names_of(table: DataTable) -> tuple[str, ...]:
    """Names of all columns, those within lists of objects included, in order."""
    return tuple(_names_of(table.rows))


def flat_table(table: DataTable, column: str) -> FlatTable:
    """A row for each place that has a column, in order.

    Args:
        table: the table, whose cells may hold lists and objects.
        column: the column that tells what a row is: each has one.

    Raises:
        InputError: for a record that has no such column.
    """
    rows: list[Mapping[str, Any]] = []
    numbers: list[int] = []
    parents: list[int | None] = []
    n_parents = 0
    for number, record in enumerate(table.rows):
        for outer, inner in _groups(record, column):
            children = inner
            if children is None:
                if column not in outer:
                    raise InputError(
                        f"{table.place(number)}: there is no {column!r}; it has "
                        f"{', '.join(sorted(outer))}"
                    )
                if not isinstance(outer[column], list):
                    rows.append(outer)
                    numbers.append(number)
                    parents.append(None)
                    continue
                children = _entries(outer, len(outer[column]))
            n_parents += 1
            rows += children
            numbers += [number] * len(children)
            parents += [n_parents] * len(children)
    return FlatTable(
        table.source,
        table.form,
        column_names_of(table),
        tuple(rows),
        tuple(table.lines[number] for number in numbers),
        table.classes,
        table.rounding,
        tuple(map(table.place, numbers)),
        tuple(parents),
    )


def _entries(outer: Mapping[str, Any], length: int) -> list[dict[str, Any]]:
    """A row for each place of an object's lists; lists of another length are the same in all."""

    def at(value: Any, index: int) -> Any:
        return value[index] if isinstance(value, list) and len(value) == length else value

    return [{name: at(value, index) for name, value in outer.items()} for index in range(length)]


def _groups(
    value: Mapping[str, Any], column: str, above: Mapping[str, Any] | None = None
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]] | None]]:
    """Yield the fields of each object that holds rows, with these; None if it is a row itself."""
    fields, branches = _fields(value)
    fields = {**(above or {}), **fields}
    branch = next((many for many in branches.values() if column in _names_of(many)), None)
    if branch is None or column in value:
        yield {**fields, **branches}, None
        return
    if all(column in _fields(child)[0] for child in branch):
        yield fields, [{**fields, **_fields(child)[0]} for child in branch]
        return
    for child in branch:
        yield from _groups(child, column, fields)


def _fields(value: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Cells of an object by dotted key, and its lists of objects."""
    fields: dict[str, Any] = {}
    branches: dict[str, list[dict[str, Any]]] = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            nested, lists = _fields(inner)
            fields |= {f"{key}.{name}": cell for name, cell in nested.items()}
            branches |= {f"{key}.{name}": many for name, many in lists.items()}
        elif isinstance(inner, list) and inner and all(isinstance(entry, dict) for entry in inner):
            branches[key] = inner
        else:
            fields[key] = inner
    return fields, branches


def _names(value: Mapping[str, Any]) -> Iterator[str]:
    fields, branches = _fields(value)
    yield from fields
    for many in branches.values():
        yield from _names_of(many)


def _names_of(many: Iterable[Mapping[str, Any]]) -> dict[str, None]:
    return {name: None for entry in many for name in _names(entry)}
