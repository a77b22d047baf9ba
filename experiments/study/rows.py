"""Tidy rows: the columns of an atom judged by a cell of a study, in every result file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from experiments.columns.cell_names import CELL
from experiments.study.files import ROWS
from factormodels.errors import InputError
from factormodels.io.tables.arrow import ParquetGroups
from factormodels.io.tables.spreadsheet_cells import FORMULA, NUMBER

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = """
study text: name of the study
dataset text: name of the dataset in the study
response text: id of the response, unique in its dataset
atom text?: id of the atom, unique in its response; null in the one row of a response without
    atoms
variant text: view of the fact graph: given, FR1, FR2 or FR3; none: an assessor's judgment,
    without a graph
relation_model text: what the study calls the source of relations; recorded: the data; none: no
    graph
encoding text: encoding of relations: implication or conditional; none: no graph
prior text: what the study calls the priors; data: the data's own; none: no graph
strength number: what the log odds of the relations' probabilities were multiplied by; 1 without
    graph
backend text: name of the algorithm in the registry, or of the assessor
backend_label text: what tables call it, unique in the study
setting text: settings of the backend or assessor, a JSON object with sorted keys
seed integer: seed of the backend in this cell; 0 of an assessor
p number?: posterior probability that the atom is true; null if failed, or without a verdict of
    the assessor
label boolean?: human label; null where there is none
annotation text?: the annotator's own word for it
selections text?: selections of the study that keep the atom, with a space between; null without
    atom
seconds number?: seconds that inference took for the whole response; null if failed or judged
status text: how inference ended: exact, converged, not_converged, interrupted, failed, or absent
    if its library is not installed; judged: by an assessor
log_z number?: natural logarithm of the partition function; null where there is none
log_z_kind text?: what log_z is: exact, upper, lower, bethe, elbo or none
log_z_lower number?: certified lower bound on it, where log_z is an upper bound; null elsewhere
answered_by text?: algorithm whose posteriors these are: of the backend auto the one that it
    chose; null if failed or judged
error text?: why the unit failed; null if it did not
"""
"""Name, type (with ? if nullable) and meaning of every column."""

_TYPES = {"text": "string", "number": "float64", "integer": "int64", "boolean": "bool_"}


def _field(declared: str) -> pa.Field:
    head, _, meaning = " ".join(declared.split()).partition(": ")
    name, kind = head.split()
    type_ = getattr(pa, _TYPES[kind.rstrip("?")])()
    return pa.field(name, type_, nullable="?" in kind, metadata={"description": meaning})


# A meaning continues on indented lines.
SCHEMA = pa.schema([_field(each) for each in re.split(r"\n(?! )", _COLUMNS.strip())])
"""Columns of rows.parquet and rows.csv; one row per atom and cell."""


CellKey = tuple[Any, ...]
"""Values of the columns that identify a cell."""

_QUESTION = CELL.index("backend_label")

_KEPT_ROWS = 500_000
"""Number of rows that take tens of megabytes as arrays."""


@dataclass(frozen=True)
class CellRows:
    """Position of a cell's rows in a file.

    Attributes:
        key: the cell.
        backend: name of its algorithm in the registry.
        setting: settings of the algorithm, as JSON.
        groups: numbers of the cell's row groups in the file.
    """

    key: CellKey
    backend: str
    setting: str
    groups: tuple[int, ...]

    @property
    def question(self) -> CellKey:
        """The cell without algorithm and seed, which different algorithms share."""
        return self.key[:_QUESTION]

    def named(self) -> dict[str, Any]:
        """The cell's values by column."""
        return dict(zip(CELL, self.key, strict=True))


class RowsFile:
    """A rows.parquet file, which can be read cell by cell."""

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            InputError: if there is no such file, or it lacks columns of rows.
        """
        self.path = Path(path)
        if not self.path.exists():
            raise InputError(f"{path}: there is no such file; name the folder of a finished run")
        # Read only the footer; rows are read cell by cell.
        self._file = ParquetGroups(self.path, "run the study again")
        self._made: dict[Hashable, Any] = {}
        # Additional columns are allowed, so that rows of later versions can be read.
        missing = [name for name in SCHEMA.names if name not in self._file.names]
        if missing:
            raise InputError(
                f"{path}: the column {missing[0]!r} is missing; run the study again with this "
                "version"
            )
        for field in SCHEMA:
            kind = self._file.schema.field(field.name).type
            if _sort(kind) not in (_sort(field.type), "nothing"):
                raise InputError(
                    f"{path}: it is damaged (the column {field.name!r} has the type "
                    f"{kind}, not {field.type}); run the study again"
                )

    def cells(self) -> list[CellRows]:
        """Every cell of the file, in its order."""
        return list(self._cells)

    @cached_property
    def _cells(self) -> tuple[CellRows, ...]:
        columns = [*CELL, "backend", "setting"]
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number in range(self._file.n_groups):
            # A group has rows of a single cell, so its first row identifies the cell.
            row = self._file.first_row(number, columns)
            groups.setdefault(tuple(row[name] for name in columns), []).append(number)
        return tuple(
            CellRows(row[: len(CELL)], row[-2], row[-1], tuple(numbers))
            for row, numbers in groups.items()
        )

    def read(self, cell: CellRows, columns: Sequence[str] = tuple(SCHEMA.names)) -> pa.Table:
        """Columns of the rows of one cell.

        Raises:
            InputError: if this part of the file is damaged.
        """
        return self._probable(self._file.read(cell.groups, columns))

    @property
    def is_small(self) -> bool:
        """True for files of up to a few hundred thousand rows."""
        return self._file.n_rows <= _KEPT_ROWS

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Cached value computed from the rows of a small file."""
        if not self.is_small:
            return make()
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def read_all(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Some or all columns of all rows.

        Raises:
            InputError: if the file is damaged.
        """
        return self._probable(self._file.read(columns=columns))

    def _probable(self, table: pa.Table) -> pa.Table:
        # The file has no checksums, so numbers may be arbitrary.
        if "p" in table.column_names:
            # Null, from a failed unit, is neither inside nor outside.
            p = table["p"]
            outside = p.filter(pc.invert(pc.and_(pc.greater_equal(p, 0.0), pc.less_equal(p, 1.0))))
            if len(outside):
                raise InputError(
                    f"{self.path}: it is damaged (p is {outside[0].as_py()}, which is not a "
                    "probability); run the study again"
                )
        return table


def _sort(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _sort(kind.value_type)
    for sort, holds in (
        ("nothing", pa.types.is_null),
        (
            "texts",
            lambda arrow_type: (
                pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)
            ),
        ),
        (
            "numbers",
            lambda arrow_type: pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type),
        ),
    ):
        if holds(kind):
            return sort
    return str(kind)


def write_rows(tables: Iterator[pa.Table], path: Path, metadata: Mapping[str, str]) -> None:
    """Write rows as Parquet, cell by cell; equal rows produce equal bytes.

    Args:
        tables: tables of a single cell each; the tables of a cell are adjacent and have
            `GROUP_ROWS` rows, except for the last.
        path: the file.
        metadata: facts about the study.
    """
    schema = SCHEMA.with_metadata(dict(metadata))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in tables:
            # A row group never has two cells, so that a cell can be read by itself.
            for start in range(0, table.num_rows, GROUP_ROWS):
                writer.write_table(table.slice(start, GROUP_ROWS), row_group_size=GROUP_ROWS)


def write_csv(rows: RowsFile, path: Path) -> None:
    """Write rows as CSV with a header; null is empty, numbers have full precision."""
    from pyarrow import csv

    options = csv.WriteOptions(quoting_style="needed")
    with csv.CSVWriter(path, SCHEMA, write_options=options) as writer:
        for cell in rows.cells():
            for group in cell.groups:
                # The writer requires exactly its own schema, without the file's metadata.
                part = rows.read(replace(cell, groups=(group,)))
                writer.write_table(_quoted(part.cast(SCHEMA)))


def _quoted(table: pa.Table) -> pa.Table:
    """The table with `quoted` texts where a spreadsheet would execute them."""
    for position, field in enumerate(table.schema):
        if field.type == pa.string():
            texts = table[position]
            runs = pc.and_not(
                pc.match_substring_regex(texts, FORMULA), pc.match_substring_regex(texts, NUMBER)
            )
            if pc.any(runs).as_py():
                marked = pc.binary_join_element_wise("'", texts, "")
                table = table.set_column(position, field, pc.if_else(runs, marked, texts))
    return table


def read_rows(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read the rows of a run, one per claim and cell, as a data frame with nullable columns.

    from experiments import read_rows
    read_rows("results/compare").groupby("backend")["p"].mean()

    Args:
        path: the folder of the run's results, or its rows.parquet.
        columns: names of the columns to read; all by default.

    Raises:
        InputError: if there is no such file, or it lacks columns of rows.
    """
    path = Path(path) / ROWS if Path(path).is_dir() else Path(path)
    return as_frame(RowsFile(path).read_all(columns))


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Convert a table to a data frame whose missing values are null, never NaN."""
    import pandas as pd

    # Without this mapping pandas would convert null to NaN, and integers with nulls to floats.
    nullable = {
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(),
    }
    # Other types keep pandas's default.
    frame: pd.DataFrame = table.to_pandas(types_mapper=nullable.get)
    return frame


GROUP_ROWS = 131_072
"""Largest number of rows in a row group; larger cells have several groups."""
