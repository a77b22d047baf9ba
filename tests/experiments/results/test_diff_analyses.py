"""What changed between two runs of an analysis, held against tables that were changed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from experiments.results.diff import compare_tables
from tests.experiments.analyses.test_analyses import STATISTICS
from tests.experiments.conftest import invoke, study_file


@pytest.fixture
def two(folder: Path) -> tuple[Path, Path]:
    """Two runs of one analysis."""
    study_file(folder, STATISTICS)
    for name in ("a", "b"):
        invoke("run", "study.yaml", "--out", name)
    return folder / "a", folder / "b"


def test_equal_runs_do_not_differ(two: tuple[Path, Path]) -> None:
    found = compare_tables(*two)
    assert (found.settings, found.only_before, found.only_after) == ((), (), ())
    assert {table.table for table in found.tables} == {"datasets", "atoms-per-response"}
    assert all(table.same and table.n_values for table in found.tables)
    assert "2 tables of 2 unchanged" in invoke("diff", *two).stdout


def test_settings_and_values_that_changed_are_told(folder: Path) -> None:
    study_file(folder, STATISTICS)
    place = "settings.datasets[1].synthetic.contexts_per_atom"
    invoke("run", "study.yaml", "--out", "a")
    invoke("run", "study.yaml", f"{place}=3", "--out", "b")
    found = compare_tables(folder / "a", folder / "b")
    assert (place, "2", "3") in found.settings
    before, after = (
        pd.read_csv(folder / name / "datasets.csv").set_index("dataset").to_dict("index")
        for name in ("a", "b")
    )
    (sizes,) = (table for table in found.tables if table.table == "datasets")
    wanted = {
        (str(row), str(column)): after[row][column] - value
        for row, values in before.items()
        for column, value in values.items()
        if after[row][column] != value and not math.isnan(after[row][column])
    }
    assert ("made", "n_contexts") in wanted
    assert {(value.row, value.column): value.difference for value in sizes.values} == wanted
    assert "values that moved most" in invoke("diff", "a", "b", "--out", "changes").stdout
    changes = pd.read_csv(folder / "changes" / "numbers.csv")
    assert len(changes) == sum(len(table.values) for table in found.tables)


def test_rows_columns_and_tables_of_one_run_alone(two: tuple[Path, Path]) -> None:
    path = two[1] / "datasets.csv"
    frame = pd.read_csv(path)
    frame = frame[frame["dataset"] == "made"].assign(added=1).drop(columns="n_atoms")
    frame.to_csv(path, index=False)
    manifest = two[1] / "manifest.json"
    facts = json.loads(manifest.read_text())
    del facts["files"]["atoms-per-response.csv"]
    manifest.write_text(json.dumps(facts))
    found = compare_tables(*two)
    (sizes,) = found.tables
    assert (sizes.n_only_before, sizes.n_only_after, sizes.values) == (1, 0, ())
    assert set(sizes.columns) == {"added", "n_atoms"}
    assert (found.only_before, found.only_after) == (("atoms-per-response",), ())
    said = invoke("diff", *two).stdout
    assert "only before: atoms-per-response" in said
    assert "datasets: only one has" in said


def test_an_analysis_and_units_are_not_compared(folder: Path) -> None:
    study_file(folder, STATISTICS)
    invoke("run", "study.yaml", "--out", "a")
    units = "study: units\ndatasets: [{name: demonstration, limit: 1}]\noutputs: [csv]\n"
    study_file(folder, units)
    invoke("run", "study.yaml", "--out", "b")
    for order in (("a", "b"), ("b", "a")):
        result = invoke("diff", *order, code=2)
        assert "a holds tables and b a run of units" in result.stderr


def test_a_table_that_is_gone_is_a_sentence(two: tuple[Path, Path]) -> None:
    (two[0] / "datasets.csv").unlink()
    assert "datasets.csv: there is no such file" in invoke("diff", *two, code=2).stderr
