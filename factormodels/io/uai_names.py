"""The sidecar of a UAI model file: one name of a variable per line, in ``<path>.names``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from factormodels.errors import InputError
from factormodels.factor_graph import default_names
from factormodels.io.files import read_text, write_text


def names_path(path: str | os.PathLike[str]) -> Path:
    """Path of the sidecar file that holds the names of a model's variables."""
    return Path(f"{os.fspath(path)}.names")


def read_names(path: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """Names in the sidecar file of the model at `path`; None if there is none.

    Raises:
        InputError: if the sidecar cannot be read or holds an empty or repeated name.
    """
    sidecar = names_path(path)
    if not sidecar.exists():
        return None
    lines = read_text(sidecar).split("\n")
    if not lines[-1]:
        lines.pop()
    lines_of: dict[str, int] = {}
    for number, name in enumerate((line.removesuffix("\r") for line in lines), start=1):
        if not name:
            raise InputError(f"{sidecar}: line {number} is empty; give each variable a name")
        if name in lines_of:
            raise InputError(
                f"{sidecar}: lines {lines_of[name]} and {number} both hold {name!r}; "
                "names are unique"
            )
        lines_of[name] = number
    return tuple(lines_of)


def check_names(names: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Refuse names that do not each fit on a line.

    Raises:
        InputError: for the first such name.
    """
    for name in names:
        if not name or "\n" in name or "\r" in name or not _encodable(name):
            raise InputError(
                f"{path}: the variable name {name!r} does not fit on a line of the names file; "
                "rename the variable"
            )


def write_names(names: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Write the sidecar of the model at `path`; none for the names "0", "1", ... if none is there.

    Raises:
        InputError: if a name does not fit on a line, or the file cannot be written.
    """
    check_names(names, path)
    # A sidecar left from another model would give this one its names.
    if tuple(names) != default_names(len(names)) or names_path(path).exists():
        write_text(names_path(path), "".join(f"{name}\n" for name in names))


def _encodable(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
