"""Tables as records: CSV, TSV, Excel, JSON (Lines), Parquet, Arrow, folders of datasets.

`read_table` recognizes tables by their content: CSV (commas or semicolons, with or without Excel's
byte order mark), columns separated by tabs, JSON Lines, a list of JSON objects, Excel workbooks
with one sheet, Parquet, Arrow, and folders that Hugging Face's `save_to_disk` wrote or that contain
Parquet files. The caller interprets the columns; `DataTable.locate` names a cell for its errors.
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
"""Maximum characters of a column's name; a clause of prose is often longer."""


@dataclass(frozen=True, eq=False)
class DataTable:
    """The records of a table.

    Attributes:
        source: its file or folder, for messages.
        form: its format: "CSV", "TSV", "Excel", "JSON", "JSON Lines", "Parquet" or "Arrow".
        columns: names of the columns, in order of first occurrence.
        rows: values by column; texts for CSV and TSV, otherwise the file's values. A record of JSON
            may lack a column.
        lines: line of the file, from 1, at which each row begins; None if a file has no lines.
        classes: names of classes by column, stated in the file or beside it; rows have the names
            instead of integers. Keys of objects are joined by a dot, here and in `rounding`.
        rounding: distance from 1 to the next number, for columns of float32 and float16.
    """

    source: str
    form: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    lines: tuple[int | None, ...]
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rounding: Mapping[str, float] = field(default_factory=dict)

    def locate(self, row: int, column: str | None = None) -> str:
        """Return the place of a row, counted from 0, or of its cell in a column, for errors."""
        line = self.lines[row]
        # Without lines, name the number of the row, counted from 1.
        where = f"{self.source}, row {row + 1}" if line is None else location(self.source, line)
        return where if column is None else f"{where}, column {column!r}"

    def frame(self) -> pd.DataFrame:
        """Return the rows as a data frame, with missing values for missing columns."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns))


def frame_rows(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a pandas data frame, with None for missing values.

    A named index becomes a column.
    """
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    whole = frame.reset_index(named) if named else frame
    # Missing values of a frame are NaN, for any type of column.
    plain = whole.astype(object).where(whole.notna(), None)
    rows: list[dict[str, Any]] = plain.to_dict("records")
    return rows


def given_rows(data: Any) -> list[Any]:
    """Return the rows of a pandas or polars data frame, an Arrow table, columns by name, or rows.

    The type is recognized by its methods, so that no library is loaded. A dataset of `datasets` is
    an iterable of rows.

    Raises:
        InputError: if two columns have the same name, or the object is a single column.
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
    """Return the rows of columns given by name, as for a data frame.

    Raises:
        InputError: if a column is not a list of values, or lengths differ.
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
        raise InputError(f"the columns have different numbers of values ({counts}); correct one")
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _refuse_repeated(names: Iterable[Any]) -> None:
    """Check that columns have distinct names, where 0 and "0" are the same name.

    Raises:
        InputError: if two columns have the same name.
    """
    counts = Counter(map(str, names))
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"the table has two columns of the name {repeated!r}; give each its own")


def given_classes(data: Any, where: str) -> ClassTree:
    """Return the names of classes stated in a table in memory: of pandas, Arrow or `datasets`.

    Args:
        data: an object that `given_rows` accepts.
        where: its name in errors.

    Raises:
        InputError: if the names of a class cannot be interpreted.
    """
    if hasattr(data, "iloc"):
        # Other attributes of a pandas data frame may be columns.
        numeric = [str(name) for name, kind in data.dtypes.items() if _may_be_classes(kind)]
        return classes_of_attributes(data.attrs, numeric, where)
    features = getattr(getattr(data, "features", None), "to_dict", None)
    if features is not None:
        return classes_of_features(features(), where)
    schema = getattr(data, "schema", None)
    is_arrow = hasattr(schema, "metadata") and hasattr(schema, "field")
    return classes_of_arrow(schema, where) if is_arrow else {}


def _may_be_classes(kind: Any) -> bool:
    """Return whether a pandas column type may hold integers, with or without gaps."""
    return getattr(kind, "kind", "") in "iuf" or str(kind) == "object"


def read_table(source: Source, *, empty_rows: bool = False) -> DataTable:
    """Read the records of a table from a file, compressed by gzip or not, or from a dataset's
    folder.

    Args:
        source: the file or folder.
        empty_rows: whether to keep rows of CSV with empty cells only, which spreadsheets append.

    Raises:
        InputError: if it cannot be read, is not a table, or has no rows; the message names the file
            and the line.
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
    """Return the records of a table in a text: JSON Lines, a JSON list of objects, CSV or TSV.

    Args:
        text: the table.
        source: its file, for messages.
        empty_rows: whether to keep rows of CSV with empty cells only.

    Raises:
        InputError: if it is not a table, or has no rows.
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
        return _named(DataTable(str(source), form, columns, *_values_and_lines(records)))
    names = [name.strip() for name in column_names(text)]
    repeated = [name for name, times in Counter(names).items() if times > 1 and name]
    if repeated:
        raise InputError(
            f"{location(source, 1)}: two columns have the name {repeated[0]!r}; give each its own"
        )
    records = [
        # Drop columns without a name, such as a saved index.
        Record({name.strip(): cell for name, cell in row.value.items() if name.strip()}, row.line)
        for row in strictly(table_records(text, source))
        # Spreadsheets append rows of commas only.
        if empty_rows or any(cell.strip() for cell in row.value.values())
    ]
    form = "TSV" if "\t" in re.split(r"[\r\n]", text, maxsplit=1)[0] else "CSV"
    columns = tuple(name for name in names if name)
    return _named(DataTable(str(source), form, columns, *_values_and_lines(records)))


def looks_like_table(text: str) -> bool:
    """Return whether a text that is not JSON may be a table, whose shape prose rarely has.

    Its first line has two or more short and distinct names of columns, and every other row has as
    many cells.
    """
    names = [name.strip() for name in column_names(text)]
    if len(names) < 2 or len(set(names)) < len(names):
        return False
    if any(len(name) > _LONGEST_NAME or name.endswith((".", "!", "?")) for name in names):
        return False
    records = list(table_records(text, ""))
    return bool(records) and all(record.error is None for record in records)


def _read_folder(folder: Path) -> DataTable:
    """Read the table of a folder: Arrow files of `save_to_disk`, or Parquet or Arrow files."""
    if (folder / _SPLITS).is_file():
        splits = _listed(folder / _SPLITS, "splits")
        # A single split is the table; the user must choose among several.
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
    """Return whether a folder contains a saved dataset, or Parquet or Arrow files."""
    if (folder / _SPLITS).is_file() or (folder / _STATE).is_file():
        return True
    return any(path.suffix in _BINARY for path in folder.rglob("*"))


def _listed(path: Path, key: str, inner: str = "") -> list[Path]:
    """Return the paths in the list `key` of a file, under the key `inner` if given."""
    value = decode(read_text(path), path)
    listed = value.get(key) if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise InputError(f"{path}: the list {key!r} is missing; save the dataset again")
    places = []
    for entry in listed:
        name = entry.get(inner) if inner and isinstance(entry, dict) else entry
        # Refuse paths outside the folder, and the folder itself, which would recurse endlessly.
        if not isinstance(name, str) or name in ("", "..") or Path(name).name != name:
            raise InputError(
                f"{path}: {key!r} has {shown(name)} where the name of a file or folder beside it "
                "belongs; save the dataset again"
            )
        places.append(path.parent / name)
    return places


def _of_arrow(files: Iterable[tuple[Path, bytes]], source: str, *, parquet: bool) -> DataTable:
    """Return the table of one or more Parquet or Arrow files, given with their contents."""
    read = arrow_records(files)
    form = "Parquet" if parquet else "Arrow"
    rows = tuple(read.rows)
    table = DataTable(source, form, read.columns, rows, (None,) * len(rows), rounding=read.rounding)
    return _named(table, read.classes)


def _named(table: DataTable, known: ClassTree | None = None) -> DataTable:
    """Return a table with the names of classes that files beside it state.

    Args:
        table: the table.
        known: classes stated in the table itself, whose names are already in the rows.

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


def _values_and_lines(
    records: Sequence[Record],
) -> tuple[tuple[Mapping[str, Any], ...], tuple[int | None, ...]]:
    return tuple(record.value for record in records), tuple(record.line for record in records)
