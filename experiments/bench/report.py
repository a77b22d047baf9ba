"""What a benchmark shows and writes: a table per family, and one JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.bench.algorithms import ALGORITHMS
from experiments.bench.families import select
from experiments.bench.timing import FamilyResult
from experiments.console import ABSENT, duration, heading, plain_table, small
from experiments.manifest import environment
from experiments.outputs import prepare_folder
from experiments.text_input import jsonable
from factormodels.io.files import write_text

if TYPE_CHECKING:
    from rich.console import Console

FILE = "bench.json"


def show(console: Console, result: FamilyResult) -> None:
    """Print the measurements of one family."""
    family = result.family
    table = plain_table()
    table.add_column("algorithm", no_wrap=True)
    for title in ("median", "min", "max", f"x {family.subject}", "interval", "max |Δp|"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, seconds in result.seconds.items():
        ratio = result.ratios.get(name)
        table.add_row(
            name,
            *(duration(float(value)) for value in _spread(seconds)),
            ABSENT if ratio is None else f"{ratio.median:.1f}",
            ABSENT if ratio is None else f"{ratio.lower:.1f} to {ratio.upper:.1f}",
            small(result.differences.get(name)),
        )
    heading(console, f"{family.name}: {family.summary}")
    console.print(table)
    for ratio in list(result.ratios.values())[:1]:
        console.print(
            f"{ratio.n_pairs} paired timings, graphs: {family.n_graphs}; interval of the median "
            f"ratio at {100 * ratio.level:.0f}%."
        )
    for name, reason in result.absent.items():
        console.print(f"{name} was not timed: {reason}.")
    console.print()


def show_families(console: Console) -> None:
    """Print the families and algorithms that there are."""
    heading(console, "families")
    table = plain_table()
    for title in ("family", "what it is", "compares"):
        table.add_column(title)
    for family in select(()):
        table.add_row(family.name, family.summary, ", ".join((family.subject, *family.peers)))
    console.print(table)
    console.print()
    heading(console, "algorithms")
    table = plain_table()
    for title in ("algorithm", "what its time holds"):
        table.add_column(title)
    for name, algorithm in ALGORITHMS.items():
        table.add_row(name, algorithm.summary)
    console.print(table)


def write(results: Sequence[FamilyResult], folder: Path) -> Path:
    """Write measurements and what they depend on as JSON and return the path.

    Raises:
        InputError: if the folder cannot be made or written.
    """
    prepare_folder(folder)
    document = {
        "format": "factormodels/bench",
        "version": 1,
        **environment(),
        "families": [_as_plain(result) for result in results],
    }
    path = folder / FILE
    write_text(path, json.dumps(jsonable(document), indent=2) + "\n")
    return path


def _as_plain(result: FamilyResult) -> dict[str, Any]:
    family = result.family
    return {
        "name": family.name,
        "summary": family.summary,
        "subject": family.subject,
        "variables": result.variables,
        "factors": result.factors,
        "seconds": result.seconds,
        "max_difference": result.differences,
        "ratios": {name: asdict(ratio) for name, ratio in result.ratios.items()},
        "absent": result.absent,
    }


def _spread(seconds: Any) -> tuple[float, float, float]:
    import numpy as np

    return float(np.median(seconds)), float(seconds.min()), float(seconds.max())
