"""Progress on standard error: units or responses, rate, remaining time, failures."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from experiments.findings.text import counted, duration
from experiments.progress import Finished, Watcher
from inference.warm_up import KERNELS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from experiments.evaluators.response import AssessedResponse
    from experiments.study.runner import Progress
    from factormodels.extraction.language_model.accounting import Ledger

LINE_SECONDS = 30.0
"""How often a log is told where a long run stands."""


@contextmanager
def run_progress(
    console: Console, study: str, left: int, kept: int
) -> Iterator[Callable[[Progress], None]]:
    """Show how far a run is while the block runs; yield what is to be called with finished units.

    Args:
        console: where to.
        study: name of the study.
        left: number of units to be run.
        kept: number of units that were finished before.
    """
    going_on = f", {kept:,} kept" if kept else ""
    loading_too = "; loading and compiling backends" if left else ""
    console.print(f"{study}: {counted(left, 'unit')}{going_on}{loading_too}")
    with ExitStack() as loading:
        # Closed with the first finished unit: until then it is loading that takes the time.
        loading.enter_context(announced(console))
        with unit_progress(console, left) as bar:

            def report(progress: Progress) -> None:
                loading.close()
                bar(progress)

            yield report


@contextmanager
def text_progress(
    console: Console, study: str, ledger: Ledger, total: int
) -> Iterator[Callable[[], None]]:
    """Show how far a run is with asking text models; yield what is to be called after each answer.

    Args:
        console: where to.
        study: name of the study.
        ledger: count of the language models' answers, shown as it grows.
        total: number of responses to be asked about, each for every variant and model.
    """
    console.print(f"{study}: asking about {counted(total, 'response')}")
    start = last = time.monotonic()
    done = 0

    with counted_progress(console, "responses", total, _answers(ledger)) as advance:

        def report() -> None:
            nonlocal last, done
            done += 1
            advance("")
            now = time.monotonic()
            if not console.is_terminal and now - last >= LINE_SECONDS and done < total:
                last = now
                remaining = duration((total - done) * (now - start) / done)
                said = ", ".join(filter(None, (_answers(ledger)(), f"{remaining} remaining")))
                console.print(f"{done:,} of {counted(total, 'response')}, {said}")

        yield report


def _answers(ledger: Ledger) -> Callable[[], str]:
    def text() -> str:
        # A copy: the ledger grows in another thread.
        usages = tuple(ledger.stages.values())
        calls, cached = sum(u.calls for u in usages), sum(u.cached for u in usages)
        failed = sum(u.failures for u in usages)
        told = f"{calls:,} calls, {cached:,} from the cache" if usages else ""
        return f"{told}, {failed:,} failed" if failed else told

    return text


@contextmanager
def unit_progress(console: Console, total: int) -> Iterator[Callable[[Progress], None]]:
    """Show a bar while the block runs; yield what is to be called with units that are finished.

    Outside a terminal no bar is drawn, so that a log holds no remains of it, but a line now and
    then.
    """
    if console.is_terminal:
        with _bar(console, total) as report:
            yield report
    else:
        yield _lines(console, total)


def _lines(console: Console, total: int) -> Callable[[Progress], None]:
    """What is to be called with finished units; prints a line every `LINE_SECONDS`."""
    start = last = time.monotonic()
    done = failed = 0

    def report(progress: Progress) -> None:
        nonlocal last, done, failed
        done += progress.n_units
        failed += len(progress.failures)
        now = time.monotonic()
        # The last line is left to the results.
        if now - last >= LINE_SECONDS and done < total:
            last = now
            rate = done / (now - start)
            console.print(
                f"{done:,} of {counted(total, 'unit')}, {rate:,.0f} a second, "
                f"{duration((total - done) / rate)} remaining, {failed:,} failed"
            )

    return report


@contextmanager
def _bar(console: Console, total: int) -> Iterator[Callable[[Progress], None]]:
    failures = 0
    with counted_progress(console, "units", total) as advance:

        def report(progress: Progress) -> None:
            nonlocal failures
            failures += len(progress.failures)
            advance(f"{failures} failed" if failures else "", progress.n_units)

        yield report


class Advance(Protocol):
    """What takes steps of a bar."""

    def __call__(self, text: str, steps: int = 1) -> None:
        """Take steps, and show `text` in red beside the bar."""
        ...


@contextmanager
def counted_progress(
    console: Console, what: str, total: int, within: Callable[[], str] | None = None
) -> Iterator[Advance]:
    """Show a bar while the block runs; yield what takes its steps.

    Outside a terminal nothing is drawn. `within` says what goes on between two steps; it is asked
    several times a second, from another thread.
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
            return Text("" if speed is None else f"{speed:,.{0 if speed >= 10 else 1}f} {what}/s")

    class WithinColumn(ProgressColumn):
        def render(self, _: Task) -> Text:
            return Text("" if within is None else within(), style="dim")

    with Bar(
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
    ) as bar:
        task = bar.add_task(what, total=total, failed="")

        def advance(text: str, steps: int = 1) -> None:
            bar.update(task, advance=steps, failed=text)

        yield advance


@contextmanager
def step_progress(console: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar of steps while the block runs; yield what is to be called after each."""
    with counted_progress(console, what, total) as advance:
        yield lambda: advance("")


@contextmanager
def response_progress(
    console: Console, total: int, ledger: Ledger
) -> Iterator[Callable[[AssessedResponse | None], None]]:
    """Show a bar while the block runs; yield what is to be called with every response.

    Args:
        console: where to draw.
        total: number of responses.
        ledger: count of the language model's answers, shown as it grows.
    """
    failed = missing = failures = 0

    with counted_progress(console, "responses", total, _answers(ledger)) as advance:

        def report(response: AssessedResponse | None) -> None:
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


class TerminalWatcher(Watcher):
    """Shows on a console what is done; outside a terminal only what a limit cut off.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show what is done while the block runs."""
        if not self._console.is_terminal:
            yield
            return
        with self._console.status("reading") as self._status:
            yield

    def step(self, text: str) -> None:
        """Show what is done next."""
        if self._status is not None:
            self._status.update(text)

    def notice(self, text: str) -> None:
        """Print what must be known at once."""
        self._console.print(text, soft_wrap=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Show nothing else while the block draws a bar."""
        if self._status is not None:
            self._status.stop()
        yield
        if self._status is not None:
            self._status.start()

    @contextmanager
    def steps(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar of steps."""
        with self._alone(), step_progress(self._console, what, total) as advance:
            yield advance

    @contextmanager
    def units(self, study: str, left: int, kept: int) -> Iterator[Finished]:
        """Show how far a study is."""
        with self._alone(), run_progress(self._console, study, left, kept) as report:
            yield report

    @contextmanager
    def texts(self, study: str, ledger: Ledger, total: int) -> Iterator[Callable[[], None]]:
        """Show how far a study is with asking text models."""
        with self._alone(), text_progress(self._console, study, ledger, total) as report:
            yield report

    @contextmanager
    def responses(self, total: int, ledger: Ledger) -> Iterator[Finished]:
        """Show a bar in the place of what is done."""
        with self._alone(), response_progress(self._console, total, ledger) as report:
            yield report

    def limit_reached(self, ledger: Ledger) -> None:
        """Show what was asked and paid."""
        show_ledger(self._console, ledger)


@contextmanager
def announced(console: Console) -> Iterator[None]:
    """Say in a terminal that kernels are compiled, if it takes long, and then how long it took.

    Elsewhere nothing is said: what a log holds does not depend on what was compiled before.
    """
    library = logging.getLogger(KERNELS)
    heard = _Compilations(console)
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
    """Adds up how long kernels are compiled.

    Attributes:
        seconds: so far; the compilation of what another kernel calls is part of the latter's.
    """

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._done: list[tuple[float, float]] = []

    @property
    def seconds(self) -> float:
        return sum(taken for _, taken in self._done)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            if self._console.is_terminal:
                self._console.print(record.getMessage())
            return
        taken = float(vars(record)["seconds"])
        start = record.created - taken
        self._done = [one for one in self._done if one[0] < start]
        self._done.append((start, taken))


def show_ledger(console: Console, ledger: Ledger) -> None:
    """Print what a run asked language models and paid, by stage; nothing if it asked nothing."""
    # Tables load scores, which not every command needs.
    from experiments.asking.ledger_table import ledger_table
    from experiments.findings.terminal import show

    if ledger.stages:
        show(console, ledger_table(ledger))
