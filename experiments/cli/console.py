"""The terminal: consoles, tables in one style, and warnings shown once each."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


ANY_WIDTH = 10_000
"""A width that no table reaches, to measure one as wide as it likes to be."""

_PIPE_WIDTH = 4000
_PACKAGES = ("factormodels", "inference", "calibration", "experiments")


def output() -> Console:
    """A console on standard output.

    In a terminal it has the terminal's width; in a pipe or a file lines keep their natural length,
    so that nothing is cut or wrapped for the next program.
    """
    return _console(stderr=False)


def messages() -> Console:
    """A console on standard error, for progress and remarks."""
    return _console(stderr=True)


def silent() -> Console:
    """Console that shows nothing."""
    from rich.console import Console

    return Console(quiet=True)


def heading(console: Console, text: str) -> None:
    """Print the heading of a table, never wrapped to the width of the table below."""
    console.print(text, style="bold", soft_wrap=True)


def plain_table(left: Sequence[str] = (), right: Sequence[str] = ()) -> Table:
    """An empty table in the one style of this command line.

    Args:
        left: headings of its first columns, which hold texts and are not wrapped.
        right: headings of those that follow, which hold numbers and are not wrapped either.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
    )
    for title in left:
        table.add_column(title, no_wrap=True)
    for title in right:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def show_table(console: Console, table: Table) -> None:
    """Print a table; where the width is short, columns that may not wrap keep all of their text.

    A column with a ratio takes what the others leave, where there is a width to share.
    """
    from rich.cells import cell_len

    for column in table.columns:
        if column.no_wrap and column.ratio is None:
            # rich squeezes even a column that may not wrap, unless it has a least width.
            texts = (str(text) for text in (column.header, *column.cells))
            column.min_width = max(map(cell_len, texts))
    if any(column.ratio for column in table.columns):
        natural = console.measure(table, options=console.options.update(max_width=ANY_WIDTH))
        table.expand = console.is_terminal or natural.maximum > console.width
    console.print(table)


def show_written(console: Console, paths: Iterable[Path]) -> None:
    """Print a line for each file that a command wrote."""
    for path in paths:
        console.print(f"wrote {path}", soft_wrap=True)


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
            # sys.stderr as it is now: rich replaces it while a bar is drawn.
            sys.stderr.write(f"factormodels: {record.levelname.lower()}: {text}\n")


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # rich takes 80 columns where it cannot ask a terminal, and would wrap what a pipe reads.
    fixed = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(stderr=stderr, width=fixed, highlight=False, markup=False, emoji=False)
