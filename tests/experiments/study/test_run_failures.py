"""Failures of a run: units are recorded, bad studies refused, results never half written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from experiments.study import outputs
from experiments.study.parts import PARTS
from experiments.study.rows import read_rows
from factormodels.datasets import load
from factormodels.factor_graph import FactorGraph
from factormodels.io.store.results import STORE
from inference import Backend, Entry, LogZKind, Marginals, Posterior, Status, register, unregister
from tests.experiments.conftest import invoke, study_file

SMALL = "study: s\ndatasets: [demonstration]\n"


@pytest.fixture
def strange_backends() -> Iterator[None]:
    """Backends that fail in the ways that a real one might."""
    entries = [
        Entry("raising", Raising, "raises what is no error of the project", "none"),
        Entry("undefined", Undefined, "answers with NaN", "none"),
        Entry(
            *("absent", Raising, "needs what is not there", "none"),
            requires=("no_such_library",),
            install="pip install 'no[such]'",
        ),
        Entry("stuck", Stuck, "never converges, and has a seed", "none"),
    ]
    for entry in entries:
        register(entry)
    yield
    for entry in entries:
        unregister(entry.name)


@dataclass(frozen=True)
class Raising(Backend):
    name: ClassVar[str] = "raising"

    def solve(self, graph: FactorGraph) -> Posterior:
        raise ZeroDivisionError(f"on {graph.n_variables}\nvariables")


@dataclass(frozen=True)
class Undefined(Backend):
    name: ClassVar[str] = "undefined"

    def solve(self, graph: FactorGraph) -> Posterior:
        return answer(graph, np.nan, Status.CONVERGED)


@dataclass(frozen=True)
class Stuck(Backend):
    name: ClassVar[str] = "stuck"
    seed: int = 0

    def solve(self, graph: FactorGraph) -> Posterior:
        return answer(graph, 0.5, Status.NOT_CONVERGED)


def answer(graph: FactorGraph, value: float, status: Status) -> Posterior:
    values = np.full(int(graph.cardinalities.sum()), value)
    marginals = Marginals(graph.names, graph.cardinalities, values, graph.index)
    return Posterior(marginals, None, LogZKind.NONE, status)


def test_failing_units_are_recorded_and_the_rest_goes_on(folder: Path) -> None:
    path = study_file(
        folder,
        "study: s\ndatasets: [worked-examples]\nbackends:\n"
        "  - exact\n  - {backend: enumeration, settings: {max_states: 4}}\n",
    )
    result = invoke("run", path, code=1)
    rows = read_rows(folder / "results" / "s" / "rows.parquet")
    failed = rows[rows.status == "failed"]
    assert set(failed.backend) == {"enumeration"}
    assert failed.p.isna().all()
    assert failed.seconds.isna().all()
    assert failed.error.str.contains("assignments").all()
    # Graphs of at most two variables have four assignments and are answered.
    sizes = {g.id: len(g.atoms) + len(g.contexts) for g in load("worked-examples").graphs}
    assert set(failed.response) == {name for name, size in sizes.items() if size > 2}
    assert rows[rows.status != "failed"].error.isna().all()
    summary = pd.read_csv(folder / "results" / "s" / "summary.csv").set_index("backend")
    assert summary.n_failed["exact"] == 0
    assert summary.n_failed["enumeration"] == failed.response.nunique()
    assert f"{failed.response.nunique()} units failed, the first at" in result.stdout
    assert "failed" in (folder / "results" / "s" / "table.md").read_text()


@pytest.mark.usefixtures("strange_backends")
def test_a_backend_without_its_library_stands_in_the_table_as_absent(folder: Path) -> None:
    path = study_file(
        folder,
        "study: s\ndatasets: [worked-examples]\noutputs: [markdown, report]\n"
        "backends: [exact, {backend: absent, label: gone}]\n",
    )
    result = invoke("run", path)
    lines = result.stdout.splitlines()
    rows = [line for line in lines if "gone" in line and " is " not in line]
    assert rows
    assert all("gone (absent)" in row for row in rows)
    # In place of a count of failures, one sentence with the command.
    assert "failed" not in result.stdout
    (absent_line,) = (line for line in lines if "is absent" in line)
    assert absent_line.startswith("gone is absent: the backend 'absent' needs no_such_library")
    assert "run: pip install 'no[such]'. " in absent_line
    table = (folder / "results" / "s" / "table.md").read_text()
    assert "| gone (absent) |" in table
    assert absent_line in table
    assert "Failed" not in table
    page = (folder / "results" / "s" / "report.html").read_text()
    assert "gone (absent)" in page
    assert "units failed" not in page
    assert "no_such_library" in page


@pytest.mark.usefixtures("strange_backends")
def test_cells_that_agree_are_one_row_where_a_library_is_absent_too(folder: Path) -> None:
    path = study_file(
        folder,
        "study: s\ndatasets: [worked-examples]\nvariants: [FR1, FR2]\noutputs: [markdown]\n"
        "backends: [exact, lbp, {backend: absent, label: gone}]\n",
    )
    shown, _, reason = invoke("run", path).stdout.partition("gone is absent: ")
    assert "cells that agree" in " ".join(shown.split())
    assert shown.count("(absent)") == 1
    assert reason.startswith("the backend 'absent' needs no_such_library")
    short = (folder / "results" / "s" / "short.md").read_text()
    assert "gone (absent): no posterior |" in short
    assert "exact = lbp |" in short


def test_the_short_table_of_a_study_of_one_cell_has_a_caption(folder: Path) -> None:
    path = study_file(
        folder,
        "study: one-cell\ndatasets: [worked-examples]\nvariants: [FR1]\noutputs: [latex]\n"
        "encodings: [implication]\nbackends: [exact]\n",
    )
    invoke("run", path)
    short = (folder / "results" / "one-cell" / "short.tex").read_text()
    assert r"\caption{one-cell}\label{tab:short}" in short


@pytest.mark.usefixtures("strange_backends")
def test_whatever_a_backend_raises_ends_its_unit_alone(folder: Path) -> None:
    path = study_file(
        folder,
        "study: s\ndatasets: [{name: demonstration, limit: 2}]\n"
        "backends: [raising, undefined, absent, stuck, exact]\nseed: 5\noutputs: []\n",
    )
    invoke("run", path, code=1)
    rows = read_rows(folder / "results" / "s" / "rows.parquet")
    status = rows.groupby("backend").status.unique().map(list).to_dict()
    assert status == {
        "absent": ["absent"],
        "exact": ["exact"],
        "raising": ["failed"],
        "stuck": ["not_converged"],
        "undefined": ["failed"],
    }
    error = rows.groupby("backend").error.first()
    assert re.fullmatch(r"ZeroDivisionError: on \d+ variables", error["raising"])
    assert "not a finite number" in error["undefined"]
    assert "no_such_library" in error["absent"]
    assert "pip install" in error["absent"]
    assert rows[rows.backend == "undefined"].p.isna().all()
    assert json.loads(rows[rows.backend == "stuck"].setting.iloc[0]) == {"seed": 5}
    summary = pd.read_csv(folder / "results" / "s" / "summary.csv").set_index("backend")
    assert summary.n_not_converged["stuck"] == 2
    assert summary.n_failed[["raising", "undefined", "absent"]].tolist() == [2, 2, 0]
    assert summary.n_absent[["raising", "undefined", "absent"]].tolist() == [0, 0, 2]
    assert np.isnan(summary.brier["raising"])


def test_a_study_without_a_cell_is_refused(folder: Path) -> None:
    backends = "[{backend: exact, only: {variants: [FR1]}}]"
    study_file(folder, f"{SMALL}variants: [FR2]\nbackends: {backends}\n")
    result = invoke("run", "study.yaml", code=2)
    assert result.stderr.startswith("factormodels: study.yaml: no cell has a backend")
    assert not (folder / "results").exists()
    invoke("run", "study.yaml", "variants=[FR2, FR1]", "outputs=[]")


def test_a_narrow_table_keeps_its_numbers_and_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    label = "the-exact-one-" * 4
    data = "datasets: [{name: demonstration, limit: 1}]"
    study_file(folder, f"study: s\n{data}\nbackends: [{{backend: exact, label: {label}}}]\n")
    result = invoke("run", "study.yaml")
    summary = pd.read_csv(folder / "results" / "s" / "summary.csv").iloc[0]
    table = result.stdout.partition("computation")[0]
    for name in ("precision", "brier", "log_loss", "accuracy"):
        assert f"{summary[name]:.3f}" in table
    assert "…" not in result.stdout


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("datasets: [nonsense]", "datasets[0]: the dataset 'nonsense' is unknown"),
        ("datasets: [demonstratoin]", "datasets[0]: the dataset 'demonstratoin' is unknown (did"),
        ("datasets: [{name: demonstration, options: {x: 1}}]", "datasets[0]: the option 'x'"),
        ("datasets: [demonstration, {path: absent.jsonl}]", "datasets[1]: absent.jsonl: there is"),
        ("datasets: [demonstration, {path: chain.uai}]", "datasets[1] contains networks and "
         "datasets[0] does not; a study compares backends on networks or on claims, so split it "
         "into two studies\n"),
        ("backends: [{backend: lbp, settings: {dampng: 0.5}}]", "backends[0].settings.dampng: "),
        ("backends: [exact, {backend: lbp, settings: {damping: high}}]",
         "backends[1].settings.damping: 'high' does not fit: give a number\n"),
    ],
)  # fmt: skip
def test_errors_have_their_place_and_leave_no_folder(
    network_file: Path, changed: str, message: str
) -> None:
    before = {*network_file.parent.iterdir(), Path("study.yaml").absolute()}
    data = "" if changed.startswith("datasets") else "datasets: [demonstration]\n"
    study_file(network_file.parent, f"study: s\n{data}{changed}\n")
    result = invoke("run", "study.yaml", "--out", "deep/out", code=2)
    assert result.stderr.startswith(f"factormodels: study.yaml: {message}")
    assert {*network_file.parent.iterdir()} == before


def test_unlabeled_atoms_under_the_policy_error_are_refused(folder: Path) -> None:
    path = study_file(
        folder, "study: s\ndatasets: [worked-examples]\nunlabeled: error\noutputs: []\n"
    )
    assert "unlabeled" in invoke("run", path, code=2).stderr
    # What was computed is kept, and the policy is no part of it.
    assert {file.name for file in (folder / "results" / "s").iterdir()} == {PARTS, STORE}
    path.write_text(path.read_text().replace("error", "false"))
    invoke("run", path, "--resume")


def test_a_folder_that_cannot_be_made_is_refused_before_anything(folder: Path) -> None:
    (folder / "file").write_text("")
    result = invoke("run", study_file(folder, SMALL), "--out", "file/inside", code=2)
    assert "is a file; name a folder that can be created" in result.stderr


def test_a_run_that_dies_while_writing_leaves_the_results_before_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = study_file(folder, "study: s\ndatasets: [{name: demonstration, limit: 2}]\n")
    invoke("run", path)
    out = folder / "results" / "s"

    def written() -> dict[str, bytes]:
        names = {file.name for file in out.iterdir()} - {PARTS, STORE}
        return {name: (out / name).read_bytes() for name in names}

    before = written()

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(outputs, "write_diagrams", die)
    invoke("run", path, "seed=1", "--overwrite", code=130)
    assert written() == before
    assert [file.name for file in out.parent.iterdir()] == ["s"]
