"""The published numbers of experiments/README.md are those that its commands give."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from experiments.analyses.papers.readme_rows import HEADING, paper_studies, readme_rows
from tests.experiments.analyses.papers.conftest import run_study

pytestmark = pytest.mark.slow

README = Path(__file__).resolve().parents[4] / "experiments" / "README.md"
LINES = README.read_text(encoding="utf-8").splitlines()
WITHOUT_NUMBERS = {"papers/datasets"}


def rows_below(heading: str) -> list[str]:
    """Return the rows of the table with a heading."""
    start = LINES.index(heading) + 2
    end = next(n for n in range(start, len(LINES)) if not LINES[n].startswith("|"))
    return LINES[start:end]


def command_of(row: str) -> str:
    """Return the study that a row names."""
    (study,) = re.findall(r"`factormodels run (papers/[\w-]+)`", row)
    return str(study)


@pytest.mark.parametrize("study", sorted(set(paper_studies()) - WITHOUT_NUMBERS))
def test_a_study_of_the_papers_gives_its_rows(study: str, bare_folder: Path) -> None:
    results = run_study(study, bare_folder)
    published = results.artefacts.tables["published"].frame
    printed_rows = [row for row in rows_below(HEADING) if command_of(row) == study]
    # Decimals are those that hold on any machine: scores of seeded or exact computations.
    assert readme_rows(study, published) == printed_rows
    for path in (bare_folder / "out").glob("*.tex"):
        shown_lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] != "%"]
        # What is beyond Latin-1 stops pdfTeX unless it is escaped.
        "".join(shown_lines).encode("latin-1")
    manifest = json.loads((bare_folder / "out" / "manifest.json").read_text())
    if manifest["data"]:
        assert any(remark.startswith("Stand-in data") for remark in manifest["remarks"])
        for table in results.artefacts.tables.values():
            if table.caption.startswith(("FactReasoner", "Core", "FaStfact", "Self-Known")):
                assert "Stand-in" in table.caption or "as the paper prints it" in table.caption


def test_every_row_names_a_study() -> None:
    named = {command_of(row) for row in rows_below(HEADING)}
    assert named == set(paper_studies()) - WITHOUT_NUMBERS


def test_every_table_and_figure_of_the_papers_has_a_row() -> None:
    """Held against the list of what is asked for, not against what there is."""
    wanted = {
        "FactReasoner": ["1", "2", *map(str, range(3, 28)), "6 and 7", "6 and 8", "9", "10"],
        "Core": ["2", "4"],
        "FaStfact": ["1", "2", "7", "3", "4"],
        "Self-Known": ["1", "2c", "2d", "3", "4", "5", "6a", "6b"],
    }
    rows = rows_below(HEADING)
    for paper, numbers in wanted.items():
        found = {
            number
            for row in rows
            for number in re.findall(
                rf"^\| {paper}, (?:tables?|figures?) ([\w ]+?)(?:,[^|]*)?:", row
            )
        }
        assert set(numbers) - found == set(), paper
    assert any("C.2: Brier" in row for row in rows)


def test_rows_on_shared_data_are_those_of_their_commands(
    bare_folder: Path, shared_data: Path
) -> None:
    heading = "| source | printed | we get | command | why ours differs |"
    (bare_folder / "factormodels-data.yaml").write_text(
        f"""
datasets:
  factscore-labelled: {shared_data}/factscore_dev/ChatGPT.jsonl
  core-responses: {shared_data}/factscore_dev/ChatGPT.jsonl
  fastfact-bench: {shared_data}/factcheck_bench/factcheck-GPT-benchmark.jsonl
""",
        encoding="utf-8",
    )
    rows = [[cell.strip() for cell in row.split(" | ")] for row in rows_below(heading)]
    found: dict[str, dict[str, str]] = {}
    for study in {command_of(row[3]) for row in rows}:
        results = run_study(study, bare_folder)
        frame = results.artefacts.tables["published"].frame
        found[study] = dict(zip(frame["source"], frame["ours"], strict=True))
        assert results.artefacts.remarks[0].startswith("Data of factormodels-data.yaml")
    for source, _, ours, command, _ in rows:
        name = source.removeprefix("| ").removesuffix(", Factcheck-bench")
        assert found[command_of(command)][name] == ours
