"""Rows of records that hold lists: one row per innermost object, or per entry of parallel lists.

A flat table is unchanged. JSON in which responses contain a list of claims, or lists of equal
length with an entry per sentence, is expanded at the requested column:

    {"id": "r1", "claims": [{"text": "...", "label": "S"}, ...]}
    {"id": "r1", "labels": ["S", ...], "answers": [["yes", "no"], ...]}

Keys within objects are joined with a dot, as in ``answers.sampled``. An object with two lists of
such rows is ambiguous and refused; an object with an empty list has no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from factormodels.errors import InputError
from factormodels.io.tables.data_table import DataTable
from factormodels.nouns import counted

_MOST_NAMED = 4
"""Number of lists that an error names."""


@dataclass(frozen=True, eq=False)
class FlatTable(DataTable):
    """A table whose rows come from lists in records.

    Attributes:
        places: place of the record of each row in the file.
        parents: number of each row's enclosing object, from 1 and in order; None for a record that
            is a row itself.
        holders: the fields of each enclosing object, by number minus one.
        around: the same with the fields of outer objects.
        within: the names of fields that rows state themselves.
        n_empty: number of objects with an empty or null list of rows.
        names: names of these objects, by number minus one.
    """

    places: tuple[str, ...] = ()
    parents: tuple[int | None, ...] = ()
    holders: tuple[Mapping[str, Any], ...] = ()
    around: tuple[Mapping[str, Any], ...] = ()
    within: frozenset[str] = frozenset()
    n_empty: int = 0
    names: tuple[str, ...] = ()

    @property
    def is_nested(self) -> bool:
        """Return True if every row comes from a list in an object."""
        return None not in self.parents

    def holder(self, row: int) -> str | None:
        """Return the name of a row's enclosing object; None for a record that is a row itself."""
        parent = self.parents[row]
        return None if parent is None else self.names[parent - 1]

    def empty_remark(self) -> str:
        """Return a sentence on the objects without rows, or an empty string."""
        if not self.n_empty:
            return ""
        hold = "holds" if self.n_empty == 1 else "hold"
        return f"{counted(self.n_empty, 'response')} {hold} no claim."

    def locate(self, row: int, column: str | None = None) -> str:
        """Return the name of a row, counted from 0, or of its cell in a column, for errors."""
        return self.places[row] if column is None else f"{self.places[row]}, column {column!r}"


def column_names_of(table: DataTable) -> tuple[str, ...]:
    """Names of all columns in order, including those within lists of objects."""
    return tuple(_names_of(table.rows))


def flat_table(table: DataTable, column: str) -> FlatTable:
    """A row for each occurrence of a column, in order.

    Args:
        table: the table, whose cells may be lists and objects.
        column: the column that every row must have.

    Raises:
        InputError: for a record without this column, or with this column in several lists.
    """
    rows: list[Mapping[str, Any]] = []
    numbers: list[int] = []
    parents: list[int | None] = []
    holders: list[Mapping[str, Any]] = []
    around: list[Mapping[str, Any]] = []
    within: set[str] = set()
    lists = {name for record in table.rows for name in _lists_with(record, column)}
    n_empty = 0
    for number, record in enumerate(table.rows):
        for group in _groups(record, column, table.locate(number)):
            children = group.rows
            if children is None:
                if column not in group.fields:
                    if any(group.fields.get(name, column) in (None, []) for name in lists):
                        n_empty += 1
                        continue
                    raise InputError(
                        f"{table.locate(number)}: there is no {column!r}; it has "
                        f"{', '.join(sorted(group.fields))}"
                    )
                if not isinstance(group.fields[column], list):
                    rows.append(group.fields)
                    numbers.append(number)
                    parents.append(None)
                    continue
                length = len(group.fields[column])
                children = _entries(group.fields, length)
                within |= {n for n, each in group.fields.items() if _is_parallel(each, length)}
            holders.append(group.holder)
            around.append(group.fields)
            within |= group.within
            rows += children
            numbers += [number] * len(children)
            parents += [len(holders)] * len(children)
    return FlatTable(
        table.source,
        table.form,
        column_names_of(table),
        tuple(rows),
        tuple(table.lines[number] for number in numbers),
        table.classes,
        table.rounding,
        tuple(map(table.locate, numbers)),
        tuple(parents),
        tuple(holders),
        tuple(around),
        frozenset(within),
        n_empty,
    )


def _entries(outer: Mapping[str, Any], length: int) -> list[dict[str, Any]]:
    """A row for each index of an object's parallel lists; lists of other lengths are copied to
    every row."""

    def at(value: Any, index: int) -> Any:
        return value[index] if _is_parallel(value, length) else value

    return [{name: at(value, index) for name, value in outer.items()} for index in range(length)]


def _is_parallel(value: Any, length: int) -> bool:
    """Return True if a value is a list with an entry per row."""
    return isinstance(value, list) and len(value) == length


@dataclass(frozen=True)
class _Group:
    """An object that contains rows, or is a row.

    Attributes:
        fields: its fields, with the fields of outer objects.
        rows: its rows, with these fields; None if it is a row itself.
        holder: its own fields.
        within: names of the fields in the rows.
    """

    fields: Mapping[str, Any]
    rows: list[dict[str, Any]] | None
    holder: Mapping[str, Any]
    within: frozenset[str] = frozenset()


def _groups(
    value: Mapping[str, Any], column: str, where: str, above: Mapping[str, Any] | None = None
) -> Iterator[_Group]:
    """Yield each object that contains rows with a column, or is such a row.

    Raises:
        InputError: if an object has several lists of such rows.
    """
    holder, branches = _fields(value)
    fields = {**(above or {}), **holder}
    names = [name for name, many in branches.items() if column in _names_of(many)]
    if not names or column in value:
        yield _Group({**fields, **branches}, None, holder)
        return
    if len(names) > 1:
        listed = ", ".join(map(repr, names[:_MOST_NAMED]))
        more = len(names) - _MOST_NAMED
        raise InputError(
            f"{where}: {len(names)} lists ({listed}{f' and {more} more' if more > 0 else ''}) each "
            f"hold {column!r}, and it is not clear which holds the claims; give each response "
            "a separate object with one list"
        )
    branch = branches[names[0]]
    stated = [_fields(child)[0] for child in branch]
    if any(column in each for each in stated):
        # A row may lack the key, like a null value.
        within = frozenset(name for each in stated for name in each)
        yield _Group(fields, [{**fields, **each} for each in stated], holder, within)
        return
    for child in branch:
        yield from _groups(child, column, where, fields)


def _lists_with(value: Mapping[str, Any], column: str) -> Iterator[str]:
    """Yield the names of lists of objects that have a column."""
    for name, many in _fields(value)[1].items():
        if column in _names_of(many):
            yield name
            for child in many:
                yield from _lists_with(child, column)


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
