"""Ways to run a paper's study in a folder where no user's file says where data are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments.analyses.papers.sources import VARIABLE
from experiments.analyses.study import AnalysisResults, load_analysis, run_analysis
from experiments.study.reading import read_raw


@pytest.fixture(autouse=True)
def bare_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, as the current one, and no variable that names a file of data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


@contextmanager
def _untracked(_what: str, _steps: int) -> Iterator[Callable[[], None]]:
    yield lambda: None


def frames_of(study: str, folder: Path, *overrides: str) -> dict[str, Any]:
    """Run an embedded study and return the frames of its tables by stem."""
    tables = run_study(study, folder, *overrides).artefacts.tables
    return {stem: table.frame for stem, table in tables.items()}


def run_study(study: str, folder: Path, *overrides: str) -> AnalysisResults:
    """Run an embedded study, or a file, and return what it wrote."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    return run_analysis(load_analysis(read_raw(study, overrides)), out, _untracked)
