"""Two runs of the benchmark on the terminal: what changed beyond noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.bench.report import interval
from experiments.bench.store import StoredRun
from experiments.cli.console import heading
from experiments.paper.text import duration, plain_table

if TYPE_CHECKING:
    from rich.console import Console
from experiments.bench.compare import LEAST_CHANGE, LEVEL, BenchComparison


def show(console: Console, comparison: BenchComparison, old: StoredRun, new: StoredRun) -> None:
    """Print a comparison."""
    table = plain_table()
    for title in ("family", "algorithm"):
        table.add_column(title, no_wrap=True)
    for title in ("old", "new", "times faster", "interval"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for change in comparison.changes:
        table.add_row(
            change.family,
            change.algorithm,
            duration(change.old_seconds),
            duration(change.new_seconds),
            f"{change.ratio.value:.3g}",
            interval(change.ratio),
            change.verdict,
        )
    heading(console, f"{old.name} against {new.name}")
    if comparison.changes:
        console.print(table)
    for line in filter(None, [*comparison.answers, *comparison.left_out, comparison.runner]):
        console.print(line, soft_wrap=True)
    for name, (before, after) in comparison.packages.items():
        console.print(f"{name} was {before} and is {after}")
    if not comparison.changes:
        return
    beyond = [change for change in comparison.changes if change.verdict in ("faster", "slower")]
    console.print(
        f"{len(beyond)} of {len(comparison.changes)} times changed beyond noise: the intervals, "
        f"which hold together at {100 * LEVEL:.0f}%, exclude 1, and the ratio is beyond "
        f"{LEAST_CHANGE:g}. Times are relative to the yardstick of each run, which was "
        f"{comparison.speed:.3g} times faster in the new one.",
        soft_wrap=True,
    )
