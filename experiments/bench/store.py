"""Stored results: one JSON file with a version, all timings by round, and what they depend on."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.bench.results import FamilyResult
from experiments.bench.runner_cost import RunnerCost
from experiments.results.manifest import environment
from factormodels.errors import InputError
from factormodels.io.files import read_text, write_text
from factormodels.io.plain_yaml import jsonable

FILE = "bench.json"
FORMAT = "factormodels/bench"
VERSION = 2


@dataclass(frozen=True)
class StoredRun:
    """A run of the benchmark.

    Attributes:
        path: the file that it was read from.
        environment: code, Python, machine and packages.
        settings: preset, rounds, limits and seed.
        families: the results.
        runner: what a study of many small graphs cost; None where it was not measured.
    """

    path: Path
    environment: Mapping[str, Any]
    settings: Mapping[str, Any]
    families: tuple[FamilyResult, ...]
    runner: RunnerCost | None = None

    @property
    def name(self) -> str:
        """What the run is called in a comparison: its commit, if it has one, and its version."""
        code = self.environment.get("code") or {}
        commit = str(code.get("commit", ""))[:10]
        changed = " with changes" if code.get("modified") else ""
        return f"{commit}{changed}" if commit else f"version {code.get('version', 'unknown')}"


def write_run(
    results: Sequence[FamilyResult],
    settings: Mapping[str, Any],
    folder: Path,
    runner: RunnerCost | None = None,
) -> Path:
    """Write results as `bench.json` in an existing folder and return the path.

    Raises:
        InputError: if the file cannot be written.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        # Beside the numbers, since a time says nothing without its machine and versions.
        **environment(),
        "processor": platform.processor() or platform.machine(),
        "settings": settings,
        "families": [asdict(result) for result in results],
        "runner": None if runner is None else asdict(runner),
    }
    path = folder / FILE
    write_text(path, json.dumps(jsonable(document), indent=1) + "\n")
    return path


def read_run(path: Path) -> StoredRun:
    """The run that a file, or the `bench.json` of a folder, holds.

    Raises:
        InputError: if it cannot be read, or is no such file of this version.
    """
    path = path / FILE if path.is_dir() else path
    try:
        document = json.loads(read_text(path))
    except ValueError as error:
        raise InputError(f"{path}: it is not JSON ({error}); name a bench.json") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{path}: it holds no results of `factormodels bench`; name a bench.json")
    if document.get("version") != VERSION:
        raise InputError(
            f"{path}: its version is {document.get('version')!r} and this program reads {VERSION}; "
            "measure again with both commits"
        )
    from pydantic import TypeAdapter, ValidationError

    families: tuple[FamilyResult, ...] | None = None
    try:
        families = TypeAdapter(tuple[FamilyResult, ...]).validate_python(document.get("families"))
        runner = TypeAdapter(RunnerCost | None).validate_python(document.get("runner"))
    except ValidationError as error:
        first = error.errors()[0]
        part = "runner" if families is not None else "families"
        place = "".join(f"[{at!r}]" for at in first["loc"])
        raise InputError(
            f"{path}: {part}{place} is damaged ({first['msg'].lower()}); measure again"
        ) from None
    rest = ("format", "version", "settings", "families", "runner")
    described = {key: value for key, value in document.items() if key not in rest}
    settings = dict(document.get("settings") or {})
    return StoredRun(path, described, settings, families, runner)
