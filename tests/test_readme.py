"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.cli import app
from factormodels import FactGraph, read
from inference import entries

ROOT = Path(__file__).resolve().parents[1]

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def commands() -> list[list[str]]:
    """Return the commands of the README without their comments, those of one block together."""
    shown = [
        [line.partition(" #")[0].strip() for line in block.splitlines()] for block in blocks("sh")
    ]
    ours = [[line for line in lines if line.startswith("factormodels ")] for lines in shown]
    inline = [[command] for command in re.findall(r"`(factormodels run [^`]+)`", README)]
    return [lines for lines in ours if lines] + inline


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README describes, as the current one."""
    (graph,) = blocks("json")
    (study,) = blocks("yaml")
    (tmp_path / "graph.json").write_text(graph, encoding="utf-8")
    (evidence,) = re.findall(r"`({\"[^`]+})`", README)
    (tmp_path / "evidence.json").write_text(evidence, encoding="utf-8")
    (tmp_path / "study.yaml").write_text(study, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_of_a_file_is_read(folder: Path) -> None:
    graph = read(folder / "graph.json")
    assert isinstance(graph, FactGraph)
    assert [atom.label for atom in graph.atoms] == [True, False]
    assert len(graph.relations) == 2


def test_the_examples_in_python_run(folder: Path) -> None:
    names: dict[str, object] = {}
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), names)
    p = names["p"]
    # By hand: the odds of a1 are 0.99 * 0.95 + 0.01 * 0.95 to 0.99 * 0.05 + 0.01 * 0.95, those of
    # a2 are 0.99 * 0.1 + 0.01 * 0.9 to 0.99 * 0.9 + 0.01 * 0.9.
    expected = [0.95 / (0.95 + 0.059), 0.108 / (0.108 + 0.9)]
    # A handful of roundings of doubles.
    assert p == pytest.approx(expected, abs=1e-12)
    for stem in ("graph", "reliability"):
        assert (folder / f"{stem}.pdf").stat().st_size > 1000


def test_there_are_commands() -> None:
    verbs = {command.split()[1] for lines in commands() for command in lines}
    reading = {"infer", "convert", "backends", "datasets"}
    assert verbs == {*reading, "assess", "fit", "run", "diff", "select", "robustness", "costs"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("lines", commands(), ids=lambda lines: lines[0])
def test_the_commands_run(lines: list[str]) -> None:
    for command in lines:
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, result.output


def test_the_study_writes_where_the_readme_says(folder: Path) -> None:
    result = CliRunner().invoke(app, ["run", "study.yaml"])
    assert result.exit_code == 0, result.output
    written = {path.suffix for path in (folder / "results" / "mine").iterdir()}
    assert {".parquet", ".csv", ".tex", ".json"} <= written


def test_what_is_learned_does_not_show_on_unseen_responses() -> None:
    every = [command for lines in commands() for command in lines]
    (command,) = [command for command in every if command.startswith("factormodels fit ")]
    output = CliRunner().invoke(app, shlex.split(command)[1:], terminal_width=120).output
    scores = re.findall(r"^(?:Brier|log loss|-log P).*?(-[\d.]+) to (\+[\d.]+)$", output, re.M)
    assert len(scores) == 3, output
    (labelled,) = re.findall(r"(\d+) labelled\s+responses", README)
    assert f"in {labelled} responses" in output


def test_the_table_of_backends_is_that_of_the_registry() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|.*\| ([^|]+) \|$", README, re.M)
    listed = {name: (kind.strip(), extra.strip(" `")) for name, kind, extra in rows}
    packages = {"factormodels", "inference", "calibration", "experiments"}
    assert {name: row for name, row in listed.items() if name not in packages} == {
        name: (entry.log_z_kind, entry.extra or "core") for name, entry in entries().items()
    }


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_within_the_repository_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert [t for t in targets if "://" not in t and not (ROOT / t).exists()] == []
