"""The one gate to files of SQLite: whatever is damaged in one is a sentence that names it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from factormodels.errors import InputError
from factormodels.io.guarded_opening import check_regular

_PATIENCE = 60.0
"""Seconds to wait while another process writes."""

_REASON_SHOWN = 120

DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What a statement raises on a damaged file: messages of SQLite quote the file's bytes, which the
driver then fails to make a text of."""


def connected(path: Path) -> sqlite3.Connection:
    """A connection to a file, each of whose statements is a transaction unless it begins one.

    It waits while another process writes, and any thread may use it, one at a time. What is done
    with it stands within `sound_database`.

    Raises:
        InputError: if there is something that is no regular file.
        sqlite3.Error: if it cannot be opened.
    """
    check_regular(path)
    return sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)


def close_connection(connection: sqlite3.Connection, *, whole: bool) -> None:
    """Close a connection, of one that wrote leaving one file where nobody else has it open.

    Args:
        connection: a connection; one that is closed already stays so.
        whole: whether the file leaves write-ahead mode: it then holds everything, and can be read
            where nothing can be written beside it. While others have it open that is refused at
            once, and left to the last of them.
    """
    with suppress(*DAMAGE):
        if whole:
            connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


@contextmanager
def sound_database(path: Path, problem: str, mend: str) -> Iterator[None]:
    """Turn what the block meets in a damaged file, or one in use, into an error that names it.

    What the block makes of the values that it took from the file belongs into it too: a flipped
    byte may make of a text another one, a value of another type, or nothing.

    Args:
        path: the file.
        problem: what cannot be done, such as "an answer cannot be stored".
        mend: what to do.

    Raises:
        InputError: if the block meets damage.
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
        reason = " ".join(str(error).split())[:_REASON_SHOWN] or type(error).__name__
        raise InputError(f"{path}: {problem} ({reason}); {mend}") from None


def is_locked(error: Exception) -> bool:
    """Whether a statement failed because another process was writing, and may be tried again."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def lacks_table(error: Exception) -> bool:
    """Whether a statement failed because the file has no table of its name."""
    return isinstance(error, sqlite3.OperationalError) and "no such table" in str(error)
