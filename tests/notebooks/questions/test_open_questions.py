"""The numbers that docs/appendix/open-questions.md shows are those of its commands."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.experiments.conftest import invoke
from tests.pages import Row, agree, table_rows

ROOT = Path(__file__).resolve().parents[3]

PAGE = (ROOT / "docs" / "appendix" / "open-questions.md").read_text("utf-8")

SHOWN = dict(re.findall(r"\n    (.+)\n(?:.*\n)+?<!-- ([\w-]+): ", PAGE))
"""By command of the page the name of its results."""


@cache
def shown(name: str) -> dict[str, list[Row]]:
    """Return the rows that the page shows of an answer, by stem of the table they are from."""
    rows_of: dict[str, list[Row]] = {}
    for stem, text in re.findall(rf"<!-- {name}: ([\w-]+) -->\n\n?((?:\|.*\n)+)", PAGE):
        rows_of.setdefault(stem, []).extend(table_rows(text))
    return rows_of


def run(command: str, out: Path) -> None:
    """Run a command of the page; one that measures times measures them briefly."""
    program, *words = command.split()
    if program == "factormodels":
        # The page shows no times.
        invoke(*words, "settings.budget=0.001", "--out", str(out))
    else:
        asked = [sys.executable, str(ROOT / words[0]), *words[1:], "--out", str(out)]
        subprocess.run(asked, check=True, capture_output=True, cwd=ROOT)


@pytest.mark.nightly
@pytest.mark.parametrize("command", SHOWN)
def test_the_numbers_of_the_page_are_those_of_its_command(command: str, tmp_path: Path) -> None:
    run(command, tmp_path)
    stems = {path.stem for path in tmp_path.iterdir()}
    for path in tmp_path.glob("*.pdf"):
        # A figure that could go into a paper comes with its picture and its data.
        assert {f"{path.stem}.png", f"{path.stem}.csv"} <= {p.name for p in path.parent.iterdir()}
    assert list(tmp_path.glob("*.pdf"))
    for path in tmp_path.glob("*.tex"):
        shown_lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] != "%"]
        # What is beyond Latin-1 stops pdfTeX unless it is escaped.
        "".join(shown_lines).encode("latin-1")
    rows_by_stem = shown(SHOWN[command])
    assert rows_by_stem
    for stem, rows in rows_by_stem.items():
        assert stem in stems
        made = list(table_rows((tmp_path / f"{stem}.md").read_text("utf-8")))
        for row in rows:
            assert any(
                all(agree(text, other.get(title, "")) for title, text in row.items() if text)
                for other in made
            ), f"{command}, {stem}: no row of the run is like {row}"


def test_every_command_of_the_page_shows_numbers() -> None:
    assert {*SHOWN.values()} == {
        *("frontier", "i-bound", "does-it-matter", "encodings", "misspecification")
    }
    assert PAGE.count("\n    python notebooks/questions/") == 4


def test_cells_agree_to_the_last_digits() -> None:
    assert agree("1.4e-03 [1.0e-03, 2.0e-03]", "1.5e-03 [1.0e-03, 1.9e-03]")
    assert not agree("1.4e-03", "1.7e-03")
    assert not agree("1.4e-03", "1.4e-02")
    assert not agree("0.318", "0.321")
    assert not agree("exact", "upper")
    assert not agree("0.3", "0.3 [0.2, 0.4]")
