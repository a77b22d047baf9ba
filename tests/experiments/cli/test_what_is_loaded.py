"""Modules that commands load: a small graph needs no compiler, no frames and no model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.processes import run_python

HEAVY = (
    *("numba", "llvmlite", "scipy", "pandas", "pyarrow", "matplotlib", "sklearn", "statsmodels"),
    *("torch", "jax", "litellm", "httpx", "httpcore", "networkx", "openpyxl", "sqlite3", "jinja2"),
)

RUN = """
import contextlib, io, sys
from experiments.cli.main import command_line
for arguments in {commands!r}:
    with contextlib.redirect_stdout(io.StringIO()):
        assert command_line(arguments) == 0
    print(*sorted({heavy!r} & {{name.partition(".")[0] for name in sys.modules}}))
"""


def loaded(commands: list[list[str]]) -> list[list[str]]:
    """Heavy libraries that are loaded after each of several commands of one process."""
    output, _ = run_python(RUN.format(commands=commands, heavy=set(HEAVY)))
    return [line.split() for line in output.splitlines()]


@pytest.mark.slow
def test_inference_in_a_small_graph_and_an_assessment_by_words_load_nothing_heavy(
    graph_file: Path, network_file: Path, folder: Path
) -> None:
    responses = folder / "responses.jsonl"
    graph = json.loads(graph_file.read_text())
    responses.write_text("".join(json.dumps({**graph, "id": name}) + "\n" for name in "abc"))
    Path("answer.txt").write_text("The bridge opened in 1890. It is red.")
    Path("notes").mkdir()
    Path("notes/one.txt").write_text("The bridge, painted red, opened in 1890.")
    commands = [
        ["infer", str(graph_file)],
        ["infer", str(network_file), "--json"],
        ["infer", str(network_file), "--evidence", "0=1"],
        ["infer", str(graph_file), "--map"],
        ["infer", str(responses)],
        ["infer", str(graph_file), "--backend", "exact"],
        # What it loads comes after all that must load nothing.
        ["assess", f"{folder}/answer.txt", "--documents", f"{folder}/notes"],
    ]
    *inferring, assessing = loaded(commands)
    assert inferring == [[]] * 6
    assert not {"litellm", "torch", "jax", "httpx", "openai"} & {*assessing}


def test_a_table_is_read_and_scored_without_what_asks_models() -> None:
    modules = "sorted(name for name in sys.modules if name.startswith('factormodels.extraction.'))"
    output, _ = run_python(f"import sys, experiments.methods.score; print(*{modules})")
    rooms = {name.split(".")[2] for name in output.split()}
    # Sums of recorded costs, and claims that were merged.
    assert rooms <= {"language_model", "stages"}
    assert "factormodels.extraction.stages.relations" not in output.split()
