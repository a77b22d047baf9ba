"""The one gate to files of SQLite: whatever is damaged in one is a sentence that names it.

A file that somebody else made may hold more than rows: a view over an endless recursion, triggers,
virtual tables, functions in its columns and checks. None of that is run. A statement reaches the
tables that the caller names, and takes a number of steps in proportion to the size of the file.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.io.source.opening import check_regular, most_held

_PATIENCE = 60.0
"""Seconds to wait while another process writes."""

_REASON_SHOWN = 120

Connection = sqlite3.Connection

DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What a statement raises on a damaged file: messages of SQLite quote the file's bytes, which the
driver then fails to make a text of."""


_STEPS_AT_ONCE = 10_000
"""Steps of SQLite's machine between two looks at their number."""

_LEAST_STEPS = 10_000_000
_STEPS_PER_BYTE = 20
"""Steps of one statement: a row takes some dozens, and no fewer bytes."""

_FUNCTIONS = ("count", "max", "ifnull")
"""Functions that our own statements call, and SQLite's own check. A schema may call no other."""

_ON_TABLES = (
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
)
_NEVER = (
    sqlite3.SQLITE_ATTACH,
    sqlite3.SQLITE_DETACH,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_CREATE_VTABLE,
    sqlite3.SQLITE_DROP_VTABLE,
)
_EXPRESSION = -2
"""What SQLite numbers a part of an index that is computed."""

_CHECK = re.compile(r"\bCHECK\b", re.IGNORECASE)
_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)
_NOT_PLAIN = "it has more than plain tables: views, triggers or functions are not run"
_REASONS = {
    sqlite3.SQLITE_AUTH: _NOT_PLAIN,
    sqlite3.SQLITE_INTERRUPT: "a statement takes more steps than a file of its size needs",
    sqlite3.SQLITE_TOOBIG: "one of its values is larger than --max-size allows",
}


class _Bounded(sqlite3.Connection):
    """A connection each of whose statements has a limited number of steps.

    Before its first statement it checks that the tables hold rows and nothing that is computed.
    """

    path: Path
    tables: frozenset[str]
    checked: bool

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Execute a statement, as `sqlite3.Connection.execute` does."""
        self._limit_steps()
        if not self.checked:
            self._check_tables()
            self.checked = True
        return super().execute(*arguments)

    def _check_tables(self) -> None:
        schema = super().execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        for kind, name, table, definition in schema:
            if table not in self.tables:
                continue
            if kind == "table":
                columns = super().execute(f"PRAGMA table_xinfo({table})").fetchall()
                plain = not any(column[-1] for column in columns) and not _CHECK.search(definition)
            elif kind == "index":
                quoted = str(name).replace('"', '""')
                parts = super().execute(f'PRAGMA index_xinfo("{quoted}")').fetchall()
                # The condition of a partial index is computed for every row that is written.
                plain = all(part[1] != _EXPRESSION for part in parts) and not _WHERE.search(
                    definition or ""
                )
            else:
                plain = False
            if not plain:
                raise sqlite3.DatabaseError(_NOT_PLAIN)

    def _limit_steps(self) -> None:
        looks = _allowed_steps(self.path) // _STEPS_AT_ONCE
        # Made of C alone: a signal that arrives meanwhile waits for the end of the statement,
        # whereas within a function of Python's SQLite would take it for a fault of the file.
        self.set_progress_handler(chain(repeat(0, looks), repeat(1)).__next__, _STEPS_AT_ONCE)


def _allowed_steps(path: Path) -> int:
    size = 0
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            size += file.stat().st_size
    return _LEAST_STEPS + _STEPS_PER_BYTE * size


def connected(path: Path, tables: Collection[str]) -> sqlite3.Connection:
    """Open a file, for statements that are transactions by themselves unless they begin one.

    The connection waits while another process writes, and any thread may use it, one at a time.
    Use it within `sound_database`.

    Args:
        path: the file.
        tables: names of the tables that statements may reach. What else a statement would reach
            through the file's own schema (another table, a view, a trigger, a function) fails it.

    Raises:
        InputError: if there is something that is no regular file.
        sqlite3.Error: if it cannot be opened.
    """
    check_regular(path)
    connection = sqlite3.connect(
        path,
        timeout=_PATIENCE,
        isolation_level=None,
        check_same_thread=False,
        factory=_Bounded,
    )
    connection.path, connection.tables, connection.checked = path, frozenset(tables), True
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(most_held(), 2**31 - 1))
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.set_authorizer(_authorizer(connection.tables))
    connection.checked = False
    return connection


def _authorizer(tables: frozenset[str]) -> Callable[..., int]:
    """Return the function that SQLite asks, as it compiles a statement, for each thing it does."""

    def allowed(
        action: int, first: str | None, second: str | None, _: str | None, origin: str | None
    ) -> bool:
        # The origin is the view or the trigger that a thing is done for.
        if origin is not None or action in _NEVER:
            return False
        if action in _ON_TABLES:
            return first in tables or str(first).startswith("sqlite_")
        return action != sqlite3.SQLITE_FUNCTION or str(second).lower() in _FUNCTIONS

    return lambda *asked: sqlite3.SQLITE_OK if allowed(*asked) else sqlite3.SQLITE_DENY


@contextmanager
def sound_database(
    path: Path, problem: str, mend: str, *, of_the_disk: bool = True
) -> Iterator[None]:
    """Turn what the block meets in a damaged file, or one in use, into an error that names it.

    What the block makes of the values that it took from the file belongs into it too: a flipped
    byte may make of a text another one, a value of another type, or nothing.

    Args:
        path: the file.
        problem: what cannot be done, such as "an answer cannot be stored".
        mend: what to do.
        of_the_disk: whether a full or broken disk is such an error as well, and not an OSError.

    Raises:
        InputError: if the block meets damage.
        OSError: if the disk is full or broken, unless `of_the_disk`.
    """
    try:
        yield
    except InputError:
        raise
    except (
        sqlite3.Error,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        OverflowError,
        RecursionError,
        MemoryError,
    ) as error:
        if not of_the_disk:
            if isinstance(error, OSError):
                raise
            number = _OF_THE_DISK.get(_code(error))
            if number is not None:
                raise OSError(number, os.strerror(number), os.fspath(path)) from None
        raise InputError(f"{path}: {problem} ({reason_of(error)}); {mend}") from None


def reason_of(error: BaseException) -> str:
    """Return why a statement failed, in one line."""
    if isinstance(error, UnicodeDecodeError):
        return "a text in it is no UTF-8"
    code = _code(error)
    # Of a column or a function that is not allowed, the message alone tells.
    if "prohibited" in str(error) or "not authorized" in str(error):
        code = sqlite3.SQLITE_AUTH
    text = " ".join(str(error).split())[:_REASON_SHOWN] or type(error).__name__
    return _REASONS.get(code, text)


def is_no_database(error: BaseException) -> bool:
    """Whether a statement failed because the file is none of SQLite's."""
    return _code(error) == sqlite3.SQLITE_NOTADB


def is_locked(error: BaseException) -> bool:
    """Whether a statement failed because another process was writing, and may be tried again."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def lacks_table(error: BaseException) -> bool:
    """Whether a statement failed because the file has no table of its name."""
    return isinstance(error, sqlite3.OperationalError) and "no such table" in str(error)


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF


_OF_THE_DISK = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}
