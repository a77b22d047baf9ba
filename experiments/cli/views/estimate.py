"""What an assessment would ask for, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.cli.console import heading, show_table
from experiments.paper.text import ABSENT, plain_table

if TYPE_CHECKING:
    from rich.console import Console
from experiments.assess.estimate import ATOMS_PER_SENTENCE, StageEstimate


def show_estimate(console: Console, rows: Sequence[StageEstimate]) -> None:
    """Print an estimate, the stages that are not chosen dimmed, and the sum of those that are."""
    heading(console, "dry run: nothing was sent")
    table = plain_table()
    table.add_column("stage", no_wrap=True)
    for title in ("calls", "tokens in", "tokens out", "cost (US$)"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        calls = f"{'' if row.exact else 'about '}{row.calls:,}"
        table.add_row(*_cells(row, calls), style=None if row.chosen else "dim")
    show_table(console, table)
    console.print(
        "tokens: characters / 4. Answers in the cache are not taken off. Where claims are not yet "
        f"known: {ATOMS_PER_SENTENCE:g} per sentence, and no two passages alike. Verdicts of "
        "assessors count at their longest."
    )


def _cells(row: StageEstimate, calls: str) -> list[str]:
    cost = ABSENT if row.cost is None else f"{row.cost:.4f}"
    name = row.stage if row.chosen else f"({row.stage})"
    return [name, calls, f"{row.prompt_tokens:,}", f"{row.completion_tokens:,}", cost]
