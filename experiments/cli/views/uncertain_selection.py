"""Selection under uncertain redundancy, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.cli.console import heading, show_table
from experiments.paper.text import number, plain_table

if TYPE_CHECKING:
    from rich.console import Console
from experiments.padding.uncertain_selection import UncertainRow


def show(console: Console, rows: Sequence[UncertainRow]) -> None:
    """Print a line per response and the means."""
    heading(console, "plain program, expected weight, sampled redundancy graphs")
    table = plain_table()
    table.add_column("response", no_wrap=True)
    titles = ("claims", "plain", "Pr", "expected", "Pr", "gain", "proved", "sampled Pr", "95 %")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.response,
            str(row.claims),
            str(row.plain_count),
            number(row.plain_precision),
            number(row.expected_count, 1),
            number(row.expected_precision),
            number(row.gain),
            "yes" if row.proved else "no",
            number(row.sampled_precision),
            f"{number(row.lower)} to {number(row.upper)}",
        )
    table.add_section()
    table.add_row(
        "mean",
        number(_mean(rows, "claims"), 1),
        number(_mean(rows, "plain_count"), 1),
        number(_mean(rows, "plain_precision")),
        number(_mean(rows, "expected_count"), 1),
        number(_mean(rows, "expected_precision")),
        number(_mean(rows, "gain")),
        f"{sum(row.proved for row in rows)} of {len(rows)}",
        number(_mean(rows, "sampled_precision")),
        "",
    )
    show_table(console, table)


def _mean(rows: Sequence[UncertainRow], name: str) -> float:
    return float(np.nanmean([getattr(row, name) for row in rows])) if rows else float("nan")
