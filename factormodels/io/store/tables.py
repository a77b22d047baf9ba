"""The common store: a SQLite file with a table for each kind of record.

For all stores (answers, failures, embeddings, results), files are opened, recognized, created,
extended, shared and closed here. The owner of a store declares its tables and interprets the rows.

While a file is written, its latest rows are in a second file (the write-ahead log): several
processes may share the store, and a killed process leaves every row that it wrote. The last process
to close it leaves a single file with all rows.
"""

from __future__ import annotations

import math
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from factormodels.errors import InputError
from factormodels.io.source.opening import check_regular
from factormodels.io.store.sqlite import (
    DAMAGE,
    Connection,
    connected,
    is_locked,
    is_no_database,
    lacks_table,
    sound_database,
)

_PATIENCE = 60.0
"""Maximum seconds of retries while another process creates the file."""

_PAUSE = 0.01
"""Seconds between two attempts to open the file."""

_LAG = 1.0
"""Maximum age in seconds of rows that a power failure, or a copy of the file without the log, may
lose. The death of a process loses none."""

_SMALLEST_PAGE = 512


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of a store.

    Attributes:
        name: its name.
        columns: the SQL type of each column, by name.
        key: the columns that identify a row; a row with NULL in them differs from all others.
        in_order: whether rows are read in the order of their first insertion; otherwise by key.
        younger: whether files of earlier versions may lack the table.
    """

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    in_order: bool = False
    younger: bool = False

    @property
    def definition(self) -> str:
        """Statement that creates the table."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        unique = f"{'UNIQUE' if self.in_order else 'PRIMARY KEY'} ({', '.join(self.key)})"
        form = "" if self.in_order else " WITHOUT ROWID"
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}, {unique}){form}"

    def insertion(self, *, replace: bool) -> str:
        """Return the statement that inserts a row; of equal keys the first or the last is kept."""
        others = ", ".join(
            f"{name} = excluded.{name}" for name in self.columns if name not in self.key
        )
        values = ", ".join("?" * len(self.columns))
        # An updated row keeps the position of the first one.
        update = f"UPDATE SET {others}" if replace else "NOTHING"
        return (
            f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({values}) "
            f"ON CONFLICT ({', '.join(self.key)}) DO {update}"
        )


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """Layout of a kind of store.

    Attributes:
        what: name of such a file in errors, such as "a cache of answers".
        advice: advice for a file that is damaged or of another kind.
        tables: its tables.
        application: number that marks a file as this kind; 0 for files without a mark.
        version: version of its tables.
        of_the_disk: whether a full disk is an error that names the file, rather than an OSError.
    """

    what: str
    advice: str
    tables: tuple[StoredTable, ...]
    application: int = 0
    version: int = 0
    of_the_disk: bool = True


class Store:
    """Tables in a file, created if necessary, which several processes may share.

    The file is closed by `close`, when the object is collected, and when the interpreter exits.

    Args:
        path: the file.
        layout: its tables.
        read_only: whether to create and write nothing.

    Raises:
        InputError: if the file is not such a store, or cannot be opened.
        OSError: if the disk prevents opening it, depending on the layout.
    """

    def __init__(self, path: Path, layout: StoreLayout, *, read_only: bool = False) -> None:
        self.path = path
        self.layout = layout
        self.read_only = read_only
        self._tables = {table.name: table for table in layout.tables}
        self._logged = -math.inf
        with self.sound(f"this cannot be used as {layout.what}"):
            self._connection = self._connected()
            try:
                self._empty = self._prepare_with_retries()
            except BaseException:
                # Keep its journal mode, since the file may belong to another program.
                self._connection.close()
                raise
        self._closing = weakref.finalize(self, _close, self._connection, whole=not read_only)

    @property
    def connection(self) -> Connection:
        """The open file, for statements of its owner; use it within `sound`."""
        return self._connection

    def sound(self, problem: str, advice: str = "") -> AbstractContextManager[None]:
        """Turn errors of the block due to a damaged file into errors that name it.

        Args:
            problem: description of the failure.
            advice: advice; by default the advice of the layout.
        """
        return sound_database(
            self.path, problem, advice or self.layout.advice, of_the_disk=self.layout.of_the_disk
        )

    def get(self, table: str, *key: Any) -> tuple[Any, ...] | None:
        """Return the row of a key, or None; use it within `sound`."""
        known = self._tables[table]
        rows = self._read(known, f"{_select(known)} WHERE {_equal(known.key)}", key)
        return next(iter(rows), None)

    def rows(self, table: str, **where: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows with the given values of columns; use it within `sound`."""
        known = self._tables[table]
        # The sign prevents use of the index, which would sort all rows.
        sign = "+" if known.in_order else ""
        chosen = f" WHERE {_equal(where, sign)}" if where else ""
        order = " ORDER BY rowid" if known.in_order else ""
        yield from self._read(known, f"{_select(known)}{chosen}{order}", tuple(where.values()))

    def count(self, table: str, **where: Any) -> int:
        """Return the number of rows with the given values of columns; use it within `sound`."""
        known = self._tables[table]
        chosen = f" WHERE {_equal(where)}" if where else ""
        statement = f"SELECT count(*) FROM {known.name}{chosen}"
        return int(next(iter(self._read(known, statement, tuple(where.values()))), (0,))[0])

    def put(self, table: str, *rows: tuple[Any, ...], replace: bool = False) -> None:
        """Write rows, all or none; nothing if the store is read-only; use it within `sound`.

        Args:
            table: the table.
            rows: a value for each column.
            replace: whether a row replaces one with the same key; otherwise the existing one is
                kept.
        """
        if self.read_only:
            return
        statement = self._tables[table].insertion(replace=replace)
        if len(rows) == 1:
            self._connection.execute(statement, rows[0])
        else:
            with self._transaction():
                self._connection.executemany(statement, rows)
        self._log()

    def clear(self, table: str) -> None:
        """Delete every row; use it within `sound`."""
        self._connection.execute(f"DELETE FROM {self._tables[table].name}")

    def remove(self, table: str, *key: Any) -> None:
        """Delete the row of a key; nothing if the store is read-only; use it within `sound`."""
        if not self.read_only:
            known = self._tables[table]
            self._connection.execute(f"DELETE FROM {known.name} WHERE {_equal(known.key)}", key)
            self._log()

    def close(self) -> None:
        """Close the database; a single file remains unless another process has it open."""
        self._closing()

    @contextmanager
    def _transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE") -> Iterator[None]:
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _log(self) -> None:
        if time.monotonic() - self._logged > _LAG:
            # A copy without the log is then intact and nearly complete.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._logged = time.monotonic()

    def _read(self, table: StoredTable, statement: str, values: Iterable[Any]) -> Iterable[Any]:
        if self._empty:
            return ()
        try:
            return self._connection.execute(statement, tuple(values))
        except sqlite3.Error as error:
            # A file of an earlier version, opened read-only.
            if table.younger and lacks_table(error):
                return ()
            raise

    def _connected(self) -> Connection:
        if not self.path.exists() and self.read_only:
            return sqlite3.connect(":memory:", isolation_level=None)
        # SQLite treats a file of less than a page as empty and would overwrite it. The file is not
        # opened to check it, since closing it would drop SQLite's locks on it in this process.
        check_regular(self.path)
        if self.path.exists() and 0 < self.path.stat().st_size < _SMALLEST_PAGE:
            raise self._foreign()
        return connected(self.path, self._tables)

    def _prepare_with_retries(self) -> bool:
        # The change to write-ahead mode fails immediately if the file is locked.
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._prepare()
            except sqlite3.Error as error:
                if is_no_database(error):
                    raise self._foreign() from None
                if not is_locked(error) or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)

    def _prepare(self) -> bool:
        """Check the file, and create missing tables; return whether it is still empty."""
        execute = self._connection.execute
        # In one transaction, since another process may commit between two reads.
        with self._transaction("DEFERRED"):
            empty = execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
            application, version = (
                execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("application_id", "user_version")
            )
        ours = (self.layout.application, self.layout.version)
        if (application, version) != ours and not (empty and (application, version) == (0, 0)):
            raise self._foreign()
        if self.read_only:
            execute("PRAGMA query_only = ON")
            return empty
        execute("PRAGMA journal_mode = WAL")
        # Rows survive the death of the process; a power failure may lose the last ones.
        execute("PRAGMA synchronous = NORMAL")
        if empty:
            with self._transaction():
                make_tables(self._connection, self.layout)
        for table in self.layout.tables:
            if table.younger:
                execute(table.definition)
        return False

    def _foreign(self) -> InputError:
        return InputError(
            f"{self.path}: this is not {self.layout.what}, or one of another version; "
            f"{self.layout.advice}"
        )


def make_tables(connection: Connection, layout: StoreLayout) -> None:
    """Create the tables of a layout in an empty database, and mark it."""
    for table in layout.tables:
        connection.execute(table.definition)
    connection.execute(f"PRAGMA application_id = {layout.application}")
    connection.execute(f"PRAGMA user_version = {layout.version}")


def _select(table: StoredTable) -> str:
    return f"SELECT {', '.join(table.columns)} FROM {table.name}"


def _equal(columns: Iterable[str], sign: str = "") -> str:
    return " AND ".join(f"{sign}{name} = ?" for name in columns)


def _close(connection: Connection, *, whole: bool) -> None:
    """Close a connection; if it wrote, leave a single file unless another process has it open."""
    with suppress(*DAMAGE):
        if whole:
            # Outside of write-ahead mode the file is complete, and can be read in a read-only
            # folder. While other processes have it open the change fails immediately, and is left
            # to the last of them.
            connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
