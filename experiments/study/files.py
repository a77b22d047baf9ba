"""The files of a run: their names, a manifest read, a whole folder moved into place."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from factormodels.errors import InputError
from factormodels.io.files import errors_naming, read_text
from factormodels.io.json_text import decode

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
ROWS = "rows.parquet"

REPORT = "report"
"""The folder of a report within that of the results."""


def study_folder(study: str, out: Path | None = None) -> Path:
    """The folder of a study's results: the one that was asked for, or results/STUDY."""
    return out if out is not None else Path("results") / study


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`, on the same file system; it is gone after.

    Errors of writing in it name what is to be in `folder`.
    """
    try:
        # Beside the folder and not in /tmp: only within one file system is a move a rename, which
        # either happens or does not.
        name = tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.")
    except OSError as error:
        raise InputError(
            f"{folder.parent}: cannot be written ({error.strerror}); give another --out"
        ) from None
    try:
        with errors_naming(folder, name):
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

    What only tells of the code and the machine may be missing: it is "unknown", with a warning.

    Raises:
        InputError: if the folder holds none, or it lacks or garbles what the results rest on.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder}: there is no {MANIFEST}; name the folder of a run's results")
    manifest = decode(read_text(path), path)
    if not isinstance(manifest, dict) or manifest.get("format") != "factormodels/manifest":
        raise InputError(
            f"{path}: this is not the manifest of a run; name the folder of a run's results"
        )
    filled = _filled(manifest, _TOLD)
    for place in _misfits(filled, _MANIFEST, ""):
        raise InputError(f"{path}: {place} is missing or damaged; run the study again")
    lost = [place for place, _ in _lost(manifest, _TOLD, "")]
    if lost:
        logger.warning(
            "%s: it does not say %s; the results are read without", path, ", ".join(lost)
        )
    return filled


_TOLD: Mapping[str, Any] = MappingProxyType(
    {
        "complete": True,
        "study": "unknown",
        "models": {},
        "seeds": [],
        "code": {"version": "unknown", "modified": False},
        "python": "unknown",
        "platform": "unknown",
        "processor": "unknown",
        "cpu_count": "unknown",
        "packages": {},
        "units": {},
        "units_missing": 0,
    }
)
"""What only tells of a run, and what it is taken for where it is missing."""

_ANALYSIS_LACKS = ("units", "units_missing")
"""What a run of an analysis does not say, by right."""

_EACH = "*"
_PERHAPS = "?"
_SIZES: Mapping[str, Any] = MappingProxyType(
    {
        "sha256": str,
        "responses": int,
        "atoms": int,
        "labelled": int,
        "relations?": {_EACH: {_EACH: str}},
    }
)
_MANIFEST: Mapping[str, Any] = MappingProxyType(
    {
        "complete": bool,
        "study": str,
        "config": {},
        "config_sha256": str,
        "data": {_EACH: _SIZES},
        "models": {_EACH: {_EACH: {}}},
        "seeds": list,
        "files": {_EACH: str},
        "code": {"version": str, "modified": bool, "commit?": str},
        "python": str,
        "platform": str,
        "processor": str,
        "packages": {_EACH: str},
        "units": {_EACH: int},
        "units_missing": int,
    }
)
"""What a manifest holds: types, and within mappings what stands at each key."""


def _lost(
    value: Mapping[str, Any], told: Mapping[str, Any], place: str
) -> Iterator[tuple[str, Any]]:
    """Yield what is missing, with what it is taken for."""
    analysis = "analysis" in (value.get("config") or {})
    commit = "commit" in value
    for key, default in told.items():
        if key not in value:
            # Code that is in no repository has no commit that could be modified.
            if not (analysis and key in _ANALYSIS_LACKS) and (key != "modified" or commit):
                yield f"{place}{key}", default
        elif isinstance(default, dict) and isinstance(value[key], dict):
            yield from _lost(value[key], default, f"{place}{key}.")


def _filled(value: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    filled = {**told, **value}
    for key, default in told.items():
        if isinstance(default, dict) and isinstance(filled[key], dict):
            filled[key] = {**default, **filled[key]}
    return filled


def _misfits(value: Any, shape: Any, place: str) -> Iterator[str]:
    """Yield the places where a value is not of a shape."""
    if isinstance(shape, type):
        # JSON's true is not a count.
        if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
            yield place
    elif not isinstance(value, dict):
        yield place or "the whole"
    else:
        for key, inner in shape.items():
            wanted = key.removesuffix(_PERHAPS)
            names = value if key == _EACH else (wanted,)
            for name in names if key == wanted or wanted in value else ():
                yield from _misfits(value.get(name), inner, f"{place}.{name}" if place else name)


def move_into_place(new: Path, folder: Path) -> None:
    """Let a folder take the place of the report that is there, if any."""
    # A folder cannot be renamed onto one that holds files, so the old one steps aside first.
    old = new.with_name(f"{new.name}.old")
    if folder.exists():
        folder.replace(old)
    new.replace(folder)
    shutil.rmtree(old, ignore_errors=True)
