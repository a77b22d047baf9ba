"""Destinations of findings: a folder for everything, or a single file whose suffix names its
format.

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
    "The suffix determines the content of a file: .tex or .md the first table; .csv or .parquet "
    "its numbers, as a tidy table if available; .jsonl the responses, or else these numbers; "
    ".json the output of --json."
)
"""Description of the content of a single file."""

_OTHER_FILES = re.compile(
    r"\.(arrow|avro|bib|bif|bmp|bz2|cls|dat|db|docx?|dot|dta|eps|feather|gif|gz|h5|hdf5|html?|ipc|"
    r"ipynb|jpe?g|log|markdown|mat|ndjson|np[yz]|od[pst]|orc|parq|pdf|pickle|pkl|png|pptx?|pq|ps|psv|"
    r"py|rdata|rds|rst|rtf|sav|sh|sql|sqlite3?|sty|svg|tar|tgz|tiff?|toml|tsv|txt|typ|uai|webp|"
    r"xls[bmx]?|xml|xz|ya?ml|zip|zst)"
)
"""Suffixes of file formats that findings are not written in. Any other suffix may be part of a
folder's name, as in "llama3.1"."""


def form_of(
    path: str | os.PathLike[str], option: str = "--out", *, folder_only: bool = False
) -> str:
    """Return the suffix of a single file in lower case; "" for a folder.

    Args:
        path: the destination.
        option: option that names it, for errors.
        folder_only: True if the command writes several files that belong together.

    Raises:
        InputError: if the suffix names an unsupported format.
    """
    suffix = Path(path).suffix.lower()
    is_form = suffix in FILE_FORMS
    if folder_only and (is_form or _OTHER_FILES.fullmatch(suffix)):
        raise InputError(
            f"{option} {path}: this command writes several files, and {suffix} names a single "
            "one; name a folder"
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
    """Return the form of a destination, after checking that it can be written.

    Nothing is created or changed, so that a command can check its destination before it computes or
    pays for anything.

    Args:
        path: the destination.
        inputs: files that the command reads, which must not be replaced.
        folder_only: True if the command writes several files that belong together.
        option: option that names the destination.

    Raises:
        InputError: if the path names an unsupported format, is an input, is a folder instead of a
            file or vice versa, or is in a missing or read-only folder.
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
    """Check that the path of a page can be written.

    Raises:
        InputError: as `check_destination` for a file.
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm") and not target.is_dir():
        raise InputError(
            f"{option} {path}: a page is a single file; name a file that ends in .html"
        )
    check_file(target, option, inputs)


def check_file(
    path: str | os.PathLike[str], option: str, inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Check that the path of a single file can be written.

    Raises:
        InputError: as `check_destination` for a file.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{option} {path}: this is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise InputError(f"{option} {path}: this is a device or a pipe; name a regular file")
    parent = target.absolute().parent
    if not parent.is_dir():
        raise InputError(
            f"{option} {path}: the folder {target.parent} does not exist; create it, or name a "
            "file in an existing folder"
        )
    check_writable_folder(parent, f"{option} {path}")
    for read in map(Path, inputs):
        # samefile resolves links and different spellings of a path.
        if target.exists() and read.exists() and target.samefile(read):
            raise InputError(
                f"{option} {path}: the command reads this file and would replace it; give "
                f"{option} another name"
            )


def check_writable_folder(folder: Path, subject: str) -> None:
    """Refuse a folder that cannot be written, or whose nearest existing parent cannot be.

    Raises:
        InputError: the message names `subject` and the offending folder.
    """
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not existing.is_dir():
        raise InputError(f"{subject}: {existing} is a file; name a folder that can be created")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(
            f"{subject}: the folder {existing} is not writable; name a writable folder"
        )
