"""Progress on standard error: units or responses, rate, remaining time, failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from experiments.assessment import Judged
from experiments.rows import FAILED
from experiments.runner import UnitResult
from factormodels.extraction.accounting import Ledger

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def unit_progress(console: Console, total: int) -> Iterator[Callable[[UnitResult], None]]:
    """Show a bar while the block runs; yield what is to be called with every finished unit.

    Outside a terminal nothing is drawn, so that a log holds no remains of a bar.
    """
    failures = 0
    with counted_progress(console, "units", total) as advance:

        def report(result: UnitResult) -> None:
            nonlocal failures
            failures += result.status == FAILED
            advance(f"{failures} failed" if failures else "")

        yield report


@contextmanager
def counted_progress(
    console: Console, what: str, total: int, within: Callable[[], str] | None = None
) -> Iterator[Callable[[str], None]]:
    """Show a bar while the block runs; yield what takes a step, with what to say in red beside it.

    Outside a terminal nothing is drawn. `within` says what goes on between two steps; it is asked
    several times a second, from another thread.
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
            return Text("" if speed is None else f"{speed:,.{0 if speed >= 10 else 1}f} {what}/s")

    class WithinColumn(ProgressColumn):
        def render(self, _: Task) -> Text:
            return Text("" if within is None else within(), style="dim")

    with Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
        WithinColumn(),
        TextColumn("{task.fields[failed]}", style="red"),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(what, total=total, failed="")

        def advance(text: str) -> None:
            progress.update(task, advance=1, failed=text)

        yield advance


@contextmanager
def response_progress(
    console: Console, total: int, ledger: Ledger
) -> Iterator[Callable[[Judged | None], None]]:
    """Show a bar while the block runs; yield what is to be called with every response.

    Args:
        console: where to draw.
        total: number of responses.
        ledger: count of the language model's answers, shown as it grows.
    """
    failed = missing = failures = 0

    def answers() -> str:
        # A copy: the ledger grows in another thread.
        usages = tuple(ledger.stages.values())
        calls, cached = sum(u.calls for u in usages), sum(u.cached for u in usages)
        return f"{calls:,} calls, {cached:,} from the cache" if usages else ""

    with counted_progress(console, "responses", total, answers) as advance:

        def report(response: Judged | None) -> None:
            nonlocal failed, missing, failures
            failed += response is None
            if response is not None:
                missing += response.missing
                failures += response.failures
            counts = (
                (failed, "failed"),
                (missing, "relations missing"),
                (failures, "failures in stages"),
            )
            advance(", ".join(f"{count:,} {what}" for count, what in counts if count))

        yield report
