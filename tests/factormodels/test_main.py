"""The command finds its own packages, or says in one sentence what hides them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter in a folder, with the checkout as an entry of the path."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_package_is_the_command(tmp_path: Path) -> None:
    result = run(tmp_path, "-m", "factormodels", "--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("factormodels ")


@pytest.mark.parametrize("name", ["inference", "calibration", "experiments"])
def test_an_empty_folder_hides_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    result = run(tmp_path, "-m", "factormodels", "list", "backends", "exact")
    assert (result.returncode, result.stderr) == (0, "")


def test_no_import_hook_of_an_installation_comes_after_the_working_directory() -> None:
    # An editable installation by a hook would let an empty folder hide a package.
    finders = [str(getattr(finder, "__module__", "")) for finder in sys.meta_path]
    assert [name for name in finders if name.startswith("__editable__")] == []


@pytest.mark.parametrize("name", ["inference", "calibration", "experiments"])
def test_a_file_that_hides_a_package_is_named_in_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").touch()
    result = run(tmp_path, "-m", "factormodels", "backends")
    assert result.returncode == 2
    assert result.stdout == ""
    path = tmp_path / f"{name}.py"
    assert result.stderr == (
        f"factormodels: {path} hides the package {name!r} of this project; rename it, or start "
        "elsewhere\n"
    )
