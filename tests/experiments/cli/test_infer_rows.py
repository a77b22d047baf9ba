"""`factormodels infer` with a table of evidence: a row at a time, in files and in errors."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import experiments
from factormodels import FactorGraph
from factormodels.io import read
from inference import infer_rows
from tests.experiments.cli.test_bad_input import assert_refused, refuse
from tests.experiments.cli.test_state_names import BIF
from tests.experiments.conftest import invoke

ROWS = "rain,sprinkler\nyes,\n,\nno,on\n"


@pytest.fixture
def rows(folder: Path) -> Path:
    """Write a network, and a table in whose second row nothing is observed."""
    (folder / "net.bif").write_text(BIF)
    path = folder / "rows.csv"
    path.write_text(ROWS)
    return path


def test_a_table_is_answered_row_by_row(rows: Path) -> None:
    printed = json.loads(invoke("infer", "net.bif", "--evidence", rows, "--json").stdout)
    graph = read("net.bif")
    assert isinstance(graph, FactorGraph)
    expected = infer_rows(graph, pd.read_csv(rows))
    posteriors = pd.DataFrame(printed["tables"]["posteriors"])
    assert posteriors["p"].tolist() == pytest.approx(expected["p"].tolist(), abs=0)
    assert posteriors["row"].tolist() == expected["row"].tolist()
    assert [row["line"] for row in printed["tables"]["rows"]] == [2, 3, 4]
    again = experiments.infer("net.bif", evidence=pd.read_csv(rows))
    assert again["posteriors"]["p"].tolist() == expected["p"].tolist()
    invoke("infer", "net.bif", "--evidence", rows, "--out", "out.parquet")
    assert pd.read_parquet("out.parquet")["p"].tolist() == expected["p"].tolist()


def test_a_table_is_recognized_by_content(rows: Path) -> None:
    Path("seen").write_text(ROWS)
    Path("seen.json").write_text('[{"rain": "yes"}, {}, {"rain": "no", "sprinkler": "on"}]')
    values = [
        experiments.infer("net.bif", evidence=name)["posteriors"]["p"].tolist()
        for name in (rows, "seen", "seen.json")
    ]
    assert values[0] == values[1] == values[2]


def test_impossible_rows_are_reported(rows: Path) -> None:
    certain = BIF.replace("0.99, 0.01", "1.0, 0.0")
    Path("net.bif").write_text(certain)
    rows.write_text("rain,sprinkler\nyes,on\nno,on\n")
    findings = experiments.infer("net.bif", evidence=rows)
    assert any("1 row has probability zero (0)" in sentence for sentence in findings.sentences)
    assert findings["posteriors"]["p"].isna().tolist() == [True] * 4 + [False] * 4


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("rian\nyes\n", (), "rows.csv, line 1: the column 'rian' is unknown"),
        ("rain\nno\nyse\n", (), "rows.csv, line 3, column 'rain': the state 'yse' is unknown"),
        (ROWS, ("--map",), "--map takes one observation"),
        (ROWS, ("--evidence", "more.csv"), "--evidence more.csv: "),
        (ROWS, ("--evidence", "rain=no"), "rows.csv, line 2, column 'rain': it contradicts"),
    ],
)
def test_input_that_does_not_fit_is_refused(
    rows: Path, text: str, options: tuple[str, ...], message: str
) -> None:
    rows.write_text(text)
    Path("more.csv").write_text(ROWS)
    result = refuse("infer", "net.bif", "--evidence", "rows.csv", *options, "--out", "out.csv")
    assert_refused(result, message)
    assert not Path("out.csv").exists()
