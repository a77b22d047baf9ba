"""The journal of a batch: finished responses, each on disk before the next is begun with.

A line is appended and forced to disk per finished response, so that whatever ends the process, the
same command goes on from there. A last line that was cut off is dropped.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedRandom
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_text, parse_fact_graph
from factormodels.io.files import atomic_path
from factormodels.io.json_text import decode, encode

FORMAT = "factormodels/assessment-journal"
VERSION = 1
SUFFIX = ".partial"


@dataclass
class Journal:
    """An open journal.

    Attributes:
        path: its file.
    """

    path: Path
    _file: BufferedRandom = field(repr=False)
    _places: dict[str, tuple[int, int]] = field(default_factory=dict, repr=False)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def append(self, key: str, graph: FactGraph) -> None:
        """Add a finished response; it is on disk when this returns.

        Args:
            key: what `response_key` said of the response before it was assessed.
            graph: the assessed response.
        """
        start = self._file.seek(0, os.SEEK_END)
        line = f"{key} {fact_graph_text(graph)}\n".encode("utf-8", "surrogatepass")
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._places[key] = (start, len(line))

    def graph(self, key: str) -> FactGraph:
        """Return a finished response.

        Raises:
            InputError: if the file was changed from outside.
        """
        return parse_fact_graph(decode(self._text(key), self.path), self.path)

    def write(self, keys: Iterable[str], path: Path) -> None:
        """Write finished responses as JSON Lines, whole or not at all, one in memory at a time.

        Raises:
            InputError: if the file cannot be written.
        """
        with atomic_path(path) as temporary, temporary.open("wb") as out:
            for key in keys:
                out.write(self._bytes(key))

    def _bytes(self, key: str) -> bytes:
        start, length = self._places[key]
        self._file.seek(start)
        return self._file.read(length)[len(key) + 1 :]

    def _text(self, key: str) -> str:
        return self._bytes(key).decode("utf-8", "surrogatepass")


@contextmanager
def open_journal(out: Path, settings: Mapping[str, Any]) -> Iterator[Journal]:
    """Open the journal of a batch beside its output, made if it is not there.

    Args:
        out: the output; the journal's name is that with ".partial" after it.
        settings: JSON values that results depend on; a journal is continued with equal ones only.

    Raises:
        InputError: if it cannot be written, is none, belongs to other settings, or is in use.
    """
    path = out.with_name(out.name + SUFFIX)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"{out}: {path.name} cannot be written beside it ({error.strerror}); name a file in an "
            "existing folder"
        ) from None
    with os.fdopen(handle, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{path}: another process is at work on this batch; wait for it, or name another "
                "--out"
            ) from None
        journal = Journal(path, file)
        _read(journal, encode({"format": FORMAT, "version": VERSION, **settings}, str(path)))
        yield journal


def response_key(graph: FactGraph) -> str:
    """Return what tells a response apart from every other one: a hash of all that it holds."""
    return hashlib.sha256(fact_graph_text(graph).encode("utf-8", "surrogatepass")).hexdigest()


def _read(journal: Journal, header: str) -> None:
    file = journal._file
    first = file.readline()
    if not first.endswith(b"\n"):
        file.seek(0)
        file.truncate()
        file.write(f"{header}\n".encode())
        file.flush()
        os.fsync(file.fileno())
        return
    if first.decode("utf-8", "replace").rstrip("\n") != header:
        raise InputError(
            f"{journal.path}: it was begun with other settings or is no journal; repeat the "
            "command that began it, or remove the file to begin anew"
        )
    start = file.tell()
    while line := file.readline():
        if not line.endswith(b"\n"):
            file.truncate(start)
            return
        key = line.partition(b" ")[0].decode("ascii", "replace")
        journal._places[key] = (start, len(line))
        start = file.tell()
