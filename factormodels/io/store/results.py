"""Store of a folder of results: one file with all finished records.

It contains records of several kinds: units in the order in which they were finished, and JSON
values by key, such as answers. If a process is killed, a write is interrupted or the disk is full,
at most the record being written is lost. Records that are damaged later are skipped with a warning.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.io.source.files import errors_naming
from factormodels.io.source.opening import check_regular
from factormodels.io.store.tables import Store, StoredTable, StoreLayout, make_tables

logger = logging.getLogger(__name__)

STORE = "store.sqlite"
"""Name of the store in the folder of results."""

_KEPT = StoredTable(
    "kept",
    {
        "kind": "TEXT NOT NULL",
        "key": "TEXT",
        "value": "BLOB NOT NULL",
        "checksum": "INTEGER NOT NULL",
    },
    # Records without a key are all distinct.
    key=("kind", "key"),
    in_order=True,
)

_DAMAGED = "it is damaged"

_APPLICATION = 0x666D7273
"""Mark of the project's files: "fmrs" in ASCII."""


class ResultStore:
    """An open store, created by `open_store`, or by `read_store` for reading only.

    Attributes:
        path: its file.
    """

    def __init__(self, store: Store) -> None:
        self.path = store.path
        self._store = store
        self._warned = False

    def append(self, kind: str, record: bytes) -> None:
        """Store a record, which survives the death of any process from then on.

        Raises:
            OSError: if it cannot be written, as on a full disk.
        """
        self._insert(kind, None, record)

    def records(self, kind: str) -> Iterator[bytes]:
        """Yield the records of a kind in the order in which they were stored.

        Raises:
            InputError: if the file is damaged.
        """
        return (value for _, value in self._rows(kind))

    def n_records(self, kind: str | None = None) -> int:
        """Return the number of records of a kind, or of all kinds.

        Raises:
            InputError: if the file is damaged.
        """
        with self._sound():
            return self._store.count(_KEPT.name, **({} if kind is None else {"kind": kind}))

    def clear(self) -> None:
        """Delete all records."""
        with self._sound():
            self._store.clear(_KEPT.name)

    def values(self, kind: str) -> KeptValues:
        """Return the values of a kind, by key."""
        return KeptValues(self, kind)

    def value(self, kind: str, key: str) -> Any:
        """Return the last value that was stored under a key; None if there is no intact one.

        Raises:
            InputError: if the file is damaged.
        """
        with self._sound():
            row = self._store.get(_KEPT.name, kind, key)
        return None if row is None or not self._whole(row) else json.loads(row[2])

    def put(self, kind: str, key: str, value: Any) -> None:
        """Store a JSON value under a key; numbers are preserved to the last bit.

        Raises:
            OSError: if it cannot be written, as on a full disk.
        """
        self._insert(kind, key, json.dumps(value).encode())

    def items(self, kind: str) -> Iterator[tuple[str, Any]]:
        """Yield the values of a kind with their keys, in the order of the keys' first use.

        Raises:
            InputError: if the file is damaged.
        """
        return ((key or "", json.loads(value)) for key, value in self._rows(kind))

    def _insert(self, kind: str, key: str | None, value: bytes) -> None:
        with self._sound():
            row = (kind, key, value, _checksum(kind, key, value))
            self._store.put(_KEPT.name, row, replace=True)

    def _rows(self, kind: str) -> Iterator[tuple[str | None, bytes]]:
        with self._sound():
            for row in self._store.rows(_KEPT.name, kind=kind):
                if self._whole(row):
                    yield row[1], row[2]

    def _sound(self) -> AbstractContextManager[None]:
        return self._store.sound(_DAMAGED)

    def _whole(self, row: tuple[Any, ...]) -> bool:
        whole = _is_whole(row)
        if not whole and not self._warned:
            _warn_of_damage(self.path)
            self._warned = True
        return whole


class KeptValues:
    """The values of one kind in a store, with the methods of the store."""

    def __init__(self, store: ResultStore, kind: str) -> None:
        self.path = store.path
        self._store = store
        self._kind = kind

    def get(self, key: str) -> Any:
        """Return the last value that was stored under a key; None if there is no intact one."""
        return self._store.value(self._kind, key)

    def put(self, key: str, value: Any) -> None:
        """Store a JSON value under a key."""
        self._store.put(self._kind, key, value)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the values with their keys."""
        return self._store.items(self._kind)


@contextmanager
def open_store(path: Path, advice: str, *, anew: bool = False) -> Iterator[ResultStore]:
    """Open a store for this process only, creating it if necessary.

    Args:
        path: its file.
        advice: advice for a file that is damaged or not a store.
        anew: whether to delete the content of the file.

    Raises:
        InputError: if another process has it open, it is not a store or not a regular file, or
            nothing in it can be read.
        OSError: if it cannot be written.
    """
    check_regular(path)
    with errors_naming(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    # Closed after the connection, since closing it earlier would drop SQLite's locks on the file.
    with closing(os.fdopen(descriptor, "r+b", buffering=0)) as file:
        try:
            # The lock belongs to the open file and ends with the process in any case, so that there
            # are no stale lock files. Readers take no lock.
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
        with closing(_opened(path, advice)) as store:
            with store.sound(_DAMAGED):
                check = store.connection.execute("PRAGMA quick_check(1)").fetchone()
                if check != ("ok",):
                    _warn_of_damage(path)
                    _leave_out_damage(store)
            yield ResultStore(store)


@contextmanager
def read_store(path: Path, advice: str) -> Iterator[ResultStore]:
    """Read a store in its present state, even while another process writes it; an absent one is
    empty.

    Raises:
        InputError: if it is not a store, or nothing in it can be read.
    """
    with closing(_opened(path, advice, read_only=True)) as store:
        yield ResultStore(store)


def remove_store(path: Path) -> None:
    """Delete a store that is closed, or was left by a process that died."""
    for file in (path, *_logs(path)):
        file.unlink(missing_ok=True)


def _opened(path: Path, advice: str, *, read_only: bool = False) -> Store:
    layout = StoreLayout(
        "a store of results", advice, (_KEPT,), _APPLICATION, version=1, of_the_disk=False
    )
    store = Store(path, layout, read_only=read_only)
    # A damaged name fails the checksum, like any other damage.
    store.connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return store


def _leave_out_damage(store: Store) -> None:
    """Rewrite a store with its readable and intact records."""
    columns = ", ".join(_KEPT.columns)
    (last,) = store.connection.execute(f"SELECT max(rowid) FROM {_KEPT.name}").fetchone()
    # In a separate temporary file, from which the store is replaced atomically.
    with closing(sqlite3.connect("", isolation_level=None)) as rescued:
        rescued.execute("BEGIN")
        make_tables(rescued, store.layout)
        for number in range(1, (last or 0) + 1):
            row = None
            with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
                row = store.connection.execute(
                    f"SELECT {columns} FROM {_KEPT.name} WHERE rowid = ?", (number,)
                ).fetchone()
            if row is not None and _is_whole(row):
                rescued.execute(_KEPT.insertion(replace=True), row)
        rescued.execute("COMMIT")
        rescued.backup(store.connection)


def _is_whole(row: tuple[Any, ...]) -> bool:
    kind, key, value, checksum = row
    return (
        isinstance(kind, str)
        and isinstance(key, str | None)
        and isinstance(value, bytes)
        and checksum == _checksum(kind, key, value)
    )


def _checksum(kind: str, key: str | None, value: bytes) -> int:
    # The checksum covers the name, since a damaged name would assign the value to another key.
    return zlib.crc32(value, zlib.crc32(f"{kind} {key}".encode("utf-8", "surrogatepass")))


def _warn_of_damage(path: Path) -> None:
    logger.warning("%s: parts of it are damaged and left out; the rest is kept", path)


def _logs(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))
