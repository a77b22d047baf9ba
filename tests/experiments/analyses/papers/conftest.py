"""Ways to run a study in an empty folder, with a file that says where data are or without."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from experiments.analyses.study import load_analysis, run_analysis
from experiments.analyses.user_data import DATA_FILE, VARIABLE
from experiments.findings.artifacts import Artifacts
from experiments.study.reading import read_raw
from factormodels import datasets
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import fact_graph_text

GRAPHS = datasets.load("demonstration").graphs


@pytest.fixture(autouse=True)
def bare_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, as the current one, and no variable that names a file of data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def run_study(study: str, folder: Path, *overrides: str) -> Artifacts:
    """Run an embedded study, or a file, and return what it wrote."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    return run_analysis(load_analysis(read_raw(study, overrides)), out)[0]


@cache
def bare_results(study: str, *overrides: str) -> Artifacts:
    """Results of a study on embedded data, in an empty folder, which no test changes: made once."""
    with TemporaryDirectory() as folder, chdir(folder):
        return run_study(study, Path(folder), *overrides)


def bare_frames(study: str) -> dict[str, Any]:
    """Return the frames of its tables by stem."""
    return {stem: table.frame.copy() for stem, table in bare_results(study).tables.items()}


def frames_of(study: str, folder: Path, *overrides: str) -> dict[str, Any]:
    """Run an embedded study and return the frames of its tables by stem."""
    tables = run_study(study, folder, *overrides).tables
    return {stem: table.frame for stem, table in tables.items()}


def write_graphs(path: Path, graphs: Iterable[FactGraph]) -> None:
    """Write fact graphs, one per line."""
    path.write_text("".join(fact_graph_text(graph) + "\n" for graph in graphs), encoding="utf-8")


def say_where(folder: Path, text: str) -> None:
    """Write the file that says where data are."""
    (folder / DATA_FILE).write_text(text, encoding="utf-8")
