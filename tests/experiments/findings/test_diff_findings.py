"""Differences between two findings, of one command or of two, in memory or read from files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import diff, infer, run
from experiments.findings.findings import Findings
from experiments.findings.table import Table, text_columns
from experiments.methods.diff import read_findings
from factormodels.datasets import load
from tests.refusals import refused


def findings_of(*rows: dict[str, object], **settings: object) -> Findings:
    tables = {"scores": Table(rows, text_columns("model"))}
    return Findings("t.csv", (), tables, settings, command="score")


FIRST = (
    {"data": "a", "model": "m", "brier": 0.25, "status": "ok", "seconds": 1.0},
    {"data": "a", "model": "n", "brier": math.nan, "status": "one_class", "seconds": 1.0},
    {"data": "b", "model": "m", "brier": 0.5, "status": "ok", "seconds": 1.0},
)


def test_numbers_words_rows_and_settings() -> None:
    second = [dict(row, seconds=9.0) for row in FIRST[:2]]
    second[0] |= {"brier": 0.125, "status": "clipped"}
    changed = diff(findings_of(*FIRST, folds=5), findings_of(*second, folds=3))
    assert changed.tables["changes"].records() == [
        {
            "table": "scores", "row": "a, m", "column": "brier", "before": 0.25, "after": 0.125,
            "change": -0.125,
        },
        {
            "table": "scores", "row": "a, m", "column": "status", "before": "ok",
            "after": "clipped", "change": None,
        },
    ]  # fmt: skip
    assert changed.tables["rows"].records() == [
        {"table": "scores", "row": "b, m", "before": 1, "after": 0}
    ]
    assert changed.tables["settings"].records() == [
        {"setting": "folds", "before": "5", "after": "3"}
    ]
    assert changed.sentences == (
        "2 of 4 values changed.",
        "The largest relative change is -0.125: brier of a, m, from 0.25 to 0.125.",
        "1 row without a counterpart.",
    )


def test_values_within_the_tolerance_or_undefined_in_both_are_equal() -> None:
    second = [dict(row, brier=float(str(row["brier"])) + 1e-9) for row in FIRST]
    assert "changes" in diff(findings_of(*FIRST), findings_of(*second)).tables
    nearly = [dict(row, brier=float(str(row["brier"])) + 1e-13) for row in FIRST]
    assert diff(findings_of(*FIRST), findings_of(*nearly)).sentences == (
        "Nothing changed: 6 values are the same.",
    )
    assert diff(findings_of(), findings_of()).tables == {}


def test_rows_of_the_same_texts_are_distinguished_by_their_place() -> None:
    rows = [{"model": "m", "x": 1}, {"model": "m", "x": 2}]
    changed = diff(findings_of(*rows), findings_of(rows[0], {"model": "m", "x": 3}))
    assert [row["row"] for row in changed.tables["changes"].records()] == ["m [2]"]
    numbers = diff(findings_of({"x": 1}, {"x": 2}), findings_of({"x": 1}, {"x": 3}))
    assert [row["row"] for row in numbers.tables["changes"].records()] == ["[2]"]
    # Where one has more of them, their order says nothing.
    more = diff(findings_of(*rows), findings_of(*rows, {"model": "m", "x": 5}))
    assert more.tables["rows"].records() == [
        {"table": "scores", "row": "m", "before": 2, "after": 3}
    ]
    assert "changes" not in more.tables


def test_findings_are_read_as_they_were_written(tmp_path: Path) -> None:
    graph = load("worked-examples").graphs[0]
    first = infer(graph)
    first.save(tmp_path / "first")
    again = read_findings(tmp_path / "first")
    assert json.loads(again.as_json()) == json.loads(first.as_json())
    assert diff(first, again).sentences[0].startswith("Nothing changed")
    other = infer(graph, encoding="conditional", backend="enumeration")
    changed = diff(again, other)
    p = {row["variable"]: row["p"] for row in other.tables["posteriors"].records()}
    changed_rows = [row for row in changed.tables["changes"].records() if row["column"] == "p"]
    assert changed_rows
    assert all(row["after"] == p[str(row["row"]).rpartition(", ")[2]] for row in changed_rows)
    assert {"encoding", "backend"} <= {
        str(row["setting"]) for row in changed.tables["settings"].records()
    }


def test_the_function_takes_what_was_found_and_folders_of_it(tmp_path: Path) -> None:
    graph = load("worked-examples").graphs[0]
    first, other = infer(graph), infer(graph, encoding="conditional")
    in_memory = diff(first, other)
    first.save(tmp_path / "first")
    other.save(tmp_path / "other")
    changes = in_memory.tables["changes"].records()
    assert changes
    for sides in ((tmp_path / "first", other), (first, str(tmp_path / "other"))):
        assert diff(*sides).tables["changes"].records() == changes
    of_folders = diff(tmp_path / "first", tmp_path / "other")
    assert of_folders.tables["changes"].records() == changes
    assert in_memory.command == "diff"


def test_the_function_takes_runs_with_their_units(tmp_path: Path) -> None:
    study = {"study": "s", "datasets": [{"name": "worked-examples"}], "backends": ["exact"]}
    study |= {"outputs": ["csv"]}
    first = run(study, out=tmp_path / "first")
    other = run({**study, "encodings": ["conditional"]}, out=tmp_path / "other")
    of_folders = diff(first.folder, other.folder)
    assert "measures" in of_folders.tables or of_folders.sentences
    assert diff(first, other).as_json() == of_folders.as_json()
    # Beside what is in memory alone, its tables are what is compared.
    assert diff(first, infer(load("worked-examples").graphs[0])).sentences


@pytest.mark.parametrize(
    ("text", "message"), [("{}", "it contains no findings"), ("[", "findings.json")]
)
def test_invalid_findings_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "findings.json").write_text(text)
    refused(message, read_findings, tmp_path)


def test_results_without_a_common_column_of_values_are_not_called_unchanged() -> None:
    def table(**columns: Any) -> Findings:
        frame = pd.DataFrame({"response": ["r1", "r2"], **columns})
        return Findings("x", (), {"responses": Table(frame, ())}, command="c")

    changes = diff(table(FR2=[0.5, 1.0]), table(precision=[0.5, 1.0]))
    assert changes.sentences[0] == "Columns of responses: only before FR2; only after precision."
    assert changes.sentences[1].startswith("No value was compared")
    assert not any("Nothing changed" in each for each in changes.sentences)


def test_rows_are_named_by_few_columns_and_times_in_texts_are_not_compared() -> None:
    rows = (
        {"model": "m", "why": "elimination takes about 1.1e-08 s", "response": "r1", "p": 0.25},
        {"model": "m", "why": "elimination takes about 2 s", "response": "r2", "p": 0.5},
    )
    later = [dict(rows[0], why="elimination takes about 9e-08 s", p=0.75)]
    later += [dict(rows[1], why="sampling takes about 3 s")]
    changes = diff(findings_of(*rows), findings_of(*later)).tables["changes"].records()
    assert [(each["row"], each["column"], each["before"], each["after"]) for each in changes] == [
        ("r1", "p", 0.25, 0.75),
        ("r2", "why", "elimination takes about 2 s", "sampling takes about 3 s"),
    ]
