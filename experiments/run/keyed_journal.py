"""What is worked out once for a run, by key: kept in a journal beside that of its units."""

from __future__ import annotations

import json
from collections.abc import ItemsView, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.run.journal import Journal, open_journal, read_journal


class KeyedJournal:
    """Plain values by key, each safe once it is put; made by `keyed_journal`."""

    def __init__(self, path: Path, journal: Journal, known: dict[str, Any]) -> None:
        self.path = path
        self._journal = journal
        self._known = known

    def get(self, key: str) -> Any:
        """Return the value that was put last; None where there is none."""
        return self._known.get(key)

    def items(self) -> ItemsView[str, Any]:
        """Return the keys with their values."""
        return self._known.items()

    def put(self, key: str, value: Any) -> None:
        """Keep a value of plain JSON data; numbers come back to the last bit.

        Raises:
            OSError: if it cannot be written, as on a full disk.
        """
        self._journal.append(json.dumps([key, value]).encode())
        self._known[key] = value


@contextmanager
def keyed_journal(path: Path) -> Iterator[KeyedJournal]:
    """Open a journal of values for one run alone; it is made if there is none.

    Raises:
        InputError: if another run has it open, or the file is no journal.
    """
    with open_journal(path) as journal:
        yield KeyedJournal(path, journal, read_keyed(path))


def read_keyed(path: Path) -> dict[str, Any]:
    """Return the values of a journal as they are now; none if there is no such file.

    Raises:
        InputError: if the file is no journal.
    """
    return dict(json.loads(record) for record in read_journal(path))
