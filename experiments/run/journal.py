"""The journal of a run: finished units, appended as they come and safe from there on.

A file of records, each with its length and checksum in front. A process that is killed leaves at
most a torn record at the end, which the next one cuts off.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from factormodels.errors import InputError

_MAGIC = b"factormodels units 1\n"
_HEADER = struct.Struct("<II")
_SYNC_SECONDS = 1.0
"""A loss of power, unlike that of a process, may cost the records of so many seconds."""


class Journal:
    """A journal that is open for appending; made by `open_journal`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._synced = time.monotonic()

    def append(self, record: bytes) -> None:
        """Append a record; when this returns, no death of a process loses it.

        Raises:
            OSError: if it cannot be written, as on a full disk.
        """
        header = _HEADER.pack(len(record), zlib.crc32(record))
        self._file.write(header + record)
        self._file.flush()
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            os.fdatasync(self._file.fileno())
            self._synced = time.monotonic()

    def clear(self) -> None:
        """Drop every record."""
        self._file.truncate(len(_MAGIC))


@contextmanager
def open_journal(path: Path) -> Iterator[Journal]:
    """Open a journal for one run alone; what follows its last whole record is cut off.

    Raises:
        InputError: if another run has it open, or the file is no journal.
    """
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{path.parent.parent}: another run is at work in this folder; wait for it, or "
                "give another --out"
            ) from None
        file.truncate(_whole(path))
        if file.tell() == 0 or path.stat().st_size == 0:
            file.write(_MAGIC)
            file.flush()
        yield Journal(file)
        file.flush()
        os.fdatasync(file.fileno())


def read_journal(path: Path) -> Iterator[bytes]:
    """Yield the whole records of a journal; none if there is no such file.

    Raises:
        InputError: if the file is no journal.
    """
    for record, _ in _records(path):
        yield record


def _whole(path: Path) -> int:
    """Return the length of the part of a journal that is whole."""
    magic = len(_MAGIC) if path.stat().st_size >= len(_MAGIC) else 0
    return max((end for _, end in _records(path)), default=magic)


def _records(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield every whole record with where it ends."""
    if not path.exists():
        return
    with path.open("rb") as file:
        magic = file.read(len(_MAGIC))
        if magic != _MAGIC:
            if _MAGIC.startswith(magic):
                return
            raise InputError(
                f"{path}: this is no journal of a run; remove it, or give another --out"
            )
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, checksum = _HEADER.unpack(header)
            record = file.read(length)
            if len(record) < length or zlib.crc32(record) != checksum:
                return
            yield record, file.tell()
