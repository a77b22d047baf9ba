"""Learned priors on the terminal, and whether they help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibration.learned_priors import (
    CrossValidation,
)
from experiments.cli.console import heading, show_table
from experiments.paper.text import number, plain_table

if TYPE_CHECKING:
    from rich.console import Console
from experiments.run.learning import Learning

_COMPARED = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "log_likelihood": "-log P(labels) per response",
}


def show(console: Console, learning: Learning) -> None:
    """Print what was learned, and the comparison with the graphs as they are given."""
    learned = learning.learned
    heading(
        console,
        f"{learned.n_labelled:,} labelled atoms in {learned.n_responses:,} responses; encoding "
        f"{learned.specification.encoding}, {learned.objective} by {learned.backend}: "
        f"{learned.status.value.replace('_', ' ')}",
    )
    table = plain_table()
    table.add_column("parameter")
    for column in ("stated", "learned", "standard error", "95 % interval"):
        table.add_column(column, justify="right")
    table.add_column("status")
    for row in learned.table():
        table.add_row(
            row.name,
            number(row.start),
            number(row.estimate),
            number(row.standard_error),
            f"{number(row.lower)} to {number(row.upper)}",
            row.status.value,
        )
    show_table(console, table)
    if learning.validated is not None:
        _show_comparison(console, learning.validated)


def _show_comparison(console: Console, validated: CrossValidation) -> None:
    console.print()
    folds = len(validated.fits)
    heading(console, f"Held-out responses, {folds} folds: learned less as given (below 0: better)")
    table = plain_table()
    table.add_column("score")
    for column in ("as given", "learned", "difference", "95 % interval"):
        table.add_column(column, justify="right")
    for name, title in _COMPARED.items():
        test = validated.comparisons[name]
        if name == "log_likelihood":
            scores = -validated.log_likelihood.mean(), -validated.default_log_likelihood.mean()
        else:
            scores = validated.score(name)
        table.add_row(
            title,
            number(float(scores[1]), 4),
            number(float(scores[0]), 4),
            f"{test.estimate:+.4f}",
            f"{test.lower:+.4f} to {test.upper:+.4f}",
        )
    show_table(console, table)
