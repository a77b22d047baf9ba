"""Commands in processes of their own, which may be watched and killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.experiments.conftest import environment


def begin(
    folder: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    told: int = subprocess.DEVNULL,
) -> subprocess.Popen[str]:
    """Start a command in a folder."""
    options: dict[str, Any] = {"stdout": told, "stderr": told, "text": True}
    return subprocess.Popen(
        [sys.executable, "-m", "experiments", *arguments],
        cwd=folder,
        env=environment() | {"PYTHONDONTWRITEBYTECODE": "1", **(variables or {})},
        **options | ({"stderr": subprocess.STDOUT} if told == subprocess.PIPE else {}),
    )


def done(folder: Path, *arguments: str) -> None:
    """Run a command that must succeed."""
    process = begin(folder, *arguments, told=subprocess.PIPE)
    said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}: {said}")
