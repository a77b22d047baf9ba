"""Long columns: in files what they are in memory; files without names, gone with their columns."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from factormodels.io.tables import long_columns
from factormodels.io.tables.long_columns import (
    joined,
    pieces,
    piecewise,
    stored_column,
    stored_table,
    texts_differ,
)
from tests.memory import held_by_arrow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where temporary files are, of columns of more than four rows."""
    monkeypatch.setattr(long_columns, "LONG", 4)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def files_within(folder: Path) -> list[str]:
    """The files of a folder that this process has open or mapped, with a name or without.

    What a cycle of objects keeps does not count; a collection takes long, so that there is one only
    where something is left.
    """
    if found := _seen_within(folder):
        gc.collect()
        found = _seen_within(folder)
    return found


def _seen_within(folder: Path) -> list[str]:
    opened = [str(one.resolve()) for one in Path("/proc/self/fd").iterdir() if one.exists()]
    mapped = Path("/proc/self/maps").read_text().splitlines()
    lines = [*opened, *mapped, *map(str, folder.iterdir())]
    return [line for line in lines if str(folder) in line]


@pytest.mark.parametrize("length", [0, 1, 4, 5, 8, 9, 23])
@pytest.mark.parametrize("width", [(), (3,)])
def test_a_column_is_what_its_function_gives(
    folder: Path, length: int, width: tuple[int, ...]
) -> None:
    column = np.random.default_rng(length).normal(size=(length, *width))
    kept = np.arange(length) % 3 == 1
    for function, columns in (
        (np.exp, (column,)),
        (lambda a, b: a - 2 * b, (column, column**2)),
        (lambda a: a > 0, (column,)),
        (lambda a: a.astype(np.int8), (column,)),
        (lambda a, kept: a[kept], (column, kept)),
    ):
        expected, found = function(*columns), piecewise(function, *columns)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
        assert found.flags.writeable == (len(found) <= 4)
    assert sum(len(column[piece]) for piece in pieces(length)) == length
    del found, expected
    assert not files_within(folder)


def test_parts_of_any_length_are_joined(folder: Path) -> None:
    parts = [np.arange(n, dtype=np.int64) for n in (0, 3, 0, 1, 7, 2)]
    found = joined(iter(parts))
    assert np.array_equal(found, np.concatenate(parts))
    # Mapped without a name: there is nothing to remove, however the process ends.
    assert not list(folder.iterdir())
    assert all("(deleted)" in line for line in files_within(folder))
    assert files_within(folder)
    del found
    assert not files_within(folder)


@pytest.mark.parametrize("length", [0, 4, 5, 11])
def test_a_table_is_its_batches(folder: Path, length: int) -> None:
    schema = pa.schema([("text", pa.string()), ("numbers", pa.list_(pa.int64()))])
    rows = [{"text": f"t{n}" if n % 3 else None, "numbers": [*range(n)]} for n in range(length)]
    batches = [
        pa.RecordBatch.from_pylist(rows[n : n + 2], schema=schema) for n in range(0, length, 2)
    ]
    before = held_by_arrow()
    found = stored_table(iter(batches), schema)
    assert found.to_pylist() == rows
    assert bool(files_within(folder)) == (length > 4)
    if length > 4:
        # It takes its columns where they are, in the file.
        assert held_by_arrow() == before
    part = found["text"].slice(1)
    del found
    assert part.to_pylist() == [row["text"] for row in rows][1:]
    del part
    assert not files_within(folder)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_of_a_column_that_is_not_made(
    folder: Path, error: type[BaseException]
) -> None:
    def parts() -> Iterator[NDArray[np.float64]]:
        yield np.zeros(9)
        assert files_within(folder)
        raise error

    schema = pa.schema([("column", pa.float64())])
    for attempt in (
        lambda: joined(parts()),
        lambda: stored_column((pa.array(part) for part in parts()), pa.float64()),
        lambda: stored_table((pa.record_batch([p], schema=schema) for p in parts()), schema),
    ):
        with pytest.raises(error):
            attempt()
        assert not files_within(folder)


def test_texts_differ_or_may_not() -> None:
    def column(*parts: list[str | None]) -> pa.ChunkedArray:
        return pa.chunked_array(list(parts), pa.string())

    assert texts_differ(column())
    assert texts_differ(column(["a", "b"], [], ["c"]))
    assert not texts_differ(column(["a", "b"], ["c", "a"]))
    assert not texts_differ(column(["a", None], [None]))
