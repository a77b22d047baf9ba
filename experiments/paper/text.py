"""Numbers, counts and durations as text, and tables in the one style of the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


ABSENT = "--"
"""What a table shows where a number is undefined."""


ANY_WIDTH = 10_000
"""A width that no table reaches, to measure one as wide as it likes to be."""


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
