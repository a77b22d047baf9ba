"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from experiments.cli.main import app
from factormodels import FactGraph, read
from inference import entries
from tests.pages import blocks, faults, run_command, run_page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]

README = (ROOT / "README.md").read_text(encoding="utf-8")

MOST_LINES = 250
"""A newcomer reads it to the end; the rest is in the guide."""

MOST_LINES_OF_A_BACKEND = 30


@dataclass(frozen=True)
class Page:
    """The README after it was run.

    Attributes:
        folder: where it ran.
        names: what its Python defined.
    """

    folder: Path
    names: dict[str, Any]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Every block of the README, run in order in an empty folder."""
    from inference import unregister

    folder = tmp_path_factory.mktemp("readme")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        try:
            yield Page(folder, run_page(ROOT / "README.md"))
        finally:
            sys.modules.pop("brute_force", None)
            if "brute-force" in entries():
                unregister("brute-force")


def commands() -> list[str]:
    shown = [
        command
        for block in blocks(README)
        if block.language == "sh" and not block.not_run
        for command in block.commands()
    ]
    return shown + re.findall(r"`(factormodels (?:run|draw) [^`]+)`", README)


def test_every_block_is_run_or_says_why_not() -> None:
    assert faults(README) == []
    assert len(README.splitlines()) <= MOST_LINES


def test_the_example_of_a_file_is_read(page: Page) -> None:
    graph = read(page.folder / "graph.json")
    assert isinstance(graph, FactGraph)
    assert [atom.label for atom in graph.atoms] == [True, False]
    assert len(graph.relations) == 2


def test_the_examples_in_python_run(page: Page) -> None:
    # By hand: the odds of a1 are 0.99 * 0.95 + 0.01 * 0.95 to 0.99 * 0.05 + 0.01 * 0.95, those of
    # a2 are 0.99 * 0.1 + 0.01 * 0.9 to 0.99 * 0.9 + 0.01 * 0.9.
    expected = [0.95 / (0.95 + 0.059), 0.108 / (0.108 + 0.9)]
    # A handful of roundings of doubles.
    assert page.names["p"] == pytest.approx(expected, abs=1e-12)
    for name in ("reliability.pdf", "reliability.png", "graph.svg"):
        assert (page.folder / name).stat().st_size > 1000


def test_the_examples_in_python_run_without_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = blocks(README)
    (graph,) = [block.code for block in shown if block.file == "graph.json"]
    (tmp_path / "graph.json").write_text(graph.replace(', "label": true', ""))
    code = next(block.code for block in shown if block.language == "python")
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["labels"] == [None, False]
    summary = names["summarise"](names["p"], names["labels"], ["bridge"] * 2)
    assert (summary.n_unlabelled, summary.brier) == (1, pytest.approx(names["p"][1] ** 2))
    assert (tmp_path / "reliability.pdf").exists()


def test_there_are_commands() -> None:
    verbs = {command.split()[1] for command in commands()}
    reading = {"infer", "draw", "convert", "backends", "datasets", "schema"}
    studies = {"run", "report", "diff"}
    assert verbs == {*reading, *studies, "assess", "fit", "select", "robustness", "costs"}


def test_the_commands_within_the_text_run(page: Page) -> None:
    for command in re.findall(r"`(factormodels (?:run|draw) [^`]+)`", README):
        again = " --overwrite" if command.split()[1] == "run" else ""
        run_command(command + again)
    assert (page.folder / "claims.png").stat().st_size > 1000


def test_the_study_writes_where_the_readme_says(page: Page) -> None:
    written = {path.suffix for path in (page.folder / "results" / "mine").iterdir()}
    assert {".parquet", ".csv", ".tex", ".json"} <= written


def test_what_is_learned_does_not_show_on_unseen_responses() -> None:
    (command,) = [command for command in commands() if command.startswith("factormodels fit ")]
    output = CliRunner().invoke(app, shlex.split(command)[1:], terminal_width=120).output
    scores = re.findall(r"^(?:Brier|log loss|-log P).*?(-[\d.]+) to (\+[\d.]+)$", output, re.M)
    assert len(scores) == 3, output
    (labelled,) = re.findall(r"(\d+) labelled\s+responses", README)
    assert f"in {labelled} responses" in output


def test_a_backend_takes_as_many_lines_as_is_said(page: Page) -> None:
    (code,) = [block.code for block in blocks(README) if block.file == "brute_force.py"]
    assert len(code.splitlines()) <= MOST_LINES_OF_A_BACKEND
    assert page.names["BruteForce"].__module__ == "brute_force"


def test_the_table_of_backends_is_that_of_the_registry() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|.*\| ([^|]+) \|$", README, re.M)
    listed = {name: (kind.strip(), extra.strip(" `")) for name, kind, extra in rows}
    packages = {"factormodels", "inference", "calibration", "experiments"}
    from inference.builtin import ENTRIES

    assert {name: row for name, row in listed.items() if name not in packages} == {
        entry.name: (entry.log_z_kind, entry.extra or "core") for entry in ENTRIES
    }


def test_the_picture_is_small() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size <= 150_000


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_within_the_repository_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert [t for t in targets if "://" not in t and not (ROOT / t).exists()] == []


def test_the_targets_and_extras_that_are_named_exist() -> None:
    pages = [README, *(path.read_text("utf-8") for path in (ROOT / "docs" / "guide").glob("*.md"))]
    text = "\n".join(pages)
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = set(re.findall(r"^make ([a-z]+)", text, re.M)) | set(
        re.findall(r"`make ([a-z]+)`", text)
    )
    assert {"run", "test", "install", "docs"} <= named <= targets
    setup = ConfigParser(delimiters=("=",))
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    (line,) = re.findall(r"# with an extra: (.+), or (\w+)$", README, re.M)
    listed = [name for name in line[0].split(", ") if name != "..."]
    assert {*listed, line[1]} <= set(extras)
