"""Tables that are one JSON object, converted to rows.

These are the output of pandas' `DataFrame.to_json` with `orient` "columns" (the default), "index",
"split" and "table", of `to_dict("tight")`, and of the API of Hugging Face's dataset viewer
(`features` and `rows`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.io.source.opening import Source, source_name
from factormodels.io.tables.class_names import classes_of_features, with_class_names

_SPLIT = frozenset(("columns", "data", "index", "index_names", "column_names"))
_INDEX = re.compile(r"-?\d+")

WITH_RECORDS = "write it with to_json(orient='records', lines=True)"


def rows_of_object(value: Mapping[str, Any], source: Source) -> list[dict[str, Any]] | None:
    """Return the rows of the table in a JSON object; None if it is not a table.

    Args:
        value: the object.
        source: its file, for messages.

    Raises:
        InputError: if it is a table whose parts do not match.
    """
    if {"columns", "data"} <= value.keys() <= _SPLIT:
        return _of_split(value, source)
    if isinstance(value.get("schema"), dict) and _are_objects(value.get("data")):
        return _of_table_schema(value)
    if isinstance(value.get("features"), list) and _are_objects(value.get("rows")):
        return _of_viewer(value, source)
    if not value or not all(isinstance(inner, dict) and inner for inner in value.values()):
        return None
    names = list(next(iter(value.values())))
    if any(list(inner) != names for inner in value.values()):
        return None
    if not all(map(_INDEX.fullmatch, names)):
        return list(value.values()) if all(map(_INDEX.fullmatch, value)) else None
    if all(map(_INDEX.fullmatch, value)):
        return None
    return [{column: cells[row] for column, cells in value.items()} for row in names]


def looks_like_frame(value: Any) -> bool:
    """Return whether a JSON value may be a data frame with ambiguous rows and columns."""
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(inner, list) or len(inner) < 2:
        return False
    if isinstance(value, list):
        return all(isinstance(row, list) for row in inner)
    return all(isinstance(each, dict) and each.keys() == inner[0].keys() for each in inner)


def _of_split(value: Mapping[str, Any], source: Source) -> list[dict[str, Any]] | None:
    columns, data = value["columns"], value["data"]
    if not isinstance(columns, list) or not isinstance(data, list):
        return None
    for number, row in enumerate(data, 1):
        if not isinstance(row, list) or len(row) != len(columns):
            raise InputError(
                f"{source_name(source)}, row {number}: {shown(row)} does not fit the "
                f"{len(columns)} columns; correct 'data'"
            )
    names = [str(name) for name in columns]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise InputError(
            f"{source_name(source)}: two columns have the name {repeated!r}; give each its own"
        )
    return [dict(zip(names, row, strict=True)) for row in data]


def _of_table_schema(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    if not isinstance(value["schema"].get("fields"), list):
        return None
    # to_json gives this name to an unnamed index, which is the number of the row.
    index = "index" if value["schema"].get("primaryKey") == ["index"] else None
    return [{name: cell for name, cell in row.items() if name != index} for row in value["data"]]


def _of_viewer(value: Mapping[str, Any], source: Source) -> list[dict[str, Any]] | None:
    rows = [entry.get("row") for entry in value["rows"]]
    if not _are_objects(rows):
        return None
    name = source_name(source)
    classes = classes_of_features(value["features"], f"{name}: key 'features'")
    return [
        with_class_names(row, classes, f"{name}, row {number}")
        for number, row in enumerate(rows, 1)
    ]


def _are_objects(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)
    )
