"""A journal: records that are appended as they come, and safe from there on.

A file of records, each behind a mark, its length and a checksum. A process that is killed leaves at
most a torn record at the end, which the next one cuts off; damage before that is an error.
`Journal` holds bytes, `KeyedJournal` JSON values by key, of which each stands for itself: what is
damaged is left out with a warning, as if it had never been put, and the others are kept.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from factormodels.errors import InputError
from factormodels.io.files import errors_naming
from factormodels.io.guarded_opening import check_regular

logger = logging.getLogger(__name__)

_MAGIC = b"factormodels journal 2\n"
_MARK = b"\x89record\n"
"""No JSON text holds it, and other bytes do by a chance of one in 2**64."""

_HEADER = struct.Struct("<8sII")
"""The mark; the length of the record in bytes; the CRC-32 of that length and the record."""

_SYNC_SECONDS = 1.0
"""A loss of power, unlike that of a process, may cost the records of so many seconds."""


@dataclass(frozen=True)
class JournalErrors:
    """What users are told of a journal: whole sentences, in the terms of its owner.

    Attributes:
        busy: another process has it open.
        foreign: the file is not a journal, or one of another version.
        damaged: a record before the last one is not what was written.
    """

    busy: str
    foreign: str
    damaged: str


class Journal:
    """A journal that is open for this process alone; made by `open_journal`.

    Attributes:
        path: its file.
    """

    def __init__(
        self, path: Path, file: BinaryIO, errors: JournalErrors, *, salvage: bool = False
    ) -> None:
        self.path = path
        self._salvage = salvage
        self._file = file
        self._errors = errors
        self._synced = time.monotonic()

    def append(self, record: bytes) -> int:
        """Append a record and return where it starts; then no death of a process loses it.

        Raises:
            OSError: if it cannot be written, as on a full disk.
        """
        # `read` moves the position, so the end is looked up each time.
        with errors_naming(self.path):
            start = self._file.seek(0, os.SEEK_END)
            self._file.write(_HEADER.pack(_MARK, len(record), _checksum(record)) + record)
            # Once flushed, the record is in the kernel's hands and survives the death of this
            # process. Only a power failure needs fdatasync, which is too slow for every record.
            self._file.flush()
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                os.fdatasync(self._file.fileno())
                self._synced = time.monotonic()
        return start

    def read(self, start: int) -> bytes:
        """The record that starts there.

        Raises:
            InputError: if it is no longer what was written.
        """
        # Checked at every read, since a value may be read long after the file was opened.
        record = _record_at(self._file, start)
        if record is None:
            raise InputError(self._errors.damaged)
        return record

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield every record with where it starts.

        Raises:
            InputError: if a record is damaged.
        """
        return _records(self._file, self._errors, salvage=self._salvage)

    def value(self, start: int) -> Any:
        """The value of the keyed record that starts there.

        Raises:
            InputError: if it is no longer what was written.
        """
        return _keyed(self.read(start), self._errors)[1]

    def starts(self) -> Iterator[tuple[int, str]]:
        """Yield the key of every record of a keyed journal, with where it starts.

        Raises:
            InputError: if a record is damaged, or is no value by key.
        """
        for start, record in self.records():
            yield start, _keyed(record, self._errors)[0]

    def clear(self) -> None:
        """Drop every record."""
        # The file stays open and locked; removing it would let another process lock a new one.
        self._file.truncate(len(_MAGIC))


class KeyedJournal(Mapping[str, Any]):
    """Plain JSON values by key, each safe once it is put; made by `open_keyed_journal`.

    The keys are in memory and the values in the file. Of a key that was put twice the later value
    counts. Numbers come back to the last bit.
    """

    def __init__(self, journal: Journal) -> None:
        self.path = journal.path
        self._journal = journal
        # Only where each value starts is held in memory; of a key that was put twice, the later
        # place.
        self._starts = {key: start for start, key in journal.starts()}

    def put(self, key: str, value: Any) -> None:
        """Keep a value.

        Raises:
            OSError: if it cannot be written, as on a full disk.
        """
        self._starts[key] = self._journal.append(json.dumps([key, value]).encode())

    def __getitem__(self, key: str) -> Any:
        return self._journal.value(self._starts[key])

    def __contains__(self, key: object) -> bool:
        return key in self._starts

    def __iter__(self) -> Iterator[str]:
        return iter(self._starts)

    def __len__(self) -> int:
        return len(self._starts)


@contextmanager
def open_journal(
    path: Path, errors: JournalErrors, *, anew: bool = False, salvage: bool = False
) -> Iterator[Journal]:
    """Open a journal for this process alone, made if there is none; a torn end is cut off.

    Args:
        path: its file.
        errors: what users are told.
        anew: drop whatever the file holds.
        salvage: leave out records that are damaged, rather than refuse the file.

    Raises:
        InputError: if another process has it open, it is not a journal or regular file, or a record
            is damaged.
        OSError: if the file cannot be opened for writing.
    """
    check_regular(path)
    # Append mode creates the file but does not empty it, as "w" would before the lock is held.
    with errors_naming(path), path.open("a+b") as file:
        try:
            # The lock belongs to the open file and goes with the process, however it ends: no stale
            # lock files.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(errors.busy) from None
        # Where the last whole record ends; 0 also rewrites a file that is cut off within its magic
        # line.
        end = 0
        if not anew:
            damaged: list[int] = []
            for start, record in _records(file, errors, damaged, salvage=salvage):
                end = start + _HEADER.size + len(record)
            if damaged:
                logger.warning(
                    "%s: %d places in it are damaged; what stood there is left out, the rest is "
                    "kept",
                    path,
                    len(damaged),
                )
        file.truncate(end)
        if not end:
            file.write(_MAGIC)
            file.flush()
        # On an error the final sync is skipped, as `append` has already handed over every record.
        yield Journal(path, file, errors, salvage=salvage)
        file.flush()
        os.fdatasync(file.fileno())


@contextmanager
def open_keyed_journal(path: Path, errors: JournalErrors) -> Iterator[KeyedJournal]:
    """Open a journal of values by key; arguments and errors are those of `open_journal`."""
    with open_journal(path, errors, salvage=True) as journal:
        yield KeyedJournal(journal)


def read_journal(path: Path, errors: JournalErrors, *, salvage: bool = False) -> Iterator[bytes]:
    """Yield the whole records of a journal as it is now; none if there is no such file.

    Raises:
        InputError: if it is not a journal, or a record is damaged and they are not salvaged.
    """
    check_regular(path)
    # No lock is taken: a reader may look at a run at work, and takes what is whole by then.
    if path.exists():
        with path.open("rb") as file:
            for _, record in _records(file, errors, salvage=salvage):
                yield record


def read_keyed_journal(path: Path, errors: JournalErrors) -> dict[str, Any]:
    """The values of a journal as it is now; errors are those of `read_journal`."""
    records = read_journal(path, errors, salvage=True)
    return dict(_keyed(record, errors) for record in records)


def _keyed(record: bytes, errors: JournalErrors) -> tuple[str, Any]:
    try:
        key, value = json.loads(record)
    # Whole, but of a journal of another kind.
    except (ValueError, TypeError):
        raise InputError(errors.foreign) from None
    return str(key), value


def _records(
    file: BinaryIO,
    errors: JournalErrors,
    damaged: list[int] | None = None,
    *,
    salvage: bool = False,
) -> Iterator[tuple[int, bytes]]:
    """Yield every whole record with where it starts; note in `damaged` where one is not."""
    # What another process appends meanwhile may be half visible: it is left to the next reader.
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    magic = file.read(len(_MAGIC))
    # An empty or torn magic line is our own, of a process killed at the very start.
    if magic != _MAGIC and not _MAGIC.startswith(magic):
        raise InputError(errors.foreign)
    start = len(_MAGIC)
    while start < size:
        record = _record_at(file, start)
        if record is None:
            # A process that dies tears its last record alone: if none follows, this is that one.
            file.seek(start + 1)
            following = file.read(max(size - start - 1, 0)).find(_MARK)
            if following < 0:
                return
            if not salvage:
                raise InputError(errors.damaged)
            if damaged is not None:
                damaged.append(start)
            start += 1 + following
            continue
        yield start, record
        start += _HEADER.size + len(record)


def _record_at(file: BinaryIO, start: int) -> bytes | None:
    """The record that starts there, None if it is not whole or not what was written."""
    file.seek(start)
    header = file.read(_HEADER.size)
    # The file ends within a header.
    if len(header) < _HEADER.size:
        return None
    mark, length, checksum = _HEADER.unpack(header)
    # A damaged length may name gigabytes, for which memory would be asked before the file ends.
    if mark != _MARK or length > os.fstat(file.fileno()).st_size:
        return None
    record = file.read(length)
    whole = len(record) == length and checksum == _checksum(record)
    return record if whole else None


def _checksum(record: bytes) -> int:
    # The length is covered too: a damaged one would otherwise read past the record.
    return zlib.crc32(record, zlib.crc32(len(record).to_bytes(4, "little")))
