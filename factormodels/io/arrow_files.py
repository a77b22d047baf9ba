"""The one gate to Arrow and Parquet that were written elsewhere: nothing passes unchecked.

Arrow takes lengths, offsets and texts of a file where they are, so that one flipped bit is a read
beyond the memory: a segmentation fault, which no process survives. Every table is validated in full
before a value of it is looked at, what a library raises of damage becomes a sentence that names the
file, and nothing is unpacked beyond the size that `guarded_opening` allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factormodels.errors import InputError
from factormodels.io.guarded_opening import Source, check_regular, refuse_larger

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET = b"PAR1"
_ARROW_FILE = b"ARROW1"
_ARROW_STREAM = b"\xff\xff\xff\xff"

_ROWS_AT_ONCE = 65_536
_REASON_SHOWN = 120


def is_binary_table(content: bytes) -> bool:
    """Whether a file's content is Parquet or Arrow."""
    return content.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM))


def is_parquet(content: bytes) -> bool:
    """Whether a file's content is Parquet."""
    return content.startswith(_PARQUET)


@contextmanager
def undamaged(source: object, mend: str) -> Iterator[None]:
    """Turn whatever pyarrow meets in a damaged file into an error that names it.

    Args:
        source: the file, as the message names it.
        mend: what to do, such as "save it again".

    Raises:
        InputError: if the block meets damage.
    """
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    # A flipped bit may be met anywhere: in a page, a length, a text, a type, a count of rows. What
    # it was a part of may ask for all the memory there is, be a date that Python does not know, or
    # a name that is no text; some of it the library reports as a fault of its own.
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
        raise InputError(f"{source}: it is damaged ({reason}); {mend}") from None


def arrow_records(content: bytes, source: Source) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The columns and the rows, of Python's own values, that the bytes of a file hold.

    Args:
        content: the bytes, of which `is_binary_table` is true.
        source: their file, for messages.

    Raises:
        InputError: if they are damaged, name two columns alike, unpack to more than is allowed, or
            hold what Python has no value for, such as a date beyond those that it knows.
    """
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    taken = 0
    with undamaged(source, "save it again"):
        schema, batches = _opened(pa.BufferReader(content), content)
        names = tuple(schema.names)
        for name, times in Counter(names).items():
            if times > 1:
                raise InputError(f"{source}: two columns have the name {name!r}; give each its own")
        for batch in batches:
            batch.validate(full=True)
            taken += batch.nbytes
            refuse_larger(taken, source)
            rows += batch.to_pylist()
    return names, rows


def _opened(buffer: Any, content: bytes) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    if is_parquet(content):
        file = parquet.ParquetFile(buffer)
        return file.schema_arrow, file.iter_batches(_ROWS_AT_ONCE)
    if content.startswith(_ARROW_FILE):
        reader = pa.ipc.open_file(buffer)
        return reader.schema, map(reader.get_batch, range(reader.num_record_batches))
    stream = pa.ipc.open_stream(buffer)
    return stream.schema, iter(stream)


def record_batch(encoded: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows that `RecordBatch.serialize` made bytes of, validated.

    Raises:
        pyarrow.ArrowException, OSError: if they are damaged, or of another schema.
    """
    import pyarrow as pa

    batch = pa.ipc.read_record_batch(pa.py_buffer(encoded), schema)
    batch.validate(full=True)
    return batch


class ParquetGroups:
    """A Parquet file that is open: its row groups are read as they are asked for, validated.

    Attributes:
        path: the file.
        schema: its columns.
        names: their names.
        n_rows: number of its rows.
        n_groups: number of its row groups.
    """

    def __init__(self, path: Path, mend: str) -> None:
        """Open a file, of which the footer alone is read.

        Args:
            path: the file.
            mend: what to do about a damaged one.

        Raises:
            InputError: if it is no regular file, or its footer is damaged.
        """
        import pyarrow.parquet as parquet

        check_regular(path)
        self.path = path
        self._mend = mend
        with self.undamaged():
            self._file = parquet.ParquetFile(path)
            self.schema: pa.Schema = self._file.schema_arrow
            self.names = tuple(self.schema.names)
            self.n_rows: int = self._file.metadata.num_rows
            self.n_groups: int = self._file.num_row_groups

    def undamaged(self) -> AbstractContextManager[None]:
        """As the function of this name, of this file."""
        return undamaged(self.path, self._mend)

    def read(
        self, groups: Sequence[int] | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Columns of some row groups; every group, every column, if None.

        Raises:
            InputError: if the file is damaged there.
        """
        chosen = range(self.n_groups) if groups is None else groups
        wanted = None if columns is None else list(columns)
        with self.undamaged():
            table = self._file.read_row_groups(list(chosen), columns=wanted)
            table.validate(full=True)
        # Without what pandas or another library wrote beside the values for itself.
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
