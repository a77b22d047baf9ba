"""Distinguish networks from fact graphs by the names and beginnings of files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factormodels.io.source.opening import first_line

SUFFIXES = ("uai", "bif", "uai.gz", "bif.gz")
"""Suffixes of network files."""

DRAWN = ("shape", "grid")
"""Keys of an entry of `datasets` with generated networks."""

_BEGINNING = re.compile(r"\s*(MARKOV|BAYES|network)\b", re.IGNORECASE)
"""Beginnings of UAI and BIF files."""


def is_network(path: Path) -> bool:
    """Return True if a file begins like a UAI or BIF file.

    Raises:
        InputError: if it cannot be read.
    """
    return _BEGINNING.match(first_line(path)) is not None


def has_network_suffix(path: str | Path) -> bool:
    """Return True if a name has the suffix of a network file."""
    return str(path).lower().endswith(tuple(f".{suffix}" for suffix in SUFFIXES))


def names_networks(entry: Any, folder: Path) -> bool:
    """Return True if an entry of a study's `datasets`, as written, names networks.

    Args:
        entry: the entry.
        folder: base folder of its path.

    Raises:
        InputError: if a file without such a suffix cannot be read.
    """
    if not isinstance(entry, Mapping):
        return False
    path = entry.get("path")
    if not isinstance(path, str):
        return any(key in entry for key in DRAWN)
    target = folder / path
    if has_network_suffix(path) or target.is_dir():
        return True
    if target.is_file():
        return is_network(target)
    # A pattern of names, whose matching files may be networks.
    return any(has_network_suffix(each) for each in target.parent.glob(target.name))
