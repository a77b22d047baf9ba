"""The numbers that docs/open-questions.md shows are those of its commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from experiments.study.reading import embedded_studies
from tests.experiments.conftest import invoke

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "open-questions.md").read_text("utf-8")

KEPT = {
    "learned-encodings",
    "learned-potentials",
    "real-graphs",
    "core-on-biographies",
    "relation-transfer",
    "sigma-on-labels",
    "few-labels",
    "few-calls",
    "kept-claims",
    "claim-coherence",
    "claims-relations",
}
"""Studies that docs/findings.md shows, from results that are kept: most take minutes."""

STUDIES = sorted(
    name
    for name in embedded_studies()
    if name.startswith("ours/") and name.removeprefix("ours/") not in KEPT
)

BRIEF = {"ours/frontier": ("settings.budget=0.001",)}
"""How a study that measures times measures them briefly: the page shows none of them."""

SMALL = {
    "ours/frontier": (
        *("settings.graphs=1", "settings.rounds=1", "settings.budget=0.001"),
        "settings.backends=[exact, lbp]",
    ),
    "ours/does-it-matter": ("settings.datasets=[{name: demonstration}]",),
    "ours/i-bound": ("settings.graphs=1", "settings.i_bounds=[1, 4]"),
}
"""Slow studies with settings of little work; at full size they run at night."""

Row = dict[str, str]


def table_rows(text: str) -> Iterator[Row]:
    """Yield the rows of the Markdown tables of a text, the heading above each under "where"."""
    block, titles = "", list[str]()
    for line in text.splitlines():
        if line.startswith("## "):
            block = line[3:]
        cells = [cell.strip().strip("*") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            titles = []
        elif not titles:
            titles = cells
        elif not set(cells[0]) <= set("-: "):
            yield {"where": block, **dict(zip(titles, cells, strict=True))}


@cache
def shown(study: str) -> dict[str, list[Row]]:
    """Return the rows that the page shows of a study, by stem of the table they are from."""
    found: dict[str, list[Row]] = {}
    for stem, text in re.findall(rf"<!-- {study}: ([\w-]+) -->\n\n?((?:\|.*\n)+)", PAGE):
        found.setdefault(stem, []).extend(table_rows(text))
    return found


def numbers(text: str) -> tuple[str, list[str]]:
    """Return a text without its numbers, and these."""
    pattern = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
    return re.sub(pattern, "#", text), re.findall(pattern, text)


def agree(printed: str, found: str) -> bool:
    """Say whether two cells are alike, numbers within two units of the last digit.

    Mathematical libraries of two machines differ in the last bits, which a search or a sampler
    carries into the last digit that is shown, seldom further.
    """
    (words, values), (other_words, others) = numbers(printed), numbers(found)
    if words != other_words:
        return False
    for value, other in zip(values, others, strict=True):
        mantissa, _, exponent = value.partition("e")
        digits = len(mantissa.partition(".")[2])
        unit = 10.0 ** (int(exponent or 0) - digits)
        if abs(float(value) - float(other)) > 2.001 * unit:
            return False
    return True


@pytest.mark.parametrize(
    "study",
    [
        pytest.param(study, marks=pytest.mark.nightly) if study in SMALL else study
        for study in STUDIES
    ],
)
def test_the_numbers_of_the_page_are_those_of_its_command(study: str, folder: Path) -> None:
    assert f"    factormodels run {study}\n" in PAGE
    invoke("run", study, *BRIEF.get(study, ()), "--out", "out")
    stems = {path.stem for path in (folder / "out").iterdir()}
    for path in (folder / "out").glob("*.pdf"):
        # A figure that could go into a paper comes with its picture and its data.
        assert {f"{path.stem}.png", f"{path.stem}.csv"} <= {p.name for p in path.parent.iterdir()}
    assert list((folder / "out").glob("*.pdf"))
    for path in (folder / "out").glob("*.tex"):
        shown_lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] != "%"]
        # What is beyond Latin-1 stops pdfTeX unless it is escaped.
        "".join(shown_lines).encode("latin-1")
    assert shown(study), f"the page shows no numbers of {study}"
    for stem, rows in shown(study).items():
        assert stem in stems
        made = list(table_rows((folder / "out" / f"{stem}.md").read_text("utf-8")))
        for row in rows:
            assert any(
                all(agree(text, other.get(title, "")) for title, text in row.items() if text)
                for other in made
            ), f"{study}, {stem}: no row of the run is like {row}"


@pytest.mark.parametrize("study", SMALL)
def test_a_slow_study_in_small_writes_the_columns_of_the_page(study: str, folder: Path) -> None:
    invoke("run", study, *SMALL[study], "--out", "out")
    for stem, rows in shown(study).items():
        made = list(table_rows((folder / "out" / f"{stem}.md").read_text("utf-8")))
        assert made
        titles = {title for row in made for title in row}
        assert {title for row in rows for title in row} <= titles


def test_cells_agree_to_the_last_digits() -> None:
    assert agree("1.4e-03 [1.0e-03, 2.0e-03]", "1.5e-03 [1.0e-03, 1.9e-03]")
    assert not agree("1.4e-03", "1.7e-03")
    assert not agree("1.4e-03", "1.4e-02")
    assert not agree("0.318", "0.321")
    assert not agree("exact", "upper")
    assert not agree("0.3", "0.3 [0.2, 0.4]")
