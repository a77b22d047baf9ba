"""Damaged results: the file is named, and what can be read is read."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.study.files import read_manifest
from experiments.study.rows import RowsFile, read_rows
from factormodels.errors import InputError
from tests.experiments.conftest import invoke, study_file
from tests.refusals import refused


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run; not to be changed."""
    from experiments import run

    folder = tmp_path_factory.mktemp("finished")
    path = study_file(
        folder, "study: s\ndatasets: [{name: demonstration, limit: 2}]\noutputs: [csv]\n"
    )
    run(path, out=folder / "out")
    return folder / "out"


@pytest.fixture
def results(finished: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    shutil.copytree(finished, tmp_path / "out")
    return tmp_path / "out"


def test_a_flipped_byte_in_the_rows_is_named(results: Path) -> None:
    path = results / "rows.parquet"
    whole = path.read_bytes()
    n_refused = 0
    for at in range(0, len(whole), max(len(whole) // 150, 1)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            rows = RowsFile(path)
            for cell in rows.cells():
                rows.read(cell)
            read_rows(path)
        except InputError as error:
            n_refused += 1
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
    # Parquet as it is written here has no checksums: a flipped bit of a value or of what is told of
    # columns beside the values is not seen by anyone.
    assert n_refused > 20


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"\0" * 100])
def test_rows_that_are_none_are_named(results: Path, content: bytes) -> None:
    (results / "rows.parquet").write_bytes(content)
    refused(r"rows\.parquet: it is damaged \(.+\); run the study", read_rows, results)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("p", 7.0, "p is 7.0, which is not a probability"),
        ("p", math.nan, "p is nan"),
        ("p", math.inf, "p is inf"),
        ("p", "x", "the column 'p' has the type string, not double"),
        ("label", "=1+1", "the column 'label' has the type string, not bool"),
        ("atom", 3, "the column 'atom' has the type int64, not string"),
    ],
)
def test_values_that_rows_cannot_hold_are_named(
    results: Path, column: str, value: Any, reason: str
) -> None:
    path = results / "rows.parquet"
    table = pq.read_table(path)
    column_at = table.column_names.index(column)
    values = pa.array([value] * len(table))
    pq.write_table(table.set_column(column_at, column, values), path)
    refused(
        rf"rows\.parquet: it is damaged \({reason}.*\); run the study again",
        read_rows,
        results,
    )


def test_commands_name_damaged_rows(results: Path) -> None:
    (results / "rows.parquet").write_bytes((results / "rows.parquet").read_bytes()[:-30])
    for arguments in (("report", results), ("diff", results, results)):
        assert "rows.parquet: it is damaged" in invoke(*arguments, code=2).stderr
    (results / "rows.parquet").unlink()
    os.mkfifo(results / "rows.parquet")
    refused("this is a pipe", read_rows, results)


def changed(results: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest of a run."""
    path = results / "manifest.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("packages"), "packages"),
        (lambda m: m["code"].pop("modified", m.update(python=1)), "code.modified"),
        (lambda m: m.pop("code"), "code"),
        (lambda m: (m.pop("python"), m.pop("processor")), "python, processor"),
        (lambda m: m.pop("seeds"), "seeds"),
        (lambda m: m.pop("units"), "units"),
    ],
)
@pytest.mark.slow
def test_files_that_only_describe_a_run_may_be_missing(
    results: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    if message == "code.modified":
        # Whether the tests run in a checkout or not.
        changed(results, lambda m: m["code"].update(commit="0" * 40, modified=True))
        changed(results, lambda m: m["code"].pop("modified"))
    else:
        changed(results, change)
    commands: list[tuple[object, ...]] = [("diff", results, results)]
    # Both read a manifest in the same way.
    if message == "packages":
        commands.append(("report", results, "--out", results / "page.html"))
    for arguments in commands:
        result = invoke(*arguments)
        assert f"manifest.json: the manifest lacks {message}; the results are read without" in (
            result.stderr
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("config"), "config"),
        (lambda m: m.update(data=[1]), "data"),
        (lambda m: m["data"]["demonstration"].pop("sha256"), "data.demonstration.sha256"),
        (lambda m: m["data"]["demonstration"].update(atoms=True), "data.demonstration.atoms"),
        (lambda m: m["data"]["demonstration"].update(relations=3), "data.demonstration.relations"),
        (lambda m: m.update(files={"a.csv": None}), "files.a.csv"),
        (lambda m: m.update(packages={"numpy": 3}), "packages.numpy"),
        (lambda m: m.update(code="x"), "code"),
        (lambda m: m["code"].update(commit=0), "code.commit"),
        (lambda m: m.update(seeds=None), "seeds"),
    ],
)
def test_files_that_results_depend_on_may_not_be_missing(
    results: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    changed(results, change)
    refused(rf"manifest\.json: {message} is missing or damaged; run", read_manifest, results)
