"""Commands in processes of their own, which may be watched and killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.experiments.conftest import environment

_NOTHING: Mapping[str, str] = MappingProxyType({})


def begin(
    folder: Path,
    *arguments: str,
    variables: Mapping[str, str] = _NOTHING,
    python: Sequence[str] = ("-m", "experiments"),
    told: int = subprocess.DEVNULL,
    **options: Any,
) -> subprocess.Popen[str]:
    """Start a command in a folder."""
    return subprocess.Popen(
        [sys.executable, *python, *arguments],
        cwd=folder,
        env=environment() | {"PYTHONDONTWRITEBYTECODE": "1"} | dict(variables),
        stdout=told,
        stderr=told if told == subprocess.DEVNULL else subprocess.STDOUT,
        text=True,
        **options,
    )


def call(folder: Path, *arguments: str, **options: Any) -> tuple[int, str]:
    """Run a command; its exit code and what it said."""
    process = begin(folder, *arguments, told=subprocess.PIPE, **options)
    said, _ = process.communicate()
    return process.returncode, said


def done(folder: Path, *arguments: str, **options: Any) -> str:
    """Run a command that must succeed; what it said."""
    code, said = call(folder, *arguments, **options)
    if code:
        raise RuntimeError(f"{' '.join(arguments)} ended with {code}: {said}")
    return said
