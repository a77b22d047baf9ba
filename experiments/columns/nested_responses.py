"""Assignment of rows in lists to responses: the enclosing object, or a named response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.columns.nested_rows import FlatTable, flat_table
from experiments.columns.reader import Columns
from experiments.columns.roles import MODEL, RESPONSE
from factormodels.io.claim_rows import cell_name
from factormodels.io.tables.data_table import DataTable
from factormodels.words import folded

ID_OF_A_RESPONSE = ("response", "response id")
"""Names of columns that certainly identify the response of a claim."""


def rows_in_lists(records: DataTable, column: str, *, repeated: bool) -> FlatTable:
    """The rows in lists of records (`flat_table`), with names of the enclosing objects.

    Rows of a single list may name their responses.

    Args:
        records: the table, whose cells may hold lists and objects.
        column: the column that each row has.
        repeated: True if objects with the same name and model belong to the same response;
            otherwise they keep their numbers.

    Raises:
        InputError: as `flat_table`.
    """
    table = flat_table(records, column)
    if _is_one_list(table):
        return replace(table, parents=(None,) * len(table.rows))
    return replace(table, names=_names(table, repeated=repeated))


def _is_one_list(table: FlatTable) -> bool:
    """Return True if the rows form a single list and name their responses.

    The enclosing object is then not a response. An id identifies claims, unless rows share it and
    the object has no id.
    """
    if not table.is_nested or len(table.holders) > 1:
        return False
    is_named = Columns(tuple(table.holders[0]), table.source).known(RESPONSE) is not None
    for name in Columns(table.columns, table.source).all_known(RESPONSE):
        values = [cell_name(row.get(name)) for row in table.rows]
        n_values = len({*values})
        tells = folded(name) in ID_OF_A_RESPONSE or (n_values < len(values) and not is_named)
        if name in table.within and n_values > 1 and tells:
            return True
    return False


def _names(table: FlatTable, *, repeated: bool) -> tuple[str, ...]:
    """Names of the enclosing objects if all have one, otherwise their numbers."""
    holders = table.holders
    known = _columns_of(table, holders)
    models = known.all_known(MODEL)
    if models and known.known(RESPONSE) is None:
        # The row is a model's judgment of the enclosing response.
        holders = table.around
        known = _columns_of(table, holders)
    for column in known.all_known(RESPONSE):
        names = [cell_name(each.get(column)) for each in holders]
        keys = {
            (name, *(cell_name(each.get(model)) for model in models))
            for name, each in zip(names, holders, strict=True)
        }
        if all(names) and (repeated or len(keys) == len(names)):
            return tuple(names)
    return _numbers(holders)


def _columns_of(table: FlatTable, objects: Sequence[Mapping[str, Any]]) -> Columns:
    return Columns([*{name: None for each in objects for name in each}], table.source)


def _numbers(holders: Sequence[object]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, len(holders) + 1))
