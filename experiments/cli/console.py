"""Consoles for output and messages, and warnings without repetition."""

from __future__ import annotations

import functools
import io
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from factormodels.control_characters import printable, printable_json, shortened
from factormodels.nouns import counted

if TYPE_CHECKING:
    from rich.console import Console, RenderHook


INCOMPLETE = 1
"""Exit code of a finished command with missing results."""

LIMIT_REACHED = 3
"""Exit code after reaching a limit on calls or costs."""

_PIPE_WIDTH = 4000
_PACKAGES = ("factormodels", "inference", "calibration", "experiments")


def output() -> Console:
    """A console on standard output.

    In a terminal it has the terminal's width; in a pipe or a file lines keep their natural length,
    so that the next program gets unwrapped output.
    """
    return _console(stderr=False)


def messages() -> Console:
    """A console on standard error, for progress and remarks."""
    return _console(stderr=True)


def show_written(console: Console, paths: Iterable[Path]) -> None:
    """Print a line for each file that a command wrote."""
    for path in paths:
        console.print(f"wrote {path}", soft_wrap=True)


def show_folder(console: Console, folder: Path, files: Iterable[Path]) -> None:
    """Print the folder of results: the number and contents of files, and the file to open first."""
    names = [file.name for file in files]
    contents = list(dict.fromkeys(name.partition(".")[0] for name in names))
    some = ", ".join(contents[:_CONTENTS])
    rest = f" and {len(contents) - _CONTENTS:,} more" if len(contents) > _CONTENTS else ""
    page = folder / "report.html"
    to_open = f"; open {page}" if page.exists() else ""
    count = counted(len(names), "file")
    console.print(f"{folder}: {count}, {some}{rest}{to_open}", soft_wrap=True)


_CONTENTS = 6


def open_standard_streams() -> None:
    """Open descriptors for standard streams that the caller closed.

    Otherwise the next opened file would get the stream's number and receive the printed output.
    Writing output to such a stream fails; messages are lost.
    """
    # In the order of their numbers, because a new descriptor gets the lowest free number.
    if sys.stdin is None:
        # It stays None; reading it raises a readable error.
        _open_nowhere(os.O_WRONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(_open_nowhere(os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(_open_nowhere(os.O_WRONLY), "w", encoding="utf-8")


def _open_nowhere(mode: int) -> int:
    descriptor = os.open(os.devnull, mode)
    # Processes that are started inherit the three.
    os.set_inheritable(descriptor, True)
    return descriptor


def spell_what_has_no_form() -> None:
    """Make the standard streams escape characters that their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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
    """Log handler for the current standard error, which a progress bar may replace."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._shown:
            self._shown.add(text)
            # The current sys.stderr: rich replaces it while a bar is drawn.
            say(f"factormodels: {record.levelname.lower()}: {text}")


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # Without a terminal rich assumes 80 columns, and would wrap the output to a pipe.
    fixed = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    console = Console(stderr=stderr, width=fixed, highlight=False, markup=False, emoji=False)
    console.push_render_hook(_printable_hook())
    return console


def say(text: str) -> None:
    """Write a line to standard error, with escaped control characters and limited length.

    If standard error cannot be written, only the exit code remains.
    """
    with suppress(OSError):
        sys.stderr.write(f"{printable(shortened(text))}\n")
        sys.stderr.flush()


def write_json(text: str) -> None:
    """Write JSON text to standard output, with control characters of terminals escaped."""
    sys.stdout.write(printable_json(text))


@functools.cache
def _printable_hook() -> RenderHook:
    """Hook that keeps users' texts from sending control sequences to the console."""
    from rich.console import ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
    from rich.control import Control
    from rich.measure import Measurement
    from rich.segment import Segment

    class Shown:
        def __init__(self, inner: ConsoleRenderable) -> None:
            self.inner = inner

        def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
            return Measurement.get(console, options, self.inner)

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for segment in console.render(self.inner, options):
                # Segments of rich's own controls move the cursor of progress bars.
                yield (
                    segment if segment.control else Segment(printable(segment.text), segment.style)
                )

    class Hook(RenderHook):
        def process_renderables(
            self, renderables: list[ConsoleRenderable]
        ) -> list[ConsoleRenderable]:
            return [
                renderable if isinstance(renderable, Control) else Shown(renderable)
                for renderable in renderables
            ]

    return Hook()
