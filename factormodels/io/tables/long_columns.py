"""Long columns: short ones are in memory, long ones in temporary files, made piece by piece.

Such a file has no name and is gone with its column, however the process ends. It is mapped: the
system drops its pages where memory is wanted, so that a column takes none that others lack.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

LONG = 131_072
"""Rows of the longest column that is in memory, and of the pieces in which others are made."""


def pieces(length: int) -> Iterator[slice]:
    """Yield slices of at most `LONG` rows, together all rows of a column; one where it is short."""
    for start in range(0, max(length, 1), LONG):
        yield slice(start, min(start + LONG, length))


def joined(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Arrays, one or more, one after the other as one; a long one is read-only."""
    coming, first_parts, length = iter(parts), [], 0
    for part in coming:
        first_parts.append(part)
        length += len(part)
        if length > LONG:
            break
    else:
        return first_parts[0] if len(first_parts) == 1 else np.concatenate(first_parts)
    first = first_parts[0]
    with tempfile.TemporaryFile() as file:
        # Written, not stored through the map: a full disk is an error then, and no signal.
        for part in chain(first_parts, coming):
            file.write(np.ascontiguousarray(part).data)
        return np.frombuffer(_mapped(file), first.dtype).reshape(-1, *first.shape[1:])


def piecewise(function: Callable[..., Any], *columns: NDArray[Any]) -> NDArray[Any]:
    """``function(*columns)``, of long columns piece by piece.

    Args:
        function: what it makes of a row depends on that row alone.
        columns: arrays of one length.
    """
    if len(columns[0]) <= LONG:
        result: NDArray[Any] = function(*columns)
        return result
    return joined(
        function(*(column[piece] for column in columns)) for piece in pieces(len(columns[0]))
    )


def stored_table(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int | None = None
) -> pa.Table:
    """Batches of rows as one table; of more than `most` rows, else `LONG`, all are in a file."""
    import pyarrow as pa

    coming, first_batches, length = iter(batches), [], 0
    for batch in coming:
        first_batches.append(batch)
        length += batch.num_rows
        if length > (most or LONG):
            break
    else:
        return pa.Table.from_batches(first_batches, schema)
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_stream(file, schema) as writer:
            for batch in chain(first_batches, coming):
                writer.write_batch(batch)
        # Arrow takes its columns where they are, which is in the map.
        return pa.ipc.open_stream(pa.py_buffer(_mapped(file))).read_all()


def stored_column(parts: Iterable[pa.Array], kind: pa.DataType) -> pa.ChunkedArray:
    """Arrays of one type one after the other, as `stored_table` keeps them."""
    import pyarrow as pa

    schema = pa.schema([("column", kind)])
    batches = (pa.record_batch([part], schema=schema) for part in parts)
    return stored_table(batches, schema)["column"]


def texts_differ(column: pa.ChunkedArray) -> bool:
    """Whether no two texts are known to be equal: two that share a hash may yet differ."""
    hashes = np.concatenate(
        [np.fromiter(map(hash, part.to_pylist()), np.int64, len(part)) for part in column.chunks]
        or [np.zeros(0, dtype=np.int64)]
    )
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all())


def _mapped(file: Any) -> mmap.mmap:
    file.flush()
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
