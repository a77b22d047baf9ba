"""Conversion of data to a table: files, datasets, findings, data frames, records, or graphs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.findings.findings import CLAIMS, Findings
from experiments.settings.inputs import check_named, is_dataset, read_graphs
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_object
from factormodels.io.tables.class_names import class_columns, with_class_names
from factormodels.io.tables.data_table import DataTable, given_classes, given_rows, read_table

if TYPE_CHECKING:
    import pandas as pd

    Data = (
        str
        | os.PathLike[str]
        | pd.DataFrame
        | DataTable
        | Findings
        | Iterable[Mapping[str, Any]]
        | Mapping[str, Any]
        | Iterable[FactGraph]
    )

_ROUNDINGS = {2: 2.0**-10, 4: 2.0**-23}
"""Machine epsilon of float16 and float32, by number of bytes."""

IN_MEMORY = "the table"
"""Name of a table in memory."""


def table_of(data: Data) -> DataTable:
    """Convert a file, a dataset, findings, a data frame, columns, records, or fact graphs to a
    table.

    Raises:
        InputError: if the file cannot be read, findings have no claims, or there are no rows.
    """
    if isinstance(data, DataTable):
        return data
    if isinstance(data, Findings):
        data = _claims_of(data)
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if is_dataset(path):
            return _graph_table(str(data), read_graphs(path))
        if str(path) != "-":
            check_named(path)
        return read_table(data)
    records = given_rows(data)
    if records and all(isinstance(record, FactGraph) for record in records):
        return _graph_table(IN_MEMORY, records)
    for number, record in enumerate(records, 1):
        if not isinstance(record, Mapping):
            kind = type(record).__name__
            raise InputError(f"row {number} is a {kind}; give a mapping from columns to values")
    if not records:
        raise InputError(f"{IN_MEMORY} has no rows; give at least one")
    classes = given_classes(data, IN_MEMORY)
    rows = tuple(
        with_class_names(
            {str(key): value for key, value in record.items()},
            classes,
            f"{IN_MEMORY}, row {number}",
        )
        for number, record in enumerate(records, 1)
    )
    return DataTable(
        IN_MEMORY,
        "table",
        tuple(dict.fromkeys(name for row in rows for name in row)),
        rows,
        (None,) * len(rows),
        dict(class_columns(classes)),
        _roundings(data),
    )


def _claims_of(findings: Findings) -> pd.DataFrame | tuple[FactGraph, ...]:
    """The frame of the claims of findings, or their responses.

    Raises:
        InputError: if findings have neither.
    """
    has_frame = CLAIMS in (*findings.tables, *findings.frames)
    return findings.graphs if findings.graphs and not has_frame else findings.claims


def _graph_table(source: str, graphs: Iterable[FactGraph]) -> DataTable:
    """The table of fact graphs, a row per graph, as from a file."""
    rows = tuple(map(fact_graph_object, graphs))
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    return DataTable(source, "fact-graph", names, rows, (None,) * len(rows))


def _roundings(frame: Any) -> dict[str, float]:
    """Machine epsilon of a frame's float32 and float16 columns."""
    kinds: Any = getattr(frame, "dtypes", None)
    roundings: dict[str, float] = {}
    for name, kind in kinds.items() if hasattr(kinds, "items") else ():
        # The type of a sparse column has no size, but its numbers' type has one.
        plain = getattr(kind, "subtype", kind)
        if getattr(plain, "kind", "") == "f" and plain.itemsize in _ROUNDINGS:
            roundings[str(name)] = _ROUNDINGS[plain.itemsize]
    return roundings


def name_of(data: Data) -> str:
    """Return the name of data: the name of a file or of findings, or `IN_MEMORY`."""
    if isinstance(data, Findings):
        return f"{data.command} {data.source}"
    return Path(data).name if isinstance(data, str | os.PathLike) else IN_MEMORY
