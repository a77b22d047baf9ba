"""Destinations of findings: a folder of everything, or one file of the kind that its suffix names.

`--out` of every command, `out=` in Python and `Findings.save` follow the rules of this module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from factormodels.errors import InputError

FILE_FORMS = (".csv", ".jsonl", ".json", ".parquet", ".tex", ".md")
"""Suffixes of the single files that findings can be written to."""

_A_FILE = f"a file that ends in {', '.join(FILE_FORMS[:-1])} or {FILE_FORMS[-1]}"

FILES_MEANING = (
    "A file gets one thing, by its suffix: .tex or .md the first table; .csv or .parquet its "
    "numbers, in a tidy table where there is one; .jsonl the responses, or else those numbers, a "
    "row each; .json what --json prints."
)
"""What `--out` writes to a single file."""

_OTHER_FILES = re.compile(
    r"\.(arrow|bif|bz2|dat|db|docx?|dot|dta|eps|feather|gif|gz|h5|hdf5|html?|ipc|ipynb|jpe?g|log|"
    r"ndjson|np[yz]|od[st]|orc|pdf|pickle|pkl|png|ps|rds|rst|sqlite3?|svg|tar|tgz|toml|tsv|txt|typ|uai|"
    r"webp|xlsx?|xml|xz|ya?ml|zip|zst)"
)
"""Suffixes that name a file to every reader, of kinds that findings are not written to. Any other
suffix may end the name of a folder, as that of "llama3.1" does."""


def form_of(
    path: str | os.PathLike[str], option: str = "--out", *, folder_only: bool = False
) -> str:
    """Return the suffix of the single file that a path asks for, in lower case; "" for a folder.

    Args:
        path: the destination.
        option: what names it, for errors.
        folder_only: whether the command writes several files that belong together.

    Raises:
        InputError: if the suffix asks for a kind of file that is not written.
    """
    suffix = Path(path).suffix.lower()
    is_form = suffix in FILE_FORMS
    if folder_only and (is_form or _OTHER_FILES.fullmatch(suffix)):
        raise InputError(
            f"{option} {path}: this command writes several files, and {suffix} asks for one; name "
            "a folder"
        )
    if _OTHER_FILES.fullmatch(suffix):
        raise InputError(
            f"{option} {path}: findings are not written as {suffix}; name a folder, or {_A_FILE}"
        )
    return suffix if is_form else ""


def check_destination(
    path: str | os.PathLike[str],
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    folder_only: bool = False,
    option: str = "--out",
) -> str:
    """Return the form of a destination, and refuse one that could not be written at the end.

    Nothing is made or changed, so that a command can check its destination before it computes or
    pays for anything.

    Args:
        path: the destination.
        inputs: files that the command reads, which must not be replaced.
        folder_only: whether the command writes several files that belong together.
        option: what names the destination.

    Raises:
        InputError: if the path asks for a file of an unknown kind, is an input, exists as the
            other kind, or lies in a folder that does not exist or cannot be written.
    """
    target = Path(path)
    if str(path) == "-":
        raise InputError(
            f"{option} -: findings are printed without it; for one JSON object on standard output "
            "use --json"
        )
    form = form_of(target, option, folder_only=folder_only)
    if not form:
        if target.exists() and not target.is_dir():
            otherwise = "" if folder_only else f", or {_A_FILE}"
            raise InputError(f"{option} {path}: this is a file; name a folder{otherwise}")
        check_writable_folder(target, f"{option} {path}")
        return form
    check_file(target, option, inputs)
    return form


def check_page(
    path: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    *,
    option: str = "--out",
) -> None:
    """Refuse the path of a page that could not be written at the end.

    Raises:
        InputError: as `check_destination` does of a file.
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm") and not target.is_dir():
        raise InputError(f"{option} {path}: a page is one file; name one that ends in .html")
    check_file(target, option, inputs)


def check_file(
    path: str | os.PathLike[str], option: str, inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Refuse the path of a single file that could not be written at the end.

    Raises:
        InputError: as `check_destination` does of a file.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{option} {path}: this is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise InputError(f"{option} {path}: this is a device or a pipe; name a regular file")
    parent = target.absolute().parent
    if not parent.is_dir():
        raise InputError(
            f"{option} {path}: the folder {target.parent} does not exist; make it, or name a file "
            "in an existing folder"
        )
    check_writable_folder(parent, f"{option} {path}")
    for read in map(Path, inputs):
        # samefile sees through links and different spellings of a path.
        if target.exists() and read.exists() and target.samefile(read):
            raise InputError(
                f"{option} {path}: the command reads this file and would replace it; give "
                f"{option} another name"
            )


def check_writable_folder(folder: Path, subject: str) -> None:
    """Refuse a folder that cannot be written, or whose nearest existing parent cannot be.

    Raises:
        InputError: naming `subject` and the folder that is in the way.
    """
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not existing.is_dir():
        raise InputError(f"{subject}: {existing} is a file; name a folder that can be made")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(
            f"{subject}: the folder {existing} cannot be written; name one that can be"
        )
