"""Progress on standard error: units or responses, rate, remaining time, failures."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from experiments.findings.text import duration
from experiments.progress import Finished, Watcher
from factormodels.nouns import counted
from inference.warm_up import KERNELS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from experiments.evaluators.response import AssessedResponse
    from experiments.study.runner import Progress
    from factormodels.extraction.language_model.accounting import Ledger

LINE_SECONDS = 30.0
"""Seconds between progress messages of a long run in a log."""

_LEAST_SHARE = 0.01
"""Share of the work from which on a log estimates the remaining time."""


class TerminalWatcher(Watcher):
    """Show progress on a console, or as occasional lines in a log.

    Args:
        console: the console.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the current step while the block runs."""
        if not self._console.is_terminal:
            yield
            return
        with self._console.status("reading") as self._status:
            yield

    def step(self, text: str) -> None:
        """Show the next step."""
        if self._status is not None:
            self._status.update(text)

    def notice(self, text: str) -> None:
        """Print a notice at once."""
        self._console.print(text, soft_wrap=True)

    @contextmanager
    def steps(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar of steps."""
        with self._bar(what, total) as advance:
            yield lambda: advance("")

    @contextmanager
    def units(self, study: str, left: int, kept: int) -> Iterator[Finished]:
        """Show the progress of a study."""
        going_on = f", {kept:,} kept" if kept else ""
        loading_too = "; loading and compiling backends" if left else ""
        self._console.print(f"{study}: {counted(left, 'unit')}{going_on}{loading_too}")
        failed = 0
        with ExitStack() as loading:
            # Closed with the first finished unit: until then it is loading that takes the time.
            loading.enter_context(announced(self._console))
            with self._bar("units", left, logged=True) as advance:

                def report(progress: Progress) -> None:
                    nonlocal failed
                    loading.close()
                    failed += len(progress.failures)
                    advance(f"{failed:,} failed" if failed else "", progress.n_units)

                yield report

    @contextmanager
    def texts(self, study: str, ledger: Ledger, total: int) -> Iterator[Callable[[], None]]:
        """Show the progress of a study's text models."""
        self._console.print(f"{study}: asking about {counted(total, 'response')}")
        with self._bar("responses", total, _answers(ledger), logged=True) as advance:
            yield lambda: advance("")

    @contextmanager
    def responses(self, total: int, ledger: Ledger) -> Iterator[Finished]:
        """Show a bar instead of the current step."""
        failed = missing = failures = 0
        with self._bar("responses", total, _answers(ledger)) as advance:

            def report(response: AssessedResponse | None) -> None:
                nonlocal failed, missing, failures
                failed += response is None
                if response is not None:
                    missing += response.missing
                    failures += response.failures
                counts = (
                    (failed, f"{failed:,} failed"),
                    (missing, f"{counted(missing, 'relation')} missing"),
                    (failures, f"{counted(failures, 'failure')} in stages"),
                )
                advance(", ".join(words for count, words in counts if count))

            yield report

    def limit_reached(self, ledger: Ledger) -> None:
        """Print calls and costs by stage; nothing if nothing was asked."""
        # Imported here, since tables load scores, which not every command needs.
        from experiments.asking.ledger_table import ledger_table
        from experiments.findings.terminal import show

        if ledger.stages:
            show(self._console, ledger_table(ledger))

    @contextmanager
    def _bar(
        self, what: str, total: int, within: Callable[[], str] = str, *, logged: bool = False
    ) -> Iterator[Advance]:
        """Show only a bar while the block runs; yield the function that advances it.

        Outside a terminal no bar is drawn. If `logged` is true, a line is written every
        `LINE_SECONDS` instead. `within` describes the work between two steps; it is called several
        times a second, from another thread.
        """
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            ProgressColumn,
            Task,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar
        from rich.text import Text

        class RateColumn(ProgressColumn):
            def render(self, task: Task) -> Text:
                speed = task.finished_speed or task.speed
                shown = "" if speed is None else f"{speed:,.{0 if speed >= 10 else 1}f} {what}/s"
                return Text(shown)

        class WithinColumn(ProgressColumn):
            def render(self, _: Task) -> Text:
                return Text(within(), style="dim")

        in_terminal = self._console.is_terminal
        bar = Bar(
            *(TextColumn(what), BarColumn(), MofNCompleteColumn(), RateColumn()),
            *(TextColumn("remaining"), TimeRemainingColumn(), WithinColumn()),
            TextColumn("{task.fields[failed]}", style="red"),
            console=self._console,
            disable=not in_terminal,
        )
        start = last = time.monotonic()
        done = 0

        def advance(text: str, steps: int = 1) -> None:
            nonlocal last, done
            done += steps
            bar.update(task, advance=steps, failed=text)
            now = time.monotonic()
            # The last line is left to the results.
            if logged and not in_terminal and now - last >= LINE_SECONDS and done < total:
                last, rate = now, done / (now - start)
                progress = (
                    f"{done:,} of {counted(total, what.removesuffix('s'))}, {rate:,.1f} a second"
                )
                # The first steps take loading and compiling with them.
                known = done >= _LEAST_SHARE * total
                remaining = f"{duration((total - done) / rate)} remaining" if known else ""
                self.notice(", ".join(filter(None, (progress, remaining, within(), text))))

        if self._status is not None:
            self._status.stop()
        with bar:
            task = bar.add_task(what, total=total, failed="")
            yield advance
        if self._status is not None:
            self._status.start()


class Advance(Protocol):
    """Function that advances a progress bar."""

    def __call__(self, text: str, steps: int = 1) -> None:
        """Take steps, and show `text` in red beside the bar."""
        ...


def _answers(ledger: Ledger) -> Callable[[], str]:
    def text() -> str:
        # A copy: the ledger grows in another thread.
        usages = tuple(ledger.stages.values())
        calls, cached = sum(u.calls for u in usages), sum(u.cached for u in usages)
        failed = sum(u.failures for u in usages)
        summary = f"{counted(calls, 'call')}, {cached:,} from the cache" if usages else ""
        return f"{summary}, {failed:,} failed" if failed else summary

    return text


@contextmanager
def announced(console: Console, step: Callable[[str], None] | None = None) -> Iterator[None]:
    """Announce long compilations of kernels in a terminal, and report their time.

    Outside a terminal it prints nothing, so that logs do not depend on earlier compilation.

    Args:
        console: the console.
        step: called with the progress of an announced compilation.
    """
    library = logging.getLogger(KERNELS)
    heard = _Compilations(console, step)
    level, propagates = library.level, library.propagate
    library.addHandler(heard)
    library.setLevel(logging.INFO)
    library.propagate = False
    try:
        yield
    finally:
        library.removeHandler(heard)
        library.setLevel(level)
        library.propagate = propagates
        if console.is_terminal and heard.seconds >= _WORTH_SAYING:
            console.print(
                f"compiled kernels in {duration(heard.seconds)}: they are kept, and later runs "
                "start at once"
            )


_WORTH_SAYING = 1.0


class _Compilations(logging.Handler):
    """Log handler that adds up compilation times of kernels.

    Attributes:
        seconds: so far; the compilation of what another kernel calls is part of the latter's.
    """

    def __init__(self, console: Console, step: Callable[[str], None] | None) -> None:
        super().__init__()
        self._console = console
        self._step = step
        self._is_announced = False
        self._kernels = 0
        self._done: list[tuple[float, float]] = []

    @property
    def seconds(self) -> float:
        return sum(taken for _, taken in self._done)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self._is_announced = True
            if self._console.is_terminal:
                self._console.print(record.getMessage())
            return
        taken = float(vars(record)["seconds"])
        start = record.created - taken
        self._done = [step for step in self._done if step[0] < start]
        self._done.append((start, taken))
        self._kernels += 1
        if self._is_announced and self._step is not None:
            compiled = counted(self._kernels, "kernel")
            self._step(f"compiled {compiled} in {duration(self.seconds)} so far")
