"""The store of a folder of results: one SQLite file with all that is finished, safe as it comes.

It holds records of several kinds: units in the order in which they were finished, and JSON values
by key, such as answers. A process that is killed, a write that is torn or a disk that is full costs
at most the record that was being written. What is damaged later is left out with a warning, as if
it had never been kept, and the rest is kept. While it is written to, the latest records are in the
write-ahead log beside it; whoever closes it leaves one file.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.io.files import errors_naming
from factormodels.io.guarded_opening import check_regular
from factormodels.io.sqlite_files import DAMAGE, close_connection, connected, reason_of

logger = logging.getLogger(__name__)

STORE = "store.sqlite"
"""The name of a store within the folder of the results."""

_APPLICATION = 0x666D7273
"""Marks the file as ours: "fmrs" in ASCII."""

_VERSION = 1
_SMALLEST_PAGE = 512

_SYNC_SECONDS = 1.0
"""A loss of power, unlike that of a process, may cost the records of so many seconds."""

_TABLE = (
    "CREATE TABLE kept (kind TEXT NOT NULL, key TEXT, value BLOB NOT NULL, "
    "checksum INTEGER NOT NULL, UNIQUE (kind, key))"
)
_INSERT = (
    # A value that is put again stays where the first one was, so that the order is that of the
    # first run. Without a key no two records are the same.
    "INSERT INTO kept VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET "
    "value = excluded.value, checksum = excluded.checksum"
)
_COLUMNS = "SELECT kind, key, value, checksum FROM kept"


class ResultStore:
    """A store that is open; made by `open_store`, and by `read_store` for reading alone.

    Attributes:
        path: its file.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, mend: str) -> None:
        self.path = path
        self._connection = connection
        self._mend = mend
        self._synced = time.monotonic()
        self._told = False

    def append(self, kind: str, record: bytes) -> None:
        """Keep a record; from here on no death of a process loses it.

        Raises:
            OSError: if it cannot be written, as on a full disk.
        """
        self._insert(kind, None, record)

    def records(self, kind: str) -> Iterator[bytes]:
        """Yield the records of a kind in the order in which they were kept.

        Raises:
            InputError: if the file is damaged.
        """
        return (value for _, value in self._rows(kind))

    def n_records(self, kind: str | None = None) -> int:
        """How many records of a kind there are, or of all kinds.

        Raises:
            InputError: if the file is damaged.
        """
        with _told_errors(self.path, self._mend):
            (count,) = self._connection.execute(
                "SELECT count(*) FROM kept WHERE kind = ifnull(?, kind)", (kind,)
            ).fetchone()
        return int(count)

    def clear(self) -> None:
        """Drop every record."""
        with _told_errors(self.path, self._mend):
            self._connection.execute("DELETE FROM kept")

    def values(self, kind: str) -> KeptValues:
        """The values of a kind, by key."""
        return KeptValues(self, kind)

    def value(self, kind: str, key: str) -> Any:
        """The value that was kept last under a key; None if there is none that is whole.

        Raises:
            InputError: if the file is damaged.
        """
        with _told_errors(self.path, self._mend):
            row = self._connection.execute(
                f"{_COLUMNS} WHERE kind = ? AND key = ?", (kind, key)
            ).fetchone()
        return None if row is None or not self._whole(row) else json.loads(row[2])

    def put(self, kind: str, key: str, value: Any) -> None:
        """Keep a JSON value under a key; numbers come back to the last bit.

        Raises:
            OSError: if it cannot be written, as on a full disk.
        """
        self._insert(kind, key, json.dumps(value).encode())

    def items(self, kind: str) -> Iterator[tuple[str, Any]]:
        """Yield the values of a kind with their keys, in the order in which these came.

        Raises:
            InputError: if the file is damaged.
        """
        return ((key or "", json.loads(value)) for key, value in self._rows(kind))

    def _insert(self, kind: str, key: str | None, value: bytes) -> None:
        # A commit that is not synced is in the kernel's hands and survives the death of this
        # process. Only a loss of power needs the sync, which is too slow for every record.
        due = time.monotonic() - self._synced > _SYNC_SECONDS
        with _told_errors(self.path, self._mend):
            if due:
                self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(_INSERT, (kind, key, value, _checksum(kind, key, value)))
            if due:
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._synced = time.monotonic()

    def _rows(self, kind: str) -> Iterator[tuple[str | None, bytes]]:
        # The sign keeps the index out: it would have all values sorted.
        chosen = f"{_COLUMNS} WHERE +kind = ? ORDER BY rowid"
        with _told_errors(self.path, self._mend):
            for row in self._connection.execute(chosen, (kind,)):
                if self._whole(row):
                    yield row[1], row[2]

    def _whole(self, row: tuple[Any, ...]) -> bool:
        whole = _is_whole(row)
        if not whole and not self._told:
            _tell_damage(self.path)
            self._told = True
        return whole


class KeptValues:
    """The values of one kind in a store; methods are those of the store."""

    def __init__(self, store: ResultStore, kind: str) -> None:
        self.path = store.path
        self._store = store
        self._kind = kind

    def get(self, key: str) -> Any:
        """The value that was kept last under a key; None if there is none that is whole."""
        return self._store.value(self._kind, key)

    def put(self, key: str, value: Any) -> None:
        """Keep a JSON value under a key."""
        self._store.put(self._kind, key, value)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the values with their keys."""
        return self._store.items(self._kind)


@contextmanager
def open_store(path: Path, mend: str, *, anew: bool = False) -> Iterator[ResultStore]:
    """Open a store for this process alone, made if there is none.

    Args:
        path: its file.
        mend: what users can do about a store that is none or is damaged.
        anew: drop whatever the file holds.

    Raises:
        InputError: if another process has it open, it is no store or no regular file, or nothing
            of it can be read.
        OSError: if it cannot be written.
    """
    check_regular(path)
    with errors_naming(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    # Closed after the connection, for the same reason as in `_opened`.
    with closing(os.fdopen(descriptor, "r+b", buffering=0)) as file:
        try:
            # The lock belongs to the open file and goes with the process, however it ends: no stale
            # lock files. Readers take none.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{path.parent}: another process is at work in this folder; wait for it, or give "
                "another --out"
            ) from None
        if anew:
            file.truncate(0)
            for log in _logs(path):
                log.unlink(missing_ok=True)
        with _told_errors(path, mend):
            connection = _opened(path, mend)
        try:
            with _told_errors(path, mend):
                _made_ready(path, connection, mend)
            yield ResultStore(path, connection, mend)
        finally:
            close_connection(connection, whole=True)


@contextmanager
def read_store(path: Path, mend: str) -> Iterator[ResultStore]:
    """Read a store as it is now, be another process at work with it; an absent one is empty.

    Raises:
        InputError: if it is no store, or nothing of it can be read.
    """
    check_regular(path)
    with _told_errors(path, mend):
        if path.exists() and path.stat().st_size:
            connection = _opened(path, mend)
        else:
            connection = sqlite3.connect(":memory:", isolation_level=None)
    with closing(connection):
        with _told_errors(path, mend):
            if _is_empty(connection):
                connection.close()
                connection = sqlite3.connect(":memory:", isolation_level=None)
                connection.execute(_TABLE)
            else:
                _check_ours(path, connection, mend)
        yield ResultStore(path, connection, mend)


def remove_store(path: Path) -> None:
    """Remove a store that is closed, or was left by a process that died."""
    for file in (path, *_logs(path)):
        file.unlink(missing_ok=True)


def _opened(path: Path, mend: str) -> sqlite3.Connection:
    # SQLite takes a file of less than a page for an empty one, and would write over it. The file is
    # not looked into: closing it would drop the locks that SQLite has on it in this process.
    if 0 < path.stat().st_size < _SMALLEST_PAGE:
        raise InputError(_foreign(path, mend))
    connection = connected(path, ("kept",))
    # A name of which a bit was flipped fails its checksum, as any other damage does.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def _made_ready(path: Path, connection: sqlite3.Connection, mend: str) -> None:
    """Make the table of a new store; check an old one, and leave out what of it is damaged."""
    new = _is_empty(connection)
    if not new:
        _check_ours(path, connection, mend)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if new:
        connection.execute("BEGIN IMMEDIATE")
        _make_table(connection)
        connection.execute("COMMIT")
    elif connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        _tell_damage(path)
        _leave_out_damage(connection)


def _make_table(connection: sqlite3.Connection) -> None:
    connection.execute(_TABLE)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nothing was ever written, as when a process died at the very start."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not tables and _marks(connection) == (0, 0)


def _check_ours(path: Path, connection: sqlite3.Connection, mend: str) -> None:
    if _marks(connection) != (_APPLICATION, _VERSION):
        raise InputError(_foreign(path, mend))


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    return application, version


def _leave_out_damage(connection: sqlite3.Connection) -> None:
    """Rewrite a store with those of its records that can be read and are whole."""
    (last,) = connection.execute("SELECT max(rowid) FROM kept").fetchone()
    # In a temporary file of its own, from which the store is replaced at once or not at all.
    with closing(sqlite3.connect("", isolation_level=None)) as rescued:
        rescued.execute("BEGIN")
        _make_table(rescued)
        for number in range(1, (last or 0) + 1):
            row = None
            with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
                row = connection.execute(f"{_COLUMNS} WHERE rowid = ?", (number,)).fetchone()
            if row is not None and _is_whole(row):
                rescued.execute(_INSERT, row)
        rescued.execute("COMMIT")
        rescued.backup(connection)


def _is_whole(row: tuple[Any, ...]) -> bool:
    kind, key, value, checksum = row
    return (
        isinstance(kind, str)
        and isinstance(key, str | None)
        and isinstance(value, bytes)
        and checksum == _checksum(kind, key, value)
    )


def _checksum(kind: str, key: str | None, value: bytes) -> int:
    # The name is covered too: another one would make of a value another's.
    return zlib.crc32(value, zlib.crc32(f"{kind} {key}".encode("utf-8", "surrogatepass")))


def _tell_damage(path: Path) -> None:
    logger.warning(
        "%s: parts of it are damaged; what stood there is left out, the rest is kept", path
    )


def _foreign(path: Path, mend: str) -> str:
    return f"{path}: this is not a store of results, or one of another version; {mend}"


def _logs(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))


@contextmanager
def _told_errors(path: Path, mend: str) -> Iterator[None]:
    """Turn errors of SQLite into those of a disk, or into a sentence that names the file."""
    try:
        yield
    except DAMAGE as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _OF_THE_DISK:
            number = _OF_THE_DISK[code]
            raise OSError(number, os.strerror(number), os.fspath(path)) from None
        if code == sqlite3.SQLITE_NOTADB:
            raise InputError(_foreign(path, mend)) from None
        reason = (
            reason_of(error) if isinstance(error, sqlite3.Error) else "one of its names is no text"
        )
        raise InputError(f"{path}: it is damaged ({reason}); {mend}") from None


_OF_THE_DISK = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}
