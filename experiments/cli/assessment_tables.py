"""What the terminal shows of a batch of assessed responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.cli.console import heading, plain_table, show_table
from experiments.findings.text import counted, interval, number

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.evaluators.response import AssessedResponse, AssessmentView, Compared

_MOST_SHOWN = 50
"""Responses that the terminal shows; the output has them all."""


def show_responses(
    console: Console,
    responses: Sequence[AssessedResponse],
    views: Sequence[AssessmentView],
    assessors: Sequence[str],
) -> None:
    """Print a row per response: its claims, Pr by every variant and assessor, what is missing.

    Behind Pr stands the range that what is missing leaves open.
    """
    from calibration.scores.measures import entropy_warnings
    from experiments.evaluators.response import summarise_judged

    names = [*(view.variant for view in views), *assessors]
    heading(console, "responses")
    table = plain_table(["response"], ["claims", *(f"Pr {name}" for name in names), "missing"])
    for response in responses[:_MOST_SHOWN]:
        # What is to be said of E is said below the measures of all responses.
        with entropy_warnings():
            found = summarise_judged([response], names)
        table.add_row(
            response.response,
            f"{len(response.labels):,}",
            *(_precision(found, name) for name in names),
            f"{response.lacking:,}" if response.lacking else "",
        )
    show_table(console, table)
    if len(responses) > _MOST_SHOWN:
        console.print(f"and {len(responses) - _MOST_SHOWN:,} more, not shown; --out has all")
    if any(response.missing or response.unjudged for response in responses[:_MOST_SHOWN]):
        console.print(
            "in brackets: Pr over all claims of a response, whatever the missing answers would "
            "have been",
            soft_wrap=True,
        )
    console.print()


def _precision(found: Compared, name: str) -> str:
    summary = found.summaries[name]
    told = number(None if summary is None else summary.precision)
    ranges = found.ranges.get(name)
    return told if ranges is None else f"{told} {interval(*ranges['precision'])}"


def show_unanswered(
    console: Console, responses: Sequence[AssessedResponse], views: Sequence[AssessmentView]
) -> None:
    """Print where the posterior is not exact although nobody asked for another, or is missing."""
    for view in views:
        told = [(one, one.answered_by.get(view.variant)) for one in responses]
        others = [one for one, by in told if by not in (None, "exact")]
        if view.backend.name == "auto" and others:
            console.print(
                f"{view.variant}: {counted(len(others), 'response')} of {len(responses):,} would "
                "take long to solve exactly: their log Z is bounded, and their posteriors are "
                f"estimates; the first {others[0].response}, by "
                f"{others[0].answered_by[view.variant]}",
                soft_wrap=True,
            )
        lacking = [one for one in responses if view.variant in one.errors]
        if lacking:
            console.print(
                f"{view.variant}: no posterior of {counted(len(lacking), 'response')}, the first "
                f"{lacking[0].response}: {lacking[0].errors[view.variant]}",
                soft_wrap=True,
            )
