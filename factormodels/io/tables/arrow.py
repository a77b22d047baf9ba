"""The only module that reads Arrow and Parquet files, with full validation.

Arrow uses lengths, offsets and texts in a file without checks, so that a single flipped bit may
cause a read beyond the memory: a segmentation fault, which ends the process. Every table is
validated completely before its values are read, exceptions of the library become errors that name
the file, and neither decompressed data nor values exceed the limit of `source.opening`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.io.source.opening import (
    Source,
    check_regular,
    refuse_larger,
    refuse_larger_table,
    refuse_more_values,
)
from factormodels.io.tables.arrow_extent import extents
from factormodels.io.tables.arrow_messages import unpacked_sizes
from factormodels.io.tables.class_names import ClassTree, classes_of_arrow, with_class_names
from factormodels.io.tables.parquet_footer import declared_values

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET = b"PAR1"
_ARROW_FILE = b"ARROW1"
_ARROW_STREAM = b"\xff\xff\xff\xff"
_FEATHER_1 = b"FEA1"

ARROW_MARKS = (_PARQUET, _ARROW_FILE, _ARROW_STREAM, _FEATHER_1)
"""First bytes of Parquet, Arrow and Feather files."""

_ROUNDING = {"halffloat": 2.0**-10, "float": 2.0**-23}
"""Distance from 1 to the next number, for types coarser than Python's float."""

_ROWS_AT_ONCE = 65_536
_REASON_SHOWN = 120


@dataclass(frozen=True)
class ArrowRecords:
    """The rows of a Parquet or Arrow file.

    Attributes:
        columns: names of the columns.
        rows: Python values by column; names of classes replace their integers.
        classes: names of classes stated in the file.
        rounding: distance from 1 to the next number, for columns of float32 and float16; keys of
            objects, also in lists, are joined by a dot.
    """

    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    classes: ClassTree
    rounding: Mapping[str, float]


def is_binary_table(content: bytes) -> bool:
    """Return whether a file's content is Parquet, Arrow or Feather."""
    return content.startswith(ARROW_MARKS)


def is_parquet(content: bytes) -> bool:
    """Return whether a file's content is Parquet."""
    return content.startswith(_PARQUET)


@contextmanager
def undamaged(source: object, advice: str) -> Iterator[None]:
    """Turn exceptions of pyarrow due to a damaged file into an error that names it.

    Args:
        source: the file, as the message names it.
        advice: advice, such as "save it again".

    Raises:
        InputError: if the block finds damage.
    """
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    # A flipped bit may affect any part: a page, a length, a text, a type, a count of rows. The
    # result may be a request for too much memory, a date outside Python's range, or an invalid
    # name; the library reports some of it as an internal error.
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        OverflowError,
        MemoryError,
        RecursionError,
        StopIteration,
        SystemError,
    ) as error:
        reason = " ".join(str(error).split())[:_REASON_SHOWN] or type(error).__name__
        raise InputError(f"{source}: it is damaged ({reason}); {advice}") from None


def arrow_records(files: Iterable[tuple[Source, bytes]]) -> ArrowRecords:
    """Return columns and rows of one table in one or more files.

    Args:
        files: the files, for messages, and their bytes, for which `is_binary_table` is true.

    Raises:
        InputError: if a file is damaged, has duplicate columns or other columns than the first
            file, has values without a Python form, such as dates outside Python's range, states
            names of classes that do not fit, is Feather version 1, or if all files together exceed
            the limit.
    """
    first: tuple[Source, tuple[str, ...]] | None = None
    rows: list[dict[str, Any]] = []
    classes: dict[str, Any] = {}
    rounding: dict[str, float] = {}
    taken = np.zeros(2)
    for source, content in files:
        if content.startswith(_FEATHER_1):
            raise InputError(
                f"{source}: this is Feather version 1, which can no longer be read; save it again "
                "with to_feather of pandas 1 or later, or with to_parquet"
            )
        n_before = len(rows)
        with undamaged(source, "save it again"):
            schema, batches = _opened(content, source, n_before)
            names = tuple(schema.names)
            first = first or (source, names)
            if names != first[1]:
                raise InputError(
                    f"{source}: its columns are {', '.join(names)}, and those of "
                    f"{Path(first[0]).name} {', '.join(first[1])}; keep files of one table in a "
                    "folder"
                )
            file_classes = classes_of_arrow(schema, source)
            rounding |= dict(pair for field in schema for pair in _rounding(field.name, field.type))
            for batch in batches:
                refuse_larger_table(len(rows) + batch.num_rows, len(names), source)
                batch.validate(full=True)
                taken += _extent(batch, source)
                refuse_more_values(taken[0], source)
                refuse_larger(int(taken[1]), source)
                # In pieces, so that the process can be interrupted in between.
                for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                    rows += batch.slice(start, _ROWS_AT_ONCE).to_pylist()
        if file_classes:
            rows[n_before:] = [
                with_class_names(row, file_classes, f"{source}, row {number}")
                for number, row in enumerate(rows[n_before:], 1)
            ]
            classes |= file_classes
    return ArrowRecords(first[1] if first else (), rows, classes, rounding)


def _rounding(name: str, kind: Any) -> Iterator[tuple[str, float]]:
    """Yield the coarse number columns within a column of a type, with their rounding."""
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _rounding(name, kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _rounding(f"{name}.{field.name}", field.type)
    elif (rounding := _ROUNDING.get(str(kind))) is not None:
        yield name, rounding


def _extent(batch: pa.RecordBatch, source: Source) -> NDArray[np.float64]:
    """Return the number of values of all columns, and the bytes of their texts."""
    total = np.zeros(2)
    for column in batch.columns:
        total += extents(column, lambda n: refuse_more_values(n, source)).sum(axis=0)
    return total


def _opened(
    content: bytes, source: Source, rows_before: int
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return schema and batches of bytes that are not decompressed yet.

    Raises:
        InputError: if two columns have the same name, or the file declares too large a size.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    buffer = pa.BufferReader(content)
    if is_parquet(content):
        file = parquet.ParquetFile(buffer)
        metadata = file.metadata
        schema = _distinct(file.schema_arrow, source)
        refuse_larger_table(rows_before + metadata.num_rows, len(schema), source)
        groups = range(metadata.num_row_groups)
        refuse_larger(sum(metadata.row_group(group).total_byte_size for group in groups), source)
        leaves = [metadata.schema.column(at) for at in range(metadata.num_columns)]
        declared = declared_values(content)
        refuse_more_values(sum(map(sum, declared)), source)
        widths = [leaf.length or 0 for leaf in leaves]
        refuse_larger(sum(sum(map(operator.mul, group, widths)) for group in declared), source)
        # Keep dictionary encoding, so that a text shared by many rows is not repeated before
        # checks.
        texts = {leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"}
        shared = parquet.ParquetFile(buffer, metadata=metadata, read_dictionary=sorted(texts))
        return schema, shared.iter_batches(_ROWS_AT_ONCE)
    refuse_larger(sum(unpacked_sizes(content)), source)
    if content.startswith(_ARROW_FILE):
        reader = pa.ipc.open_file(buffer)
        batches = map(reader.get_batch, range(reader.num_record_batches))
        return _distinct(reader.schema, source), batches
    stream = pa.ipc.open_stream(buffer)
    return _distinct(stream.schema, source), iter(stream)


def _distinct(schema: pa.Schema, source: Source) -> pa.Schema:
    for name, times in Counter(schema.names).items():
        if times > 1:
            raise InputError(f"{source}: two columns have the name {name!r}; give each its own")
    return schema


def record_batch(encoded: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Return the validated rows of bytes made by `RecordBatch.serialize`.

    Raises:
        pyarrow.ArrowException, OSError: if they are damaged, or of another schema.
    """
    import pyarrow as pa

    batch = pa.ipc.read_record_batch(pa.py_buffer(encoded), schema)
    batch.validate(full=True)
    return batch


class ParquetGroups:
    """An open Parquet file, whose row groups are read on demand and validated.

    Attributes:
        path: the file.
        schema: its columns.
        names: their names.
        n_rows: number of its rows.
        n_groups: number of its row groups.
    """

    def __init__(self, path: Path, advice: str) -> None:
        """Open a file, reading only its footer.

        Args:
            path: the file.
            advice: advice for a damaged file.

        Raises:
            InputError: if it is not a regular file, or its footer is damaged.
        """
        import pyarrow.parquet as parquet

        check_regular(path)
        self.path = path
        self._mend = advice
        with self.undamaged():
            self._file = parquet.ParquetFile(path, page_checksum_verification=True)
            self.schema: pa.Schema = self._file.schema_arrow
            self.names = tuple(self.schema.names)
            self.n_rows: int = self._file.metadata.num_rows
            self.n_groups: int = self._file.num_row_groups

    def undamaged(self) -> AbstractContextManager[None]:
        """Apply the function of this name to this file."""
        return undamaged(self.path, self._mend)

    def read(
        self, groups: Sequence[int] | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return columns of some row groups; all groups or all columns if None.

        Raises:
            InputError: if the file is damaged there.
        """
        chosen = range(self.n_groups) if groups is None else groups
        wanted = None if columns is None else list(columns)
        with self.undamaged():
            # Starting threads takes longer than reading a few rows.
            threads = self.n_rows > _ROWS_AT_ONCE
            table = self._file.read_row_groups(list(chosen), columns=wanted, use_threads=threads)
            table.validate(full=True)
        # Drop metadata that pandas or another library stored for itself.
        return table.replace_schema_metadata(None)

    def first_row(self, group: int, columns: Sequence[str]) -> dict[str, Any]:
        """Columns of the first row of a group, which alone is unpacked.

        Raises:
            InputError: if the file is damaged there.
        """
        with self.undamaged():
            batch = next(self._file.iter_batches(1, row_groups=[group], columns=list(columns)))
            batch.validate(full=True)
            row: dict[str, Any] = batch.to_pylist()[0]
        return row
