"""Results kept in docs/results: as the pages of findings say, and of commands that there are."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.learned_potentials.methods import METHODS, cross_fit_task
from experiments.analyses.study import load_analysis
from experiments.study.reading import embedded_studies, read_raw
from factormodels import datasets
from tests.pages import agree, findings, table_rows

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[3] / "docs"

PAGE = findings()

PAPERS = ("core-padding",)
"""Studies of papers among them, whose numbers stand in the page's first tables."""

KEPT = sorted({path.name for path in (DOCS / "results").iterdir() if path.is_dir()} - set(PAPERS))


def command_of(name: str) -> str:
    """Return the line of a page with the command whose results are kept."""
    options = " --learned" if name == "learned-encodings" else ""
    script = "real_graphs" if options else name.replace("-", "_")
    assert (DOCS.parent / "notebooks" / "questions" / f"{script}.py").is_file()
    return f"    python notebooks/questions/{script}.py{options}\n"


@pytest.mark.parametrize("name", KEPT)
def test_the_page_shows_what_the_script_gave(name: str) -> None:
    assert command_of(name) in PAGE
    folder = DOCS / "results" / name
    shown = re.findall(rf"<!-- {name}: ([\w-]+) -->\n\n?((?:\|.*\n)+)", PAGE)
    assert shown
    for stem, text in shown:
        made = list(table_rows((folder / f"{stem}.md").read_text("utf-8")))
        for row in table_rows(text):
            asked = {title: cell for title, cell in row.items() if title != "where" and cell}
            assert any(
                all(agree(cell, other.get(title, "")) for title, cell in asked.items())
                for other in made
            ), f"{name}, {stem}: no kept row is like {row}"


@pytest.mark.parametrize("study", [f"papers/{name}" for name in PAPERS])
def test_kept_results_belong_to_the_current_study(study: str) -> None:
    folder = DOCS / "results" / study.partition("/")[2]
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert study in embedded_studies()
    assert same(manifest["config"], load_analysis(read_raw(study)).plain())


def same(kept: Any, now: Any) -> bool:
    """Say whether two configurations agree in every key that was there when the older was made.

    All but how wide its tables are set, which is `venue` now and says nothing of the numbers.
    """
    if isinstance(kept, dict):
        return isinstance(now, dict) and all(
            key in now and same(value, now[key]) for key, value in kept.items() if key != "width"
        )
    if isinstance(kept, list) and isinstance(now, list):
        return len(kept) == len(now) and all(map(same, kept, now))
    return bool(kept == now)


def text_of(section: str) -> str:
    """Return a section without tables, commands and pictures."""
    bare = re.sub(r"```.*?```|!\[.*?\]\(.*?\)|`[^`]*`", "", section, flags=re.DOTALL)
    return "\n".join(
        line for line in bare.splitlines() if not line.startswith(("|", "    ", "<!--"))
    )


def numbers_of(name: str) -> set[str]:
    """Return every number of a study's kept tables, at every length that a text may print."""
    texts = set()
    for path in (DOCS / "results" / name).glob("*.csv"):
        with path.open(encoding="utf-8") as file:
            for cell in (cell for row in csv.reader(file) for cell in row):
                if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell):
                    value = abs(float(cell))
                    texts |= {f"{value:.{digits}f}" for digits in range(5)}
                    texts |= {f"{100 * value:.{digits}f}%" for digits in range(2)}
    return texts


@pytest.mark.parametrize("name", KEPT)
def test_every_number_of_the_text_is_kept(name: str) -> None:
    command = command_of(name)
    (section,) = (part for part in re.split(r"\n(?=##+ )", PAGE) if command in part)
    # What is not of the study has a test of its own: an owner's file.
    other = r"(?s)irrelevant claims are counted too.*?supported"
    text = re.sub(other, "", text_of(section))
    # Whole numbers below a hundred tell of designs: i-bounds, thresholds, fifths.
    matches = re.findall(r"(?<![\w.])\d+\.\d+%?|\d+%|\d+,\d{3}", text)
    kept = numbers_of(name)
    assert matches
    assert not [number for number in matches if number.replace(",", "") not in kept]


def test_numbers_on_padding_are_in_the_kept_tables() -> None:
    with (DOCS / "results" / "core-padding" / "published.csv").open(encoding="utf-8") as file:
        ours = {row["source"]: row["ours"] for row in csv.DictReader(file)}
    rows = [line for line in PAGE.splitlines() if "`factormodels run papers/core-padding`" in line]
    assert len(rows) == 4
    for row in rows:
        source, _, value, *_ = (cell.strip() for cell in row.split("|")[1:-1])
        assert ours[source] == value
    paragraph = PAGE.partition("On real biographies, Core resists")[2].partition("\n\n")[0]
    matches = re.findall(r"\d\.\d{3}", paragraph)
    assert len(matches) > 10
    assert set(matches) <= numbers_of("core-padding")


def test_fast_methods_reproduce_the_kept_scores() -> None:
    with (DOCS / "results" / "learned-potentials" / "scores.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["data"] == "factscore"]
    kept = {row["method"]: row for row in rows}
    task = cross_fit_task(datasets.load("factscore").graphs, 5, 0)
    claims = task.table.labeled
    for method in ("default", "base rate", "Platt", "beta"):
        p = METHODS[method](task)[claims]
        brier = float(np.mean((p - task.table.labels[claims]) ** 2))
        assert float(kept[method]["brier"]) == pytest.approx(brier, abs=1e-6)


def test_every_question_has_its_time() -> None:
    section = PAGE.partition("## How long each study takes\n")[2].partition("\n##")[0]
    rows = list(table_rows(section))
    times = {row["study"].strip("`"): row["processor time"] for row in rows}
    assert len(times) == len(rows)
    scripts = {path.name for path in (DOCS.parent / "notebooks" / "questions").glob("*.py")}
    asked = {*embedded_studies(), *scripts, "real_graphs.py --learned"}
    assert set(times) <= asked
    assert scripts <= set(times)
    assert all(re.fullmatch(r"(\d+ min)?( ?\d+ s)?", each) and each for each in times.values())
