"""What the commands of methods have in common: where findings go, and how they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.console import output, show_written
from factormodels.errors import InputError

if TYPE_CHECKING:
    from experiments.findings.findings import Findings

OutFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write tables (CSV, LaTeX, Markdown), figures and findings.json to this folder.",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

ReportPage = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write everything as one page for a browser.")
]


MOST_ROWS = 60
"""About how many rows of a table are printed."""


def deliver(found: Findings, *, out: Path | None, report: Path | None, json_: bool) -> None:
    """Write findings where they are asked for, and print them."""
    from experiments.cli.tables import show_paper_table

    written = [] if out is None else found.save(out)
    if report is not None:
        written.append(found.report(report))
    if json_:
        typer.echo(found.as_json(), nl=False)
        return
    console = output()
    for table in found.shown().values():
        show_paper_table(console, table, MOST_ROWS)
    for sentence in found.sentences:
        console.print(f"- {sentence}", soft_wrap=True)
    show_written(console, written)


def numbers(text: str | None, option: str) -> tuple[float, ...]:
    """Numbers that an option lists, parted by commas; none if it is not given.

    Raises:
        InputError: for what is not a number.
    """
    found = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        try:
            found.append(float(part))
        except ValueError:
            raise InputError(
                f"{option} {text}: {part.strip()!r} is not a number; write numbers with commas"
            ) from None
    return tuple(found)
