"""Texts that steer terminals, are no characters, or are run by spreadsheets."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.cli.console import output
from experiments.findings.markup import csv_records, csv_text, read_csv
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.findings.terminal import show
from experiments.study.rows import read_rows
from factormodels.control_characters import printable, printable_json, shortened
from factormodels.errors import FactormodelsError, InputError, MissingDependencyError
from factormodels.io.tables.spreadsheet_cells import quoted, unquoted
from tests.experiments.conftest import EXAMPLE, call, environment, invoke, study_file

HOSTILE = "half \ud83d of \x1b[2J\x1b]0;title\x07 and \x9b31m\x7f \u202e evil\r$\\frac$"


def hostile_graph(folder: Path) -> Path:
    """Figure 1 with hostile texts wherever texts may stand."""
    graph: dict[str, Any] = json.loads(json.dumps(EXAMPLE))
    graph |= dict.fromkeys(("query", "response", "topic"), HOSTILE)
    for node in graph["nodes"]:
        node["text"] = HOSTILE
    path = folder / "hostile.json"
    path.write_text(json.dumps(graph))
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ("infer",),
        ("infer", "--json"),
        ("infer", "--out", "posterior"),
        ("draw", "figure.pdf"),
        ("draw", "figure.svg"),
        ("draw", "figure.dot"),
        ("convert", "copy.json"),
        ("convert", "copy.uai"),
        ("datasets",),
    ],
    ids=" ".join,
)
def test_hostile_texts_are_shown_and_not_sent(arguments: tuple[str, ...], folder: Path) -> None:
    path = hostile_graph(folder)
    # As a terminal's, the streams here are UTF-8 and strict on output.
    result = invoke(arguments[0], path, *arguments[1:])
    shown = result.stdout + result.stderr
    assert printable(shown) == shown


def test_a_process_shows_hostile_texts_alike(folder: Path) -> None:
    result = call("infer", hostile_graph(folder))
    assert result.returncode == 0, result.stderr
    shown = result.stdout + result.stderr
    assert printable(shown) == shown
    assert "half \\ud83d of \\x1b[2J\\x1b]0;title\\x07 and \\x9b31m" in shown


def test_texts_of_a_table_may_hold_half_a_character() -> None:
    frame = data_frame([{"text": "half \ud83d of", "weight": 0.5}], ["text", "weight"])
    assert frame["text"].tolist() == [r"half \ud83d of"]
    assert frame["weight"].dtype == float


def test_a_half_character_in_an_id_is_refused(folder: Path) -> None:
    text = hostile_graph(folder).read_text().replace('"a1"', '"a\\ud800"')
    (folder / "hostile.json").write_text(text)
    result = invoke("infer", "hostile.json", code=2)
    assert "'a\\ud800' of an atom contains half of a character; rename it" in result.stderr


def test_errors_do_not_steer_a_terminal() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "experiments", "infer", b"\x1b[2J\xff.json"],
        capture_output=True,
        check=False,
        env=environment(),
    )
    assert result.returncode == 2
    assert result.stderr == (
        b"factormodels: \\x1b[2J\\udcff.json: there is no such file; check the path\n"
    )


def test_cells_are_measured_as_they_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    console = output()
    rows = [{"text": "\x1b[2J", "number": 1}, {"text": "12345678", "number": 2}]
    show(console, Table(rows, (*text_columns("text"), Column("number", "number", digits=0))))
    *_, first, second, _ = capsys.readouterr().out.splitlines()
    assert first.index("1", len("\\x1b[2J")) == second.index("2", len("12345678"))


@given(st.text(st.characters(exclude_categories=[])))
@settings(deadline=None, max_examples=300)
def test_json_that_is_shown_stands_for_the_same_value(text: str) -> None:
    shown = printable_json(json.dumps({text: [text]}, ensure_ascii=False))
    # Two halves in a row are one character, for JSON and for UTF-16.
    same = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert json.loads(shown) in ({text: [text]}, {same: [same]})
    assert printable(shown) == shown


FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "'=1", "''@"]
HARMLESS = ["", "'", "'tis", "1+1", "a=b", "-1.5", "+2e-3", "-inf", "-12%", "-1,234"]


@pytest.mark.parametrize("text", FORMULAS)
def test_cells_that_would_be_run_are_quoted_and_read_back(text: str) -> None:
    assert quoted(text) == f"'{text}"
    assert unquoted(quoted(text)) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert quoted(text) == text


@given(st.text(st.sampled_from("'=+-@\t\r1a, \"\n"), max_size=6))
def test_every_text_is_read_back_equal(text: str) -> None:
    # A harmless number is never taken for a quoted one, whatever stands around it.
    assert unquoted(quoted(text)) == text
    assert not quoted(text).startswith(("=", "@", "\t", "\r"))


def test_tables_are_read_back_equal(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=name": [*FORMULAS, "plain"], "x": [-1.5] * (len(FORMULAS) + 1)})
    path = tmp_path / "t.csv"
    path.write_bytes(csv_text(frame).encode())
    pd.testing.assert_frame_equal(read_csv(path), frame, check_dtype=False)
    assert [record["=name"] for record in csv_records(path)] == frame["=name"].tolist()
    with path.open(newline="") as file:
        for row in csv.reader(file):
            assert row[0].startswith(("'", "plain"))


def test_a_label_that_is_a_formula_is_quoted_in_the_tables_of_a_run(folder: Path) -> None:
    study_file(
        folder,
        "study: s\ndatasets: [{name: demonstration, limit: 2}]\n"
        "backends: [{backend: exact, label: '=1+1'}, {backend: lbp, label: '-2+3'}]\n"
        "outputs: [csv]\n",
    )
    invoke("run", "study.yaml", "--out", "out")
    for name in ("rows.csv", "summary.csv", "times.csv"):
        text = Path("out", name).read_text()
        assert "'=1+1" in text
        assert ",=1+1" not in text.replace("'=1+1", "")
        assert {"=1+1", "-2+3"} == set(read_csv(Path("out", name))["backend_label"])
    assert {"=1+1", "-2+3"} == set(read_rows("out")["backend_label"])


LONG = "n" * 100_000
WORDS = "a name " * 15_000


@pytest.mark.parametrize("name", [LONG, WORDS], ids=["word", "words"])
@pytest.mark.parametrize("kind", [FactormodelsError, InputError, MissingDependencyError])
def test_a_message_has_no_name_that_nobody_reads(name: str, kind: type[FactormodelsError]) -> None:
    error = kind(f"file.json: the atom {name!r} is no atom of {name!r}; remove it")
    for shown in (str(error), str(kind(f"x.json: {error}")), str(kind(str(error)))):
        assert len(shown) < 2_600
        assert "file.json: the atom 'n" in shown or "file.json: the atom 'a name" in shown
        assert shown.endswith("; remove it")
        assert "characters)" in shown


def test_a_message_that_is_read_is_left_as_it_is() -> None:
    message = f"/a/{'folder/' * 50}file.json: {'a sentence of some words, ' * 60}and its mend"
    assert str(InputError(message)) == message
    assert shortened(shortened(WORDS)) == shortened(WORDS)


@pytest.mark.parametrize("name", [LONG, WORDS], ids=["word", "words"])
@pytest.mark.parametrize("arguments", ["infer long.json", "draw long.json --out g"])
def test_a_long_name_in_a_file_is_one_short_line(name: str, arguments: str, folder: Path) -> None:
    graph: dict[str, Any] = json.loads(json.dumps(EXAMPLE))
    graph["nodes"][0]["id"] = graph["nodes"][1]["id"] = name
    (folder / "long.json").write_text(json.dumps(graph))
    result = invoke(*arguments.split(), code=2)
    assert result.stderr.startswith("factormodels: long.json")
    assert len(result.stderr) < 3_000
