"""Tables of any kind as records: CSV, tabs, Excel, JSON (Lines), Parquet, Arrow, datasets' folders.

`read_table` reads what a person has at hand, told apart by its content: CSV (commas or semicolons,
with Excel's byte order mark or without), columns parted by tabs, JSON Lines, a list of JSON
objects, workbooks of Excel with one sheet, Parquet, Arrow, and a folder that Hugging Face's
`save_to_disk` wrote or that holds Parquet files. What the columns mean is the caller's;
`DataTable.locate` names a cell for its errors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.io.json import decode
from factormodels.io.source.files import read_text
from factormodels.io.source.opening import decoded, read_whole
from factormodels.io.source.places import location
from factormodels.io.tables.arrow import arrow_records, is_binary_table, is_parquet
from factormodels.io.tables.class_names import (
    ClassTree,
    class_columns,
    classes_beside,
    classes_of_arrow,
    classes_of_attributes,
    classes_of_features,
    stated_classes,
    with_class_names,
)
from factormodels.io.tables.json_tables import WITH_RECORDS, looks_like_frame
from factormodels.io.tables.records import (
    Record,
    Source,
    column_names,
    is_json,
    json_records,
    strictly,
    table_records,
    table_rows,
)
from factormodels.io.tables.workbooks import is_workbook, workbook_rows

if TYPE_CHECKING:
    import pandas as pd


_SPLITS = "dataset_dict.json"
_STATE = "state.json"
_BINARY = (".parquet", ".arrow")

_LONGEST_NAME = 60
"""Characters of the name of a column; a line of prose before a comma is often longer."""


@dataclass(frozen=True, eq=False)
class DataTable:
    """The records of a table.

    Attributes:
        source: its file or folder, as messages name it.
        form: what it is: "CSV", "TSV", "Excel", "JSON", "JSON Lines", "Parquet" or "Arrow".
        columns: names of the columns, in the order in which they are first met.
        rows: values by column; of CSV and TSV texts, otherwise what the file holds. A record of
            JSON may lack a column.
        lines: line of the file, from 1, on which each row begins; None where a file has no lines.
        classes: names of classes by column, which the file, or one beside it, states of integers;
            rows have the names. Keys of objects are joined with a dot, here and in `rounding`.
        rounding: distance from 1 to the next number, of columns of float32 and float16.
    """

    source: str
    form: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    lines: tuple[int | None, ...]
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rounding: Mapping[str, float] = field(default_factory=dict)

    def locate(self, row: int, column: str | None = None) -> str:
        """How an error names a row, counted from 0, or its cell in a column."""
        line = self.lines[row]
        # Without lines a row alone can be counted, as a table on a screen counts it, from 1.
        where = f"{self.source}, row {row + 1}" if line is None else location(self.source, line)
        return where if column is None else f"{where}, column {column!r}"

    def frame(self) -> pd.DataFrame:
        """The rows as a data frame, missing where a record lacks a column."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns))


def frame_rows(frame: Any) -> list[dict[str, Any]]:
    """Rows of a data frame of pandas, None where a value is missing.

    An index with a name is a column.
    """
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    whole = frame.reset_index(named) if named else frame
    # What is missing in a frame is a number, NaN, whatever the column holds.
    plain = whole.astype(object).where(whole.notna(), None)
    rows: list[dict[str, Any]] = plain.to_dict("records")
    return rows


def given_rows(data: Any) -> list[Any]:
    """Rows of a data frame of pandas or polars, an Arrow table, columns by name, or rows.

    The kind is told by its methods, so that no library is loaded for it. A dataset of `datasets` is
    an iterable of rows.

    Raises:
        InputError: if two columns have one name, or it is a single column.
    """
    if hasattr(data, "iloc"):
        if not hasattr(data, "columns"):
            raise InputError(
                f"it is a {type(data).__name__}, which has one column; give a data frame, as "
                "to_frame() makes one"
            )
        named = [name for name in data.index.names if name not in {None, *data.columns}]
        _refuse_repeated([*named, *data.columns])
        return frame_rows(data)
    if hasattr(data, "column_names") and hasattr(data, "to_pylist"):
        _refuse_repeated(data.column_names)
    elif hasattr(data, "schema") and hasattr(data, "to_pylist"):
        _refuse_repeated(data.schema.names)
    for method in ("to_dicts", "to_pylist"):
        if hasattr(data, method):
            return list(getattr(data, method)())
    if isinstance(data, Mapping):
        return _rows_of_columns(data)
    if not isinstance(data, Iterable):
        raise InputError(
            f"the data are {shown(data)}; give a file, the name of an embedded dataset, a data "
            "frame, or records"
        )
    return list(data)


def _rows_of_columns(columns: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Rows of columns by their names, as a data frame is made from them.

    Raises:
        InputError: if a column is no list of values, or they differ in length.
    """
    values: dict[str, list[Any]] = {}
    for name, column in columns.items():
        if hasattr(column, "column_names") or hasattr(column, "columns"):
            raise InputError(f"{str(name)!r} is a table of its own; give it alone, as [{name!r}]")
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
            raise InputError(
                f"{str(name)!r} is {shown(column)}; give a list of values for each column, or a "
                "list of records"
            )
        values[str(name)] = list(column)
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{length} of {name!r}" for name, length in lengths.items())
        raise InputError(f"the columns have different numbers of values ({counts}); mend one")
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _refuse_repeated(names: Iterable[Any]) -> None:
    """Refuse columns that a row cannot tell apart, as 0 and "0" are one name to us.

    Raises:
        InputError: if two columns have one name.
    """
    counts = Counter(map(str, names))
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"the table has two columns of the name {repeated!r}; give each its own")


def given_classes(data: Any, where: str) -> ClassTree:
    """Names of classes that a table in memory states: of pandas, Arrow or `datasets`.

    Args:
        data: an object that `given_rows` takes.
        where: what errors call it.

    Raises:
        InputError: if a class has no names that can be understood.
    """
    if hasattr(data, "iloc"):
        # Other attributes of a data frame of pandas may be columns.
        numeric = [str(name) for name, kind in data.dtypes.items() if _may_be_classes(kind)]
        return classes_of_attributes(data.attrs, numeric, where)
    features = getattr(getattr(data, "features", None), "to_dict", None)
    if features is not None:
        return classes_of_features(features(), where)
    schema = getattr(data, "schema", None)
    is_arrow = hasattr(schema, "metadata") and hasattr(schema, "field")
    return classes_of_arrow(schema, where) if is_arrow else {}


def _may_be_classes(kind: Any) -> bool:
    """Whether a column of a type of pandas may hold integers, or integers with gaps."""
    return getattr(kind, "kind", "") in "iuf" or str(kind) == "object"


def read_table(source: Source, *, empty_rows: bool = False) -> DataTable:
    """The records of a table in a file, packed with gzip or not, or in a dataset's folder.

    Args:
        source: the file or folder.
        empty_rows: whether rows of CSV whose cells are all empty count; spreadsheets end with them.

    Raises:
        InputError: if it cannot be read, is not a table, or holds no rows; the message names the
            file and the line.
    """
    path = Path(source)
    if path.is_dir():
        return _read_folder(path)
    content = read_whole(path)
    if is_binary_table(content):
        return _of_arrow([(path, content)], str(path), parquet=is_parquet(content))
    if is_workbook(content):
        columns, rows, lines = workbook_rows(content, path)
        return _named(DataTable(str(path), "Excel", columns, tuple(rows), tuple(lines)))
    return parse_table(decoded(content, path), path, empty_rows=empty_rows)


def parse_table(text: str, source: Source, *, empty_rows: bool = False) -> DataTable:
    """The records of a table in a text: JSON Lines, a JSON list of objects, CSV or tabs.

    Args:
        text: the table.
        source: its file, which messages name.
        empty_rows: whether rows of CSV whose cells are all empty count.

    Raises:
        InputError: if it is not a table, or holds no rows.
    """
    if not text.strip():
        raise InputError(f"{source}: it is empty; give a table with a row that names its columns")
    if is_json(text):
        values = json_records(text, source, nan_is_missing=True)
        records = list(strictly(table_rows(values, source)))
        is_value = text.lstrip().startswith("[") or all(record.line is None for record in records)
        if len(records) == 1 and looks_like_frame(records[0].value):
            raise InputError(
                f"{source}: rows and columns of this data frame cannot be told apart; "
                f"{WITH_RECORDS}"
            )
        for record in records:
            if not isinstance(record.value, dict):
                value = "null" if record.value is None else shown(record.value)
                raise InputError(
                    f"{location(source, record.line)}: {value} is not a JSON object; give one "
                    "object per row"
                )
        columns = tuple(dict.fromkeys(name for record in records for name in record.value))
        form = "JSON" if is_value else "JSON Lines"
        return _named(DataTable(str(source), form, columns, *_parted(records)))
    names = [name.strip() for name in column_names(text)]
    repeated = [name for name, times in Counter(names).items() if times > 1 and name]
    if repeated:
        raise InputError(
            f"{location(source, 1)}: two columns have the name {repeated[0]!r}; give each its own"
        )
    records = [
        # A column without a name, such as an index that was saved too, cannot be asked for.
        Record({name.strip(): cell for name, cell in row.value.items() if name.strip()}, row.line)
        for row in strictly(table_records(text, source))
        # Spreadsheets end with rows of nothing but commas.
        if empty_rows or any(cell.strip() for cell in row.value.values())
    ]
    form = "TSV" if "\t" in re.split(r"[\r\n]", text, maxsplit=1)[0] else "CSV"
    columns = tuple(name for name in names if name)
    return _named(DataTable(str(source), form, columns, *_parted(records)))


def looks_like_table(text: str) -> bool:
    """Whether a text that is not JSON may be a table: lines of prose rarely have its shape.

    Its first line names two or more columns, shortly and each differently, and every other row
    has as many cells.
    """
    names = [name.strip() for name in column_names(text)]
    if len(names) < 2 or len(set(names)) < len(names):
        return False
    if any(len(name) > _LONGEST_NAME or name.endswith((".", "!", "?")) for name in names):
        return False
    records = list(table_records(text, ""))
    return bool(records) and all(record.error is None for record in records)


def _read_folder(folder: Path) -> DataTable:
    """The table of a folder: the Arrow files of `save_to_disk`, or Parquet or Arrow files."""
    if (folder / _SPLITS).is_file():
        splits = _listed(folder / _SPLITS, "splits")
        # One split is the table; of many the user chooses.
        if len(splits) != 1:
            raise InputError(
                f"{folder}: this is a dataset of {len(splits)} splits; name one of "
                f"{', '.join(map(str, splits))}"
            )
        return _read_folder(splits[0])
    if (folder / _STATE).is_file():
        files = _listed(folder / _STATE, "_data_files", "filename")
    else:
        files = sorted(
            path for path in folder.rglob("*") if path.suffix in _BINARY and path.is_file()
        )
    if not files:
        raise InputError(f"{folder}: the folder holds no Parquet or Arrow file; name another")
    contents = ((file, read_whole(file)) for file in files)
    return _of_arrow(contents, str(folder), parquet=files[0].suffix == ".parquet")


def holds_binary_tables(folder: Path) -> bool:
    """Whether a folder holds a saved dataset, or Parquet or Arrow files."""
    if (folder / _SPLITS).is_file() or (folder / _STATE).is_file():
        return True
    return any(path.suffix in _BINARY for path in folder.rglob("*"))


def _listed(path: Path, key: str, inner: str = "") -> list[Path]:
    """The places beside a file that its list `key` names; each under the key `inner`, if given."""
    value = decode(read_text(path), path)
    listed = value.get(key) if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise InputError(f"{path}: the list {key!r} is missing; save the dataset again")
    places = []
    for entry in listed:
        name = entry.get(inner) if inner and isinstance(entry, dict) else entry
        # What lies elsewhere is no part of what was named, and the folder itself would never end.
        if not isinstance(name, str) or name in ("", "..") or Path(name).name != name:
            raise InputError(
                f"{path}: {key!r} has {shown(name)} where the name of a file or folder beside it "
                "belongs; save the dataset again"
            )
        places.append(path.parent / name)
    return places


def _of_arrow(files: Iterable[tuple[Path, bytes]], source: str, *, parquet: bool) -> DataTable:
    """The table of one or several Parquet or Arrow files, given with their contents."""
    read = arrow_records(files)
    form = "Parquet" if parquet else "Arrow"
    rows = tuple(read.rows)
    table = DataTable(source, form, read.columns, rows, (None,) * len(rows), rounding=read.rounding)
    return _named(table, read.classes)


def _named(table: DataTable, known: ClassTree | None = None) -> DataTable:
    """A table with the names of its classes that files beside it state.

    Args:
        table: the table.
        known: what it states itself, whose names its rows have already.

    Raises:
        InputError: if it has no rows, or names of classes do not fit.
    """
    if not table.rows:
        raise InputError(f"{table.source}: the table has no rows; give at least one")
    described = classes_beside(table.source)
    classes = stated_classes(table.source, described, table.columns, known)
    if not classes:
        return table
    rows = tuple(
        with_class_names(row, classes, table.locate(number))
        for number, row in enumerate(table.rows)
    )
    return replace(table, rows=rows, classes=dict(class_columns(classes)))


def _parted(
    records: Sequence[Record],
) -> tuple[tuple[Mapping[str, Any], ...], tuple[int | None, ...]]:
    return tuple(record.value for record in records), tuple(record.line for record in records)
