"""Tables of commands as data: of each form of a table that commands write, the widest.

    python -m tests.experiments.findings.command_tables

runs commands on data with long names, and tests of commands that ask models, and keeps the tables
of their findings anew beside this file, their widest rows alone. As a plugin of pytest, which the
command loads, this module writes the tables of one process into the folder that COMMAND_TABLES
names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import experiments
from experiments.findings.findings import Findings
from experiments.findings.table import Table, blocks, is_right
from factormodels.datasets import load
from tests.experiments.findings.study_tables import plain

KEPT = Path(__file__).with_suffix(".json")

ROOT = Path(__file__).resolve().parents[3]

FOLDER = "COMMAND_TABLES"

RUN = (
    "tests/experiments/methods",
    "tests/experiments/evaluators",
    "tests/experiments/cli/test_all_commands.py",
)
"""Tests that make tables by commands."""

_LONGEST = 600
"""Characters of a cell beyond which a table is a test of long texts."""

Form = tuple[str, str, str]
"""The command, the name of a table, and its columns of texts."""

_widest: dict[Form, tuple[int, dict[str, Any]]] = {}
"""Tables of this process, where it runs tests, with their widths in characters."""


def kept_command_tables() -> list[dict[str, Any]]:
    """Kept tables: the command and name of each, and the table as `plain` makes it."""
    tables: list[dict[str, Any]] = json.loads(KEPT.read_text("utf-8"))
    return tables


def form_of(command: str, name: str, table: Table) -> Form:
    """Return what tells kept tables apart."""
    titles = (column.title for column in table.columns if not is_right(column))
    return command, name, " | ".join(titles)


def pytest_configure() -> None:
    """Note the tables of all findings from now on."""
    made = Findings.__init__

    @wraps(made)
    def noted(findings: Findings, *arguments: Any, **named: Any) -> None:
        made(findings, *arguments, **named)
        if findings.command and "differing" in named:
            for name, table in findings.tables.items():
                _note(findings.command, name, table)

    Findings.__init__ = noted  # type: ignore[method-assign, assignment]


def _note(command: str, name: str, table: Table) -> None:
    # Tables that `diff` reads of earlier findings have no captions.
    if not len(table) or len(table) > 5_000 or not table.columns or not table.caption:
        return
    cells = (row for _, part in blocks(table) for row in part)
    rows = [[column.title for column in table.columns]]
    rows += [[cell.text + cell.interval for cell in row] for row in cells]
    lengths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = " ".join([table.caption, table.notes, *(text for row in rows for text in row)])
    if max(lengths) > _LONGEST or "/tmp" in texts or not texts.isprintable():
        return
    form, width = form_of(command, name, table), sum(lengths) + len(table.notes)
    if width > _widest.get(form, (0, {}))[0]:
        _widest[form] = width, {"command": command, "name": name, **plain(table)}


def pytest_unconfigure() -> None:
    """Write the noted tables into the folder that the environment names."""
    path = Path(os.environ[FOLDER]) / f"{os.getpid()}.json"
    path.write_text(json.dumps([[*form, *noted] for form, noted in _widest.items()]), "utf-8")


MODELS = ("gpt-4o-2024-08-06", "meta-llama/Llama-3.1-70B-Instruct", "claude-3-5-haiku")


def claims_of_models() -> list[dict[str, Any]]:
    """Draw 120 claims of 20 responses with probabilities of three models, some of them 0."""
    generator = np.random.default_rng(0)
    return [
        {
            "model": model,
            "domain": ("people", "films")[at // 60],
            "response": at // 6,
            "claim": at,
            "position": at % 6,
            "p": 0.0 if at % 40 == 0 else p,
            "label": label < 0.5 or at % 40 == 0,
        }
        for at, (*each, label) in enumerate(generator.random((120, 1 + len(MODELS))))
        for model, p in zip(MODELS, each, strict=True)
    ]


def run_commands(folder: Path) -> None:
    """Call the functions of the front door that ask no model.

    Args:
        folder: an empty folder, for what they write.
    """
    claims = claims_of_models()
    quick: dict[str, Any] = {"n_bootstrap": 20, "resamples": 20}
    experiments.score(claims, recalibrate=["platt", "isotonic"], **quick)
    experiments.score(claims, by=["model", "domain"], **quick)
    first = [row for row in claims if row["model"] == MODELS[0]]
    experiments.score(first, **quick)
    few = [row | {"label": row["label"] if row["response"] % 2 else None} for row in first]
    experiments.estimate(few)
    experiments.estimate(few, quantities=["accuracy", "auroc", "ece", "quantile"])
    experiments.estimate(few, quantities=["ols", "logistic"], on=["position"])
    experiments.estimate(few, choose=3)
    experiments.keep(first[:90], first[90:], precision=0.5, confidence=0.6)
    graphs = list(load("factscore").graphs)
    experiments.fit(graphs[:12], penalty=30.0, folds=3, save=folder / "judge.json")
    experiments.apply(folder / "judge.json", graphs[12:16], n_bootstrap=20)
    experiments.coherence("demonstration")
    experiments.select("demonstration", domain="things")
    experiments.omissions("demonstration")
    experiments.infer("demonstration").save(folder / "before")
    experiments.infer("demonstration", encoding="conditional").save(folder / "after")
    experiments.diff(folder / "before", folder / "after")
    with chdir(folder):
        experiments.convert("demonstration", Path("demonstration.jsonl"))
    experiments.datasets()
    experiments.datasets("demonstration")
    for what in ("", "backends", "prompts", "studies", "formats", "schemas"):
        experiments.list_(what)
    experiments.list_("backends", "lbp")
    for variants in (["FR2"], ["FR1", "FR2"]):
        experiments.assess("demonstration", retriever="local", variant=variants)
    experiments.assess("demonstration", model="openai/NAME", dry_run=True)


def main() -> None:
    """Run commands and tests, and keep the tables that commands made in them."""
    widest: dict[Form, tuple[int, dict[str, Any]]] = {}
    with TemporaryDirectory() as noted, TemporaryDirectory() as made:
        environment = os.environ | {FOLDER: noted}
        plugin = ["-p", "tests.experiments.findings.command_tables"]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *plugin, *RUN]
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        if done.returncode:
            sys.exit(done.returncode)
        os.environ[FOLDER] = noted
        pytest_configure()
        run_commands(Path(made))
        pytest_unconfigure()
        for form, width, table in _noted(Path(noted)):
            if width > widest.get(form, (0, {}))[0]:
                widest[form] = width, table
    lines = (json.dumps(table, ensure_ascii=False) for _, (_, table) in sorted(widest.items()))
    KEPT.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


def _noted(folder: Path) -> Iterator[tuple[Form, int, dict[str, Any]]]:
    """Yield the tables that processes have noted in a folder."""
    for path in sorted(folder.iterdir()):
        for command, name, texts, width, table in json.loads(path.read_text("utf-8")):
            yield (command, name, texts), width, table


if __name__ == "__main__":
    main()
