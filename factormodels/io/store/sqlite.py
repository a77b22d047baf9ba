"""The only module that opens SQLite files: any damage becomes an error that names the file.

A file from an unknown source may contain more than rows: a view over an endless recursion,
triggers, virtual tables, functions in its columns and checks. None of these is run. A statement may
access only the tables that the caller names, and take a number of steps proportional to the size of
the file.
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
"""Maximum seconds to wait while another process writes."""

_REASON_SHOWN = 120

Connection = sqlite3.Connection

DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of statements on a damaged file. Messages of SQLite quote the file's bytes, which the
driver may fail to decode."""


_STEPS_AT_ONCE = 10_000
"""Steps of SQLite's virtual machine between two checks of their number."""

_LEAST_STEPS = 10_000_000
_STEPS_PER_BYTE = 20
"""Maximum steps of a statement: a row takes some dozens, and at least as many bytes."""

_FUNCTIONS = ("count", "max", "ifnull")
"""Functions that our statements and SQLite's own check call. A schema may call no others."""

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
"""SQLite's column number for a computed part of an index."""

_CHECK = re.compile(r"\bCHECK\b", re.IGNORECASE)
_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)
_NOT_PLAIN = "it has more than plain tables: views, triggers or functions are not run"
_REASONS = {
    sqlite3.SQLITE_AUTH: _NOT_PLAIN,
    sqlite3.SQLITE_INTERRUPT: "a statement takes more steps than a file of its size needs",
    sqlite3.SQLITE_TOOBIG: "one of its values is larger than --max-size allows",
}


class _Bounded(sqlite3.Connection):
    """A connection whose statements have a limited number of steps.

    Before its first statement it checks that the tables have rows only and nothing computed.
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
                # The condition of a partial index is evaluated for every written row.
                plain = all(part[1] != _EXPRESSION for part in parts) and not _WHERE.search(
                    definition or ""
                )
            else:
                plain = False
            if not plain:
                raise sqlite3.DatabaseError(_NOT_PLAIN)

    def _limit_steps(self) -> None:
        looks = _allowed_steps(self.path) // _STEPS_AT_ONCE
        # Implemented in C only, so that a signal waits for the end of the statement; an exception
        # in a Python callback would look like an error of the file.
        self.set_progress_handler(chain(repeat(0, looks), repeat(1)).__next__, _STEPS_AT_ONCE)


def _allowed_steps(path: Path) -> int:
    size = 0
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            size += file.stat().st_size
    return _LEAST_STEPS + _STEPS_PER_BYTE * size


def connected(path: Path, tables: Collection[str]) -> sqlite3.Connection:
    """Open a file, in autocommit mode.

    The connection waits while another process writes, and any thread may use it, one at a time. Use
    it within `sound_database`.

    Args:
        path: the file.
        tables: names of the tables that statements may access. Statements that would access
            anything else through the file's schema (another table, a view, a trigger, a function)
            fail.

    Raises:
        InputError: if the path exists and is not a regular file.
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
    """Return the function by which SQLite authorizes each action of a statement."""

    def allowed(
        action: int, first: str | None, second: str | None, _: str | None, origin: str | None
    ) -> bool:
        # The origin is the view or trigger that causes the action.
        if origin is not None or action in _NEVER:
            return False
        if action in _ON_TABLES:
            return first in tables or str(first).startswith("sqlite_")
        return action != sqlite3.SQLITE_FUNCTION or str(second).lower() in _FUNCTIONS

    return lambda *asked: sqlite3.SQLITE_OK if allowed(*asked) else sqlite3.SQLITE_DENY


@contextmanager
def sound_database(
    path: Path, problem: str, advice: str, *, of_the_disk: bool = True
) -> Iterator[None]:
    """Turn errors of the block due to a damaged or locked file into errors that name it.

    The block should include the decoding of values from the file: damage may change a text or a
    type, or remove a value.

    Args:
        path: the file.
        problem: description of the failure, such as "an answer cannot be stored".
        advice: advice for the user.
        of_the_disk: whether errors of a full or broken disk are converted too, rather than raised
            as OSError.

    Raises:
        InputError: if the block finds damage.
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
        raise InputError(f"{path}: {problem} ({reason_of(error)}); {advice}") from None


def reason_of(error: BaseException) -> str:
    """Return the reason of a failed statement, in one line."""
    if isinstance(error, UnicodeDecodeError):
        return "a text in it is not UTF-8"
    code = _code(error)
    # A forbidden column or function is recognizable only by the message.
    if "prohibited" in str(error) or "not authorized" in str(error):
        code = sqlite3.SQLITE_AUTH
    text = " ".join(str(error).split())[:_REASON_SHOWN] or type(error).__name__
    return _REASONS.get(code, text)


def is_no_database(error: BaseException) -> bool:
    """Return whether a statement failed because the file is not a SQLite database."""
    return _code(error) == sqlite3.SQLITE_NOTADB


def is_locked(error: BaseException) -> bool:
    """Return whether a statement failed because another process was writing, and can be retried."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def lacks_table(error: BaseException) -> bool:
    """Return whether a statement failed because the file lacks its table."""
    return isinstance(error, sqlite3.OperationalError) and "no such table" in str(error)


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF


_OF_THE_DISK = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}
