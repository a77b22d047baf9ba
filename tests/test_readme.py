"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from factormodels import FactGraph, read
from inference import entries
from tests.pages import blocks, faults, run_command, run_page

pytestmark = [pytest.mark.slow, pytest.mark.longest]

ROOT = Path(__file__).resolve().parents[1]

README = (ROOT / "README.md").read_text(encoding="utf-8")


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


def test_every_block_is_run_or_says_why_not() -> None:
    assert faults(README) == []


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
    assert page.names["p"].tolist() == pytest.approx(expected, abs=1e-12)
    marginals = page.names["posterior"].marginals
    assert [marginals[name][1] for name in ("a1", "a2")] == pytest.approx(expected, abs=1e-12)
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
    assert names["labels"].isna().tolist() == [True, False]
    assert not names["labels"][1]
    scores = names["score"](names["p"], names["labels"], names["claims"]["response"])
    assert scores.models[0].n_unlabeled == 1
    assert scores["brier"].value == pytest.approx(names["p"][1] ** 2)
    assert (tmp_path / "reliability.pdf").exists()


def test_the_commands_within_the_text_run(page: Page) -> None:
    for command in re.findall(r"`(factormodels (?:run|draw) [^`]+)`", README):
        again = " --overwrite" if command.split()[1] == "run" else ""
        run_command(command + again)
    assert (page.folder / "claims.png").stat().st_size > 1000


def test_the_study_writes_where_the_readme_says(page: Page) -> None:
    written = {path.suffix for path in (page.folder / "results" / "mine").iterdir()}
    assert {".parquet", ".csv", ".tex", ".json"} <= written


def test_the_backend_of_the_readme_is_a_module_of_its_own(page: Page) -> None:
    assert page.names["BruteForce"].__module__ == "brute_force"


def test_the_table_of_backends_is_that_of_the_registry() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|.*\| ([^|]+) \|$", README, re.M)
    listed = {name: (kind.strip(), extra.strip(" `")) for name, kind, extra in rows}
    packages = {"factormodels", "inference", "calibration", "experiments"}
    from inference.builtin_backends import ENTRIES

    assert {name: row for name, row in listed.items() if name not in packages} == {
        entry.name: (entry.log_z_kind, entry.extra or "core") for entry in ENTRIES
    }


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "experiments/README.md"]
)
def test_links_within_the_repository_lead_somewhere(name: str) -> None:
    path = ROOT / name
    targets = re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8"))
    assert [t for t in targets if "://" not in t and not (path.parent / t).exists()] == []
