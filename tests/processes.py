"""Run Python in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run_python(code: str, *options: str, folder: Path = ROOT, path: str = "") -> tuple[str, str]:
    """Return what a fresh interpreter that must succeed writes on its output and its errors.

    Args:
        code: what it runs.
        options: of the interpreter.
        folder: its current folder.
        path: folders besides this checkout's that it imports from.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [path, str(ROOT)]))}
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
