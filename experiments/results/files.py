"""The files of a run: their names, a manifest read, a whole folder moved into place."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from factormodels.errors import InputError
from factormodels.io.files import read_text
from factormodels.io.json_text import decode

MANIFEST = "manifest.json"
ROWS = "rows.parquet"

REPORT = "report"
"""The folder of a report within that of the results."""


def study_folder(study: str, out: Path | None = None) -> Path:
    """The folder of a study's results: the one that was asked for, or results/STUDY."""
    return out if out is not None else Path("results") / study


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`, on the same file system; it is gone after."""
    try:
        # Beside the folder and not in /tmp: only within one file system is a move a rename, which
        # either happens or does not.
        name = tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.")
    except OSError as error:
        raise InputError(
            f"{folder.parent}: cannot be written ({error.strerror}); give another --out"
        ) from None
    try:
        yield Path(name)
    finally:
        shutil.rmtree(name, ignore_errors=True)


def publish(files: Sequence[Path], folder: Path) -> None:
    """Move the files of a run, of which the manifest is the last, into their folder.

    What the manifest there lists is removed where this run does not make it.
    """
    before = _listed(folder / MANIFEST)
    # A folder with a manifest is whole: it goes first and comes last.
    (folder / MANIFEST).unlink(missing_ok=True)
    for name in before - {file.name for file in files}:
        # An artefact of the run before that this one does not make would pass for its own.
        if name == REPORT:
            shutil.rmtree(folder / REPORT, ignore_errors=True)
        else:
            (folder / name).unlink(missing_ok=True)
    # Each is renamed into place, so that none is ever seen half written.
    for file in files:
        if file.is_dir():
            move_into_place(file, folder / file.name)
        else:
            file.replace(folder / file.name)


def _listed(path: Path) -> set[str]:
    """What a manifest lists in its own folder, the report as one; none if there is none."""
    try:
        # A manifest that cannot be read vouches for nothing, so nothing is removed on its word.
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    names = {str(name) for name in files}
    reports = {REPORT for name in names if name.startswith(f"{REPORT}/")}
    # Only names within the folder: a manifest that was tampered with must not reach outside it.
    return {name for name in names if Path(name).name == name} | reports


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        InputError: if the folder holds none.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder}: there is no {MANIFEST}; name the folder of a run's results")
    manifest = decode(read_text(path), str(path))
    if not isinstance(manifest, dict) or manifest.get("format") != "factormodels/manifest":
        raise InputError(
            f"{path}: this is no manifest of a run; name the folder of a run's results"
        )
    return manifest


def move_into_place(new: Path, folder: Path) -> None:
    """Let a folder take the place of the report that is there, if any."""
    # A folder cannot be renamed onto one that holds files, so the old one steps aside first.
    old = new.with_name(f"{new.name}.old")
    if folder.exists():
        folder.replace(old)
    new.replace(folder)
    shutil.rmtree(old, ignore_errors=True)
