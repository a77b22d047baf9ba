"""Small models as files, and ways to call the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments.settings import found_by
from factormodels.io.source.files import write_text
from tests.commands import Called, called, without_probe

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

EXAMPLE = {
    "id": "figure-1",
    "nodes": [
        {"id": "a1", "type": "atom", "probability": 0.5, "text": "A claim.", "label": False},
        {"id": "c1", "type": "context", "probability": 0.99, "text": "For it."},
        {"id": "c2", "type": "context", "probability": 0.99, "text": "Against it."},
    ],
    "edges": [
        {"source": "c1", "target": "a1", "relation": "entailment", "probability": 0.8},
        {"source": "c2", "target": "a1", "relation": "contradiction", "probability": 0.9},
    ],
}
"""Figure 1 of the FactReasoner paper; the posterior of a1 is 48/151 under implication."""

CHAIN_UAI = """MARKOV
3
2 3 2
3
1 0
2 0 1
2 1 2

2 0.4 0.6
6 0.1 0.2 0.7 0.5 0.25 0.25
6 0.9 0.1 0.5 0.5 0.2 0.8
"""


@pytest.fixture(autouse=True)
def captions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which a command makes a table without a caption."""
    without: set[str] = set()

    def checked(*given: Any, **named: Any) -> Any:
        findings = found_by(*given, **named)
        names = [name for name, table in findings.tables.items() if not table.caption]
        without.update(f"{findings.command}: {name}" for name in names)
        return findings

    for module in ("experiments.settings", "experiments.cli.front"):
        monkeypatch.setattr(f"{module}.found_by", checked)
    yield
    assert not without, "tables without a caption"


def study_file(folder: Path, text: str) -> Path:
    """Write a study as `study.yaml` in `folder`."""
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium that is installed on this machine."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("there is no Chromium; install the package chromium of your system")
    with sync_playwright() as playwright:
        # Without its sandbox, which a user who is root cannot have: the pages are our own.
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write figures as empty files, where a test reads none.

    Figures are made all the same; most of the time that they take is for drawing them.
    """

    def written(
        _: Any, base: Any, formats: Sequence[str] = ("pdf", "png"), **__: Any
    ) -> tuple[Path, ...]:
        paths = tuple(Path(f"{base}.{suffix}") for suffix in formats)
        for path in paths:
            write_text(path, "")
        return paths

    monkeypatch.setattr("calibration.figures.save_figure", written)


@pytest.fixture
def undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write pages with empty drawings too, where a test reads neither files nor drawings."""
    request.getfixturevalue("unsaved")
    for module in ("experiments.findings.page", "experiments.pages.study_page"):
        monkeypatch.setattr(f"{module}.inline_svg", lambda *_: "<svg></svg>")


@pytest.fixture
def without_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `fit` learn no baselines of columns, whose search takes most of its time in folds.

    The base rate takes their names. test_fit_and_apply.py has those of the command, and
    tests/calibration/learned_potentials/test_field.py what they learn.
    """
    from calibration.learned_potentials.methods import base_rate

    for name in ("boosted_trees", "logistic"):
        monkeypatch.setattr(f"experiments.methods.fit.{name}", base_rate)


@contextmanager
def cluster_here(n_workers: int, *, processes: bool = False) -> Iterator[str]:
    """The address of a Dask scheduler, whose workers are in this process, reached like any other.

    Or they are processes, as in tests/experiments/study/test_dask.py.
    """
    distributed: Any = import_module("distributed")
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=processes,
        protocol="tcp",
        dashboard_address=":0",
        silence_logs=50,
    ) as running:
        yield running.scheduler_address


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, as the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


KEY = "sk-scripted-0123456789"
"""The key of a provider, which no file and no message may hold."""


@pytest.fixture
def keyed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, as the current one, and the key of a provider in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return folder


def write_batch(
    folder: Path,
    responses: Mapping[str, str] | Sequence[str],
    notes: Mapping[str, str],
    **more: str,
) -> None:
    """Write batch.jsonl, a response a line, and the documents of a folder `notes`.

    Args:
        folder: where to.
        responses: texts by id; without ids these are r0, r1 and so on.
        notes: texts by the names of their files.
        more: further columns, the same of every response.
    """
    if not isinstance(responses, Mapping):
        responses = {f"r{number}": text for number, text in enumerate(responses)}
    lines = [json.dumps({"id": id_, **more, "response": text}) for id_, text in responses.items()]
    (folder / "batch.jsonl").write_text("\n".join(lines))
    (folder / "notes").mkdir()
    for name, text in notes.items():
        (folder / "notes" / name).write_text(text)


@pytest.fixture
def graph_file(folder: Path) -> Path:
    """`graph.json` in the current folder: figure 1 of the paper."""
    path = folder / "graph.json"
    path.write_text(json.dumps(EXAMPLE), encoding="utf-8")
    return path


@pytest.fixture
def network_file(folder: Path) -> Path:
    """`chain.uai` in the current folder: three unnamed variables with 2, 3 and 2 states."""
    path = folder / "chain.uai"
    path.write_text(CHAIN_UAI, encoding="utf-8")
    return path


def invoke(*arguments: object, code: int = 0, **options: str) -> Called:
    """Call the command line in this process, which ends with `code`; with 2, with one sentence."""
    result = called(*map(str, arguments), **options)
    assert result.exit_code == code, result.output
    if code == 2:
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        assert result.stderr.splitlines()[-1].startswith("factormodels: ")
    return result


def call(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Call the command line as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "experiments", *without_probe([*map(str, arguments)])],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
        **options,
    )


def begin(
    folder: Path, *arguments: str, stdout: int = subprocess.DEVNULL, **variables: str
) -> subprocess.Popen[str]:
    """Begin a command in a folder, as a process of its own, which may be watched and killed.

    Args:
        folder: its current folder.
        arguments: the command.
        stdout: where what it writes and its errors go.
        variables: of its environment.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "experiments", *without_probe(arguments)],
        cwd=folder,
        env=environment() | {"PYTHONDONTWRITEBYTECODE": "1", **variables},
        stdout=stdout,
        stderr=subprocess.STDOUT if stdout == subprocess.PIPE else stdout,
        text=True,
    )


def environment() -> dict[str, str]:
    import os

    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}


@pytest.fixture(autouse=True)
def _no_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a parallel run set the width of a terminal that nobody looks at."""
    monkeypatch.delenv("COLUMNS", raising=False)
