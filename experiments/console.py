"""The terminal: consoles, warnings shown once each, and numbers as tables show them."""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ABSENT = "--"
"""What a table shows where a number is undefined."""

ANY_WIDTH = 10_000
"""A width that no table reaches, to measure one as wide as it likes to be."""

_PIPE_WIDTH = 4000
_PACKAGES = ("factormodels", "inference", "calibration", "experiments")


def output() -> Console:
    """Return a console on standard output.

    In a terminal it has the terminal's width; in a pipe or a file lines keep their natural length,
    so that nothing is cut or wrapped for the next program.
    """
    return _console(stderr=False)


def messages() -> Console:
    """Return a console on standard error, for progress and remarks."""
    return _console(stderr=True)


def heading(console: Console, text: str) -> None:
    """Print the heading of a table, never wrapped to the width of the table below."""
    console.print(text, style="bold", soft_wrap=True)


def plain_table() -> Table:
    """Return an empty table in the one style of this command line."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
    )


def show_table(console: Console, table: Table) -> None:
    """Print a table; where the width is short, columns that may not wrap keep all of their text.

    A column with a ratio takes what the others leave, where there is a width to share.
    """
    from rich.cells import cell_len

    for column in table.columns:
        if column.no_wrap and column.ratio is None:
            texts = (str(text) for text in (column.header, *column.cells))
            column.min_width = max(map(cell_len, texts))
    if any(column.ratio for column in table.columns):
        natural = console.measure(table, options=console.options.update(max_width=ANY_WIDTH))
        table.expand = console.is_terminal or natural.maximum > console.width
    console.print(table)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, "1 unit" or "2,000 units"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number(value: float | None, digits: int = 3) -> str:
    """Return `value` with a fixed number of decimals, or `ABSENT` if it is None or NaN."""
    if value is None or math.isnan(value):
        return ABSENT
    return f"{value:z.{digits}f}"  # z: what rounds to nothing has no sign


def small(value: float | None) -> str:
    """Return a difference in scientific notation with one decimal; zero as "0"."""
    if value is None or math.isnan(value):
        return ABSENT
    return "0" if value == 0 else f"{value:.0e}"


def interval(lower: float | None, upper: float | None, digits: int = 3) -> str:
    """Return an interval with a fixed number of decimals, or `ABSENT` if it has no ends."""
    ends = (number(lower, digits), number(upper, digits))
    return ABSENT if ends == (ABSENT, ABSENT) else f"[{ends[0]}, {ends[1]}]"


def duration(seconds: float | None) -> str:
    """Return a duration with a unit that suits it."""
    if seconds is None or math.isnan(seconds):
        return ABSENT
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 120:
        return f"{seconds:.2f} s"
    return f"{seconds / 60:.1f} min"


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Show the project's warnings on standard error, each text once, while the block runs."""
    handler = _WarningHandler()
    loggers = [logging.getLogger(name) for name in _PACKAGES]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _WarningHandler(logging.Handler):
    """Writes to whatever standard error is now (a progress bar may stand in for it)."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._shown:
            self._shown.add(text)
            sys.stderr.write(f"factormodels: {record.levelname.lower()}: {text}\n")


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    fixed = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(stderr=stderr, width=fixed, highlight=False, markup=False, emoji=False)
