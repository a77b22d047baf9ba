"""The page of measurements: its commands are commands, and its tables are made of results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from experiments.bench.references import ReferenceComparison, write
from experiments.bench.results import FamilyResult, GraphResult, Measurement
from experiments.bench.runner_cost import RunnerCost
from experiments.bench.store import write_run
from experiments.cli.main import app
from factormodels.errors import InputError

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script that makes the tables."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import make_measurements

    yield make_measurements
    sys.modules.pop("make_measurements", None)


def page(kind: str, command: str) -> str:
    return (
        f"Before.\n\n<!-- measured: {kind} -->\n\n<!-- not run: slow -->\n"
        f"```sh\nfactormodels {command}\n```\n\n| a |\n| --- |\n| 1 |\n\nAfter.\n"
    )


def measurement(name: str, seconds: tuple[float, ...], peak: int | None = None) -> Measurement:
    rounds = tuple(range(len(seconds)))
    return Measurement(
        name,
        "exact",
        first_seconds=0.5,
        rounds=rounds,
        seconds=seconds,
        calls=(1,) * len(seconds),
        peak_bytes=peak,
    )


def test_every_table_is_below_a_command_of_ours(script: Any) -> None:
    group: Any = typer.main.get_command(app)
    tables = script.measured_tables(script.PAGE.read_text(encoding="utf-8"))
    assert {each.kind for each in tables} == set(script.KINDS)
    for each in tables:
        name, *arguments = each.command
        # The words are options of the command and their values fit.
        context = group.commands[name].make_context(name, arguments)
        assert context.params["out"] == each.results
    assert len({each.results for each in tables}) == len(tables)


def test_tables_are_made_of_the_results_that_there_are(script: Any, tmp_path: Path) -> None:
    graph = GraphResult(
        *("seed 0", "digest", 1, 4, 5, "exact", (1.0,) * 3),
        (
            measurement("exact", (1.0, 2.0, 4.0), 2**20),
            measurement("peer", (3.0, 6.0, 12.0), 3 * 2**20),
        ),
    )
    families = [FamilyResult("forest", "graphs", {"peer": "exact"}, (graph,))]
    (tmp_path / "bench").mkdir()
    write_run(families, {}, tmp_path / "bench", RunnerCost(30, 2, 1.5, 1.0, 2e-3))

    text = page("ratios", "bench forest --out bench")
    assert script.updated(text, tmp_path / "elsewhere") == text
    made = script.updated(text, tmp_path)
    assert made.startswith("Before.")
    assert made.endswith("\n\nAfter.\n")
    assert "| forest | `exact` | 2.00 s | -- | -- | -- |\n" in made
    # A ratio of 3 in every round.
    assert "| forest | `peer` | 6.00 s | `exact` | 3 | 3 to 3 |\n" in made
    assert "| 1 |" not in made

    made = script.updated(page("memory", "bench forest --memory --out bench"), tmp_path)
    assert "| forest | `peer` | 6.00 s | `exact` | 3 | 3 to 3 | 3 MiB |\n" in made
    made = script.updated(page("runner", "bench runner --out bench"), tmp_path)
    assert "| 30 | 2 | 1.50 s | 2.0 ms |\n" in made
    write_run(families, {}, tmp_path / "bench")
    with pytest.raises(InputError, match="no measurement of the runner"):
        script.updated(page("runner", "bench runner --out bench"), tmp_path)


def test_networks_stand_one_to_a_row_and_together_by_set(script: Any, tmp_path: Path) -> None:
    nan = float("nan")
    found = [
        ReferenceComparison("Grids_1.uai", "MAR", "exact", 9, "exact", 0.25, 3, 5e-7, 1e-7),
        ReferenceComparison(
            "Grids_1.uai", "PR", "exact", 9, "exact", 0.5, 3, 2e-6, nan, 0.01, "exact"
        ),
        ReferenceComparison(
            "Grids_2.uai", "PR", "exact", 16, "exact", 1.5, 4, 4e-6, nan, -0.03, "exact"
        ),
        ReferenceComparison("Grids_3.uai", "PR", "exact", 25, "refused", nan, None, nan),
    ]
    write(found, tmp_path / "references.json")
    made = script.updated(page("networks", "references u --out references.json"), tmp_path)
    assert "| Grids_1 | 9 | 3 | 0.25 | 5e-07 | 2e-06 |\n" in made
    assert "| Grids_2 | 16 | 4 | 1.5 | -- | 4e-06 |\n" in made
    made = script.updated(page("network-sets", "references u --out references.json"), tmp_path)
    row = "| Grids | 2 | `exact` | 2 | 0.000 | 5e-07 | 5e-07 | exact | -0.01 | -0.03 | 1 |\n"
    assert row in made
