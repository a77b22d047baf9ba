"""Excel workbooks: a single sheet is a table, and damage is reported."""

from __future__ import annotations

import datetime
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from experiments import score
from factormodels.errors import MissingDependencyError
from factormodels.io.source.opening import size_limit
from factormodels.io.tables.data_table import read_table
from tests.refusals import refused

openpyxl = pytest.importorskip("openpyxl", reason="what writes workbooks here")

ROWS = [
    ("response", "claim", None, "p", "label", "day"),
    ("r1", "a1", None, 0.9, 1, datetime.date(2026, 1, 2)),
    (None, None, None, None, None, None),
    ("r1", "a2", "no column", "12,5 %", 0, None),
    ("r2", "a1", None, 0.5, True, None),
]


def workbook(path: Path, **sheets: Any) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_the_one_sheet_with_values_is_a_table(tmp_path: Path) -> None:
    table = read_table(workbook(tmp_path / "book.xlsx", Claims=ROWS, Empty=[]))
    assert (table.form, table.columns) == ("Excel", ("response", "claim", "p", "label", "day"))
    assert [row["p"] for row in table.rows] == [0.9, "12,5 %", 0.5]
    assert table.rows[0]["day"] == "2026-01-02"
    assert table.rows[2]["label"] is True
    # As Excel numbers them.
    assert table.lines == (2, 4, 5)
    assert table.locate(1, "p").endswith("book.xlsx, line 4, column 'p'")


def test_commands_take_a_workbook(tmp_path: Path) -> None:
    scores = score(workbook(tmp_path / "book.xlsx", Claims=ROWS), n_bootstrap=20, resamples=19)
    expected = ((0.9 - 1) ** 2 + 0.125**2 + 0.5**2) / 3
    assert scores["scores"]["brier"].tolist() == [pytest.approx(expected, abs=1e-12)]
    assert any(
        "1 number with a decimal comma and 1 number with a percent" in sentence
        for sentence in scores.sentences
    )


def test_invalid_tables_are_refused_with_the_fix(tmp_path: Path) -> None:
    several = workbook(tmp_path / "several.xlsx", One=ROWS, Two=ROWS)
    refused("2 sheets with values .'One', 'Two'.; save the one", read_table, several)
    refused("no values", read_table, workbook(tmp_path / "none.xlsx", One=[]))
    refused("no rows", read_table, workbook(tmp_path / "head.xlsx", One=ROWS[:1]))
    twice = workbook(tmp_path / "twice.xlsx", One=[("p", "p"), (1, 2)])
    refused("line 1: two columns have the name 'p'", read_table, twice)
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100))
    refused("save it again as .xlsx, or a sheet as CSV", read_table, tmp_path / "old.xls")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    refused("this is an archive, and neither", read_table, tmp_path / "other.zip")


def test_without_openpyxl_the_message_names_two_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "book.xlsx", Claims=ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    message = r"factorfacts\[excel\].*save the sheet as CSV"
    with pytest.raises(MissingDependencyError, match=message):
        read_table(path)


def test_the_stated_size_of_a_workbook_is_not_trusted(tmp_path: Path) -> None:
    path = workbook(tmp_path / "book.xlsx", Claims=ROWS)
    content = io.BytesIO()
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(content, "w") as after:
        for name in before.namelist():
            text = before.read(name)
            if name.endswith("sheet1.xml"):
                text = text.replace(b'ref="A1:F5"', b'ref="A1:XFD1048576"')
                assert b"XFD" in text
            after.writestr(name, text)
    path.write_bytes(content.getvalue())
    # Rows as wide as it says would take 131,072 bytes each.
    with size_limit(100_000):
        assert len(read_table(path).rows) == 3
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(10**6))
    with size_limit(10**5):
        refused("bomb.xlsx", read_table, tmp_path / "bomb.xlsx")


def test_each_of_merged_cells_has_their_value(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (
        ("response", "claim", "p", "label"),
        *(("u", "u1", 0.75, 1), (None, "u2", 0.5, 0), (None, None, None, None)),
        *((None, "u3", 0.25, 0), ("v", "v1", 0.5, 1), (None, "v2", 0.5, None)),
    ):
        sheet.append(row)
    for merged in ("A2:A5", "A6:A7", "D6:D7", "F2:G3"):
        sheet.merge_cells(merged)
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx")
    assert [row["response"] for row in table.rows] == ["u", "u", "u", "v", "v"]
    assert [row["label"] for row in table.rows] == [1, 0, 0, 1, 1]
    assert [row["claim"] for row in table.rows] == ["u1", "u2", "u3", "v1", "v2"]
    sheet.unmerge_cells("A6:A7")
    book.save(tmp_path / "t.xlsx")
    refused("line 7, column 'response': the cell is blank", score, tmp_path / "t.xlsx")
