"""Progress of a run on standard error: units, rate, remaining time, failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from experiments.rows import FAILED
from experiments.runner import UnitResult

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def unit_progress(console: Console, total: int) -> Iterator[Callable[[UnitResult], None]]:
    """Show a bar while the block runs; yield what is to be called with every finished unit.

    Outside a terminal nothing is drawn, so that a log holds no remains of a bar.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} units/s")

    failures = 0
    with Progress(
        TextColumn("units"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}", style="red"),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("units", total=total, failed="")

        def report(result: UnitResult) -> None:
            nonlocal failures
            failures += result.status == FAILED
            text = f"{failures} failed" if failures else ""
            progress.update(task, advance=1, failed=text)

        yield report
