"""`factormodels run`: every file, alike every time; failures recorded; nothing half done."""

from __future__ import annotations

import getpass
import hashlib
import json
import logging
import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from experiments.study.parts import PARTS
from experiments.study.rows import SCHEMA, read_rows
from factormodels.datasets import load
from factormodels.io.store.results import STORE
from tests.experiments.conftest import invoke, study_file
from tests.experiments.pages.reported import listed

pytestmark = pytest.mark.slow

STUDY = """
study: small
datasets: [{name: demonstration, limit: 3}, worked-examples]
variants: [FR1, FR3]
encodings: [implication, conditional]
backends:
  - exact
  - {backend: lbp, label: lbp damped, settings: {damping: 0.5}}
  - {backend: enumeration, only: {datasets: [worked-examples], variants: [FR1]}}
"""

FILES = {
    PARTS,
    STORE,
    "manifest.json",
    "reliability-demonstration-conditional.csv",
    "reliability-demonstration-conditional.pdf",
    "reliability-demonstration-conditional.png",
    "reliability-demonstration-conditional.tex",
    "reliability.csv",
    "reliability.pdf",
    "reliability.png",
    "reliability.tex",
    "rows.csv",
    "rows.parquet",
    "summary.csv",
    "table.md",
    "short.md",
    "short.tex",
    "table.tex",
    "times.csv",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of a finished run of `STUDY`, and what it printed."""
    folder = tmp_path_factory.mktemp("finished")
    path = study_file(folder, STUDY)
    return folder / "out", invoke("run", path, "--out", folder / "out")


def test_every_file_is_written(finished: tuple[Path, Any]) -> None:
    folder, result = finished
    assert {path.name for path in folder.iterdir()} == FILES
    # Of the parts and the store nothing is said.
    message = f"{folder}: {len(FILES) - 2} files, rows, summary, times"
    assert message in result.stdout
    assert "demonstration: 3 responses" in result.stdout


def test_rows_have_the_schema_and_every_atom_in_every_cell(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    table = pq.read_table(folder / "rows.parquet")
    assert table.schema.equals(SCHEMA)
    assert table.schema.metadata[b"study"] == b"small"
    rows = read_rows(folder / "rows.parquet")
    demonstration = load("demonstration").graphs[:3]
    worked = load("worked-examples").graphs
    atoms = {
        "demonstration": sum(len(graph.atoms) for graph in demonstration),
        "worked-examples": sum(len(graph.atoms) for graph in worked),
    }
    counts = rows.groupby(["dataset", "variant", "encoding", "backend_label"]).size()
    # 2 variants x 2 encodings x 2 backends for each dataset, and the oracle in 2 cells.
    assert len(counts) == 2 * 8 + 2
    assert all(count == atoms[str(key[0])] for key, count in counts.items())  # type: ignore[index]
    first = rows[(rows.dataset == "demonstration") & (rows.backend == "exact")]
    keys = list(zip(first.response[: atoms["demonstration"]], first.atom, strict=False))
    assert keys == [(graph.id, atom.id) for graph in demonstration for atom in graph.atoms]
    labels = [atom.label for graph in demonstration for atom in graph.atoms]
    assert first.label[: atoms["demonstration"]].tolist() == labels
    assert rows.p.between(0, 1).all()
    assert set(rows.status) == {"exact", "converged"}


def test_rows_hold_the_golden_posteriors(finished: tuple[Path, Any]) -> None:
    rows = read_rows(finished[0] / "rows.parquet")
    for graph in load("worked-examples").graphs:
        golden = graph.metadata["golden"]
        chosen = rows[
            (rows.response == graph.id)
            & (rows.encoding == golden["encoding"])
            & (rows.variant == "FR3")
            & (rows.backend == "exact")
        ]
        for atom, p in zip(chosen.atom, chosen.p, strict=True):
            # Golden values are rounded to their digits.
            assert p == pytest.approx(
                golden["marginals"][atom], abs=0.5 * 10 ** -golden["digits"] + 1e-12
            )


def test_settings_are_written_out_with_defaults(finished: tuple[Path, Any]) -> None:
    rows = read_rows(finished[0] / "rows.parquet")
    setting = json.loads(rows[rows.backend_label == "lbp damped"].setting.iloc[0])
    assert setting["damping"] == 0.5
    assert "max_iterations" in setting
    assert list(setting) == sorted(setting)


def test_csv_and_parquet_hold_the_same(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    from_csv = pd.read_csv(folder / "rows.csv", dtype_backend="numpy_nullable")
    parquet = read_rows(folder / "rows.parquet")
    assert list(from_csv.columns) == SCHEMA.names
    for name in ("response", "atom", "p", "label", "log_z", "setting"):
        assert from_csv[name].tolist() == parquet[name].tolist(), name


def test_two_runs_differ_in_nothing_but_times(finished: tuple[Path, Any], folder: Path) -> None:
    before, _ = finished
    invoke("run", study_file(folder, STUDY), "--out", "again")
    after = folder / "again"
    timed = {"rows.csv", "rows.parquet", "times.csv"}
    for name in FILES - timed - {PARTS, STORE, "manifest.json"}:
        assert (before / name).read_bytes() == (after / name).read_bytes(), name
    first, other = (read_rows(path / "rows.parquet") for path in (before, after))
    pd.testing.assert_frame_equal(
        first.drop(columns="seconds"), other.drop(columns="seconds"), check_exact=True
    )
    manifests = [json.loads((path / "manifest.json").read_text()) for path in (before, after)]
    for manifest in manifests:
        for name in timed:
            del manifest["files"][name]
    assert manifests[0] == manifests[1]


def test_the_manifest_says_what_was_computed_and_nothing_of_the_machine(
    finished: tuple[Path, Any],
) -> None:
    folder, _ = finished
    text = (folder / "manifest.json").read_text()
    manifest = json.loads(text)
    assert set(manifest["files"]) == FILES - {PARTS, STORE, "manifest.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert manifest["config"]["reliability"] == {"bins": 10, "strategy": "quantile"}
    assert manifest["units"] == {"converged": 76, "exact": 76 + 32}
    assert manifest["data"]["demonstration"]["responses"] == 3
    assert manifest["seeds"] == [0]
    assert manifest["packages"]["numpy"] == np.__version__
    assert not re.search(r'[":= ](/|~|[A-Za-z]:\\)', text), "an absolute path"
    assert str(Path.home()) not in text
    assert str(Path.cwd()) not in text
    values = {str(value) for value in _leaves(manifest)}
    assert not values & {socket.gethostname(), getpass.getuser()}


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def test_a_file_of_ones_own_is_read_beside_the_configuration(folder: Path) -> None:
    study = "study: own\noutputs: []\ndatasets: [{{{}, limit: 2}}]\n"
    (folder / "config").mkdir()
    invoke("convert", "demonstration", "config/mine.jsonl")
    study_file(folder / "config", study.format("path: mine.jsonl"))
    invoke("run", "config/study.yaml")
    manifest = json.loads((folder / "results" / "own" / "manifest.json").read_text())
    assert manifest["data"]["mine"]["responses"] == 2
    embedded = study_file(folder, study.format("name: demonstration"))
    invoke("run", embedded, "--out", "embedded")
    other = json.loads((folder / "embedded" / "manifest.json").read_text())
    assert other["data"]["demonstration"]["sha256"] == manifest["data"]["mine"]["sha256"]


def test_a_response_without_atoms_has_one_row(folder: Path) -> None:
    node = {"id": "a1", "type": "atom", "probability": 0.25, "label": False}
    graphs = [
        {"id": "full", "nodes": [node], "edges": []},
        {"id": "empty", "nodes": [], "edges": []},
    ]
    (folder / "data.jsonl").write_text("".join(f"{json.dumps(graph)}\n" for graph in graphs))
    path = study_file(folder, "study: s\ndatasets: [{path: data.jsonl}]\n")
    result = invoke("run", path)
    rows = read_rows(folder / "results" / "s" / "rows.parquet").set_index("response")
    assert rows.p["full"] == pytest.approx(0.25, abs=1e-15)
    assert rows.loc["empty", ["atom", "p", "label", "error"]].isna().all()
    assert rows.status["empty"] == "exact"
    assert "data: 2 responses, 1 atom, 1 labeled" in result.stdout


def test_priors_replace_those_of_the_data(folder: Path) -> None:
    path = study_file(folder, "study: s\ndatasets: [worked-examples]\n")
    invoke("run", path, "priors=[{atom: [0.2], context: [0.0]}]")
    rows = read_rows(folder / "results" / "s" / "rows.parquet").set_index("response")
    # One entailment from a context that is certainly false says nothing about its atom.
    assert rows.p["one-entailment"] == pytest.approx(0.2, abs=1e-12)


def test_outputs_can_be_left_out_and_other_files_are_left_alone(folder: Path) -> None:
    out = folder / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    path = study_file(folder, "study: s\ndatasets: [worked-examples]\noutputs: []\n")
    invoke("run", path, "--out", out)
    written = {PARTS, STORE, "manifest.json", "rows.parquet", "summary.csv", "times.csv"}
    assert {file.name for file in out.iterdir()} == {*written, "notes.txt"}


def test_artifacts_that_a_study_no_longer_makes_are_gone(folder: Path) -> None:
    path = study_file(folder, "study: s\ndatasets: [worked-examples]\noutputs: [latex, csv]\n")
    invoke("run", path, "--out", "out")
    invoke("run", path, "--out", "out", "--resume", "outputs=[latex]")
    assert (folder / "out" / "table.tex").exists()
    assert not (folder / "out" / "rows.csv").exists()


def test_readers_names_are_in_tables_figures_and_page_but_not_in_data(folder: Path) -> None:
    outputs = "outputs: [csv, latex, markdown, reliability, report]\n"
    data = "datasets: [{name: demonstration, limit: 3}]\nvariants: [FR3]\n"
    path = study_file(folder, f"study: s\n{data}backends: [exact, lbp]\n{outputs}")
    names = ("--rename", "lbp=loopy BP", "--rename", "nobody=Nobody")
    printed = invoke("run", path, "--out", "out", *names)
    assert printed.stderr.count("rename: no name is 'nobody'") == 1
    shown = [path.read_text() for path in (folder / "out").glob("*.*") if path.suffix in SHOWN]
    page = (folder / "out" / "report.html").read_text()
    for text in (printed.stdout, *shown, page.partition('id="settings"')[0]):
        assert "lbp" not in text
    assert sum("loopy BP" in text for text in shown) >= 2
    data_files = [(folder / "out" / name).read_text() for name in ("rows.csv", "summary.csv")]
    assert all("lbp" in text and "loopy" not in text for text in data_files)
    # A page of the finished run has the names of the run and new ones.
    invoke("report", "out", "--out", "page.html", "--rename", "exact=elimination")
    titles = [each["title"] for each in listed(folder / "page.html")["answers"]]
    assert titles == ["FR3 · implication · elimination", "FR3 · implication · loopy BP"]
    # Without the option, the names of the data are back.
    invoke("run", path, "--out", "out", "--resume", "outputs=[latex]")
    assert "lbp" in (folder / "out" / "table.tex").read_text()


SHOWN = (".tex", ".md")
"""Suffixes of files that are read by people."""


def test_counts_agree_with_their_nouns(folder: Path) -> None:
    data = "datasets: [{name: worked-examples, subset: {responses: [one-entailment]}}]"
    path = study_file(folder, f"study: s\n{data}\noutputs: []\n")
    result = invoke("run", path)
    assert "s: 1 unit;" in result.stderr
    assert "worked-examples: 1 response, 1 atom, " in result.stdout


def test_the_warning_about_e_is_one_line(finished: tuple[Path, Any]) -> None:
    _, result = finished
    assert "entropy measure" not in result.stderr
    assert len(re.findall("E does not rank by truth", result.stdout)) == 1
    assert not logging.getLogger("calibration.scores.measures").filters


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("damping", "0.5"),
        ("i-bound", "4"),
        ("seconds", "3"),
        ("strengths", "0.5,1"),
        ("variants", "FR1"),
        ("datasets", "demonstration"),
    ],
)
def test_advice_on_an_option_that_is_a_key_of_studies_works_as_pasted(
    folder: Path, option: str, value: str
) -> None:
    study = study_file(folder, "study: s\ndatasets: [worked-examples]\n")
    refused = invoke("run", study, f"--{option}", value, code=2).stderr
    advice = next(each for each in shlex.split(refused) if "=" in each)
    invoke("run", study, advice, "--dry-run")
    (folder / "options.yaml").write_text(f"{option}: {value}\n")
    in_file = invoke("run", study, "--config", "options.yaml", code=2).stderr
    assert in_file.startswith(f"factormodels: options.yaml: the option '{option}' is unknown")
    assert advice in in_file


@pytest.mark.parametrize(
    "command", ["report results", "score demonstration", "keep demonstration", "diff a b", "list"]
)
def test_a_command_without_a_backend_says_whose_setting_an_option_is(command: str) -> None:
    refused = invoke(*command.split(), "--damping", "0.5", code=2).stderr
    assert "it is a setting of lbp, trw, ijgp, and this command uses no backend" in refused
