"""Changes between two runs of an analysis, against tables edited by hand."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest

from experiments import diff
from tests.experiments.analyses.test_analyses import STATISTICS
from tests.experiments.conftest import invoke, study_file


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study and two runs of it; not to be changed."""
    folder = tmp_path_factory.mktemp("two")
    path = study_file(folder, STATISTICS)
    for name in ("a", "b"):
        invoke("run", path, "--out", folder / name)
    return folder


@pytest.fixture
def two(finished: Path, folder: Path) -> tuple[Path, Path]:
    """Two runs of one analysis, in the current folder."""
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    return folder / "a", folder / "b"


def test_equal_runs_do_not_differ(two: tuple[Path, Path]) -> None:
    changes = diff(*two)
    assert (len(changes.sentences), list(changes.tables)) == (1, [])
    assert changes.sentences[0].startswith("Nothing changed: ")


@pytest.mark.usefixtures("two")
def test_settings_and_values_that_changed_are_reported(folder: Path) -> None:
    key = "settings.datasets[1].synthetic.contexts_per_atom"
    invoke("run", "study.yaml", f"{key}=3", "--out", "c")
    compared = diff("a", "c")
    asked = {"setting": key, "before": "2", "after": "3"}
    assert asked in compared.tables["settings"].records()
    before, after = (
        pd.read_csv(folder / name / "datasets.csv").set_index("dataset").to_dict("index")
        for name in ("a", "c")
    )
    wanted = {
        (str(row), str(column)): after[row][column] - value
        for row, values in before.items()
        for column, value in values.items()
        if after[row][column] != value and not math.isnan(after[row][column])
    }
    assert ("made", "n_contexts") in wanted
    changes = compared.tables["changes"].records()
    sizes = [row for row in changes if row["table"] == "datasets"]
    assert {(row["row"], row["column"]): row["change"] for row in sizes} == wanted
    invoke("diff", "a", "c", "--out", "changes")
    assert len(pd.read_csv(folder / "changes" / "changes.csv")) == len(changes)


def test_rows_columns_and_tables_of_one_run_alone(two: tuple[Path, Path]) -> None:
    path = two[1] / "datasets.csv"
    frame = pd.read_csv(path)
    frame = frame[frame["dataset"] == "made"].assign(added=1).drop(columns="n_atoms")
    frame.to_csv(path, index=False)
    manifest = two[1] / "manifest.json"
    facts = json.loads(manifest.read_text())
    del facts["files"]["claims-per-response.csv"]
    manifest.write_text(json.dumps(facts))
    changes = diff(*two)
    assert [list(row.values())[2:] for row in changes.tables["rows"].records()] == [[1, 0]]
    assert "changes" not in changes.tables
    assert "Only before: claims-per-response." in changes.sentences
    assert "Columns of datasets: only before n_atoms; only after added." in changes.sentences


@pytest.mark.usefixtures("two")
def test_an_analysis_and_units_are_not_compared(folder: Path) -> None:
    units = "study: units\ndatasets: [{name: demonstration, limit: 1}]\noutputs: [csv]\n"
    study_file(folder, units)
    invoke("run", "study.yaml", "--out", "c")
    for order in (("a", "c"), ("c", "a")):
        result = invoke("diff", *order, code=2)
        assert "a contains tables and c a run of units" in result.stderr


def test_a_table_that_is_gone_is_a_sentence(two: tuple[Path, Path]) -> None:
    (two[0] / "datasets.csv").unlink()
    assert "datasets.csv: there is no such file" in invoke("diff", *two, code=2).stderr
