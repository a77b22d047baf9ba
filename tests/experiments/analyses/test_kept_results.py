"""Results kept in docs/results: of the studies as they are, and as docs/findings.md says."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analyses import learned_strengths
from experiments.analyses.study import load_analysis
from experiments.study.reading import embedded_studies, read_raw
from factormodels import datasets
from tests.experiments.analyses.test_open_questions import agree, table_rows

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[3] / "docs"

PAGE = (DOCS / "findings.md").read_text("utf-8")

KEPT = sorted(path.name for path in (DOCS / "results").iterdir())


@pytest.mark.parametrize("name", KEPT)
def test_the_page_shows_what_the_study_gave(name: str) -> None:
    assert f"    factormodels run ours/{name}\n" in PAGE
    folder = DOCS / "results" / name
    shown = re.findall(rf"<!-- ours/{name}: ([\w-]+) -->\n\n?((?:\|.*\n)+)", PAGE)
    assert shown
    for stem, text in shown:
        made = list(table_rows((folder / f"{stem}.md").read_text("utf-8")))
        for row in table_rows(text):
            asked = {title: cell for title, cell in row.items() if title != "where" and cell}
            assert any(
                all(agree(cell, other.get(title, "")) for title, cell in asked.items())
                for other in made
            ), f"{name}, {stem}: no kept row is like {row}"


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_of_the_study_as_it_is(name: str) -> None:
    manifest = json.loads((DOCS / "results" / name / "manifest.json").read_text("utf-8"))
    assert f"ours/{name}" in embedded_studies()
    loaded = load_analysis(read_raw(f"ours/{name}"))
    assert same(manifest["config"], loaded.plain())


def same(kept: Any, now: Any) -> bool:
    """Say whether two configurations agree in every key that was there when the older was made."""
    if isinstance(kept, dict):
        return isinstance(now, dict) and all(
            key in now and same(value, now[key]) for key, value in kept.items()
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


@pytest.mark.parametrize("name", KEPT)
def test_every_number_of_the_text_is_kept(name: str) -> None:
    command = f"    factormodels run ours/{name}\n"
    (section,) = (part for part in re.split(r"\n(?=##+ )", PAGE) if command in part)
    kept = set()
    for path in (DOCS / "results" / name).glob("*.csv"):
        with path.open(encoding="utf-8") as file:
            for cell in (cell for row in csv.reader(file) for cell in row):
                if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell):
                    value = abs(float(cell))
                    kept |= {f"{value:.{digits}f}" for digits in range(5)}
                    kept |= {f"{100 * value:.{digits}f}%" for digits in range(2)}
    # Numbers of an owner's file have a test beside it.
    text = re.sub(
        r"irrelevant claims are counted too.*?supported", "", text_of(section), flags=re.S
    )
    # Whole numbers below a hundred tell of designs: i-bounds, thresholds, fifths.
    found = re.findall(r"(?<![\w.])\d+\.\d+%?|\d+%|\d+,\d{3}", text)
    assert found
    assert not [number for number in found if number.replace(",", "") not in kept]


def test_what_needs_no_learning_is_found_again() -> None:
    with (DOCS / "results" / "learned-priors" / "scores.csv").open(encoding="utf-8") as file:
        kept = {row["method"]: row for row in csv.DictReader(file)}
    task = learned_strengths.problem(datasets.load("factscore").graphs, 5, 0, "factscore")
    for method in ("default", "base rate", "Platt", "beta"):
        p = learned_strengths.METHODS[method](task)
        brier = float(np.mean((p - task.atoms.labels) ** 2))
        assert float(kept[method]["brier"]) == pytest.approx(brier, abs=1e-6)
