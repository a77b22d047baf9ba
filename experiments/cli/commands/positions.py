"""`factormodels positions`: claims by where they stand in their response."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.console import heading, output, plain_table, show_written
from experiments.cli.options import shared

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.analyses.positions import Positions


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Labelled responses: FActScore's or Factcheck-Bench's JSON Lines, fact graphs, or "
            "records with the model's own judgements.",
        ),
    ],
    out: shared.TablesFolder = None,
    bins: shared.PositionBins = 5,
    interval: Annotated[
        str, typer.Option(metavar="NAME", help="Intervals over responses: bootstrap or delta.")
    ] = "bootstrap",
    seed: shared.BootstrapSeed = 0,
) -> None:
    """Tabulate and draw claims by their relative position.

    Sentence i of n has position i/n. For each of five bins, shows the share and
    number of supported, unsupported and irrelevant claims, averaged over sentences,
    with intervals over responses. If the file holds the model's own judgements,
    also shows Self-Known, Self-Unknown and the factuality that they suggest.

    [b]Examples[/b]

      factormodels positions annotated.jsonl
      factormodels positions annotated.jsonl --out results/positions
      factormodels positions records.jsonl --bins 4 --interval delta
    """
    from calibration.self_knowledge import IntervalSettings
    from experiments.analyses import positions
    from experiments.study.labelled_claims import load_claims

    intervals = IntervalSettings(method=interval, seed=seed)
    analysed = positions.analyse(load_claims(file), intervals, bins)
    written = [] if out is None else positions.write_positions(analysed, out, file.stem)
    console = output()
    _show(console, analysed)
    show_written(console, written)


def _show(console: Console, positions: Positions) -> None:
    """Print the tables."""
    from experiments.analyses.positions import text_rows

    console.print(positions.summary(), soft_wrap=True)
    console.print()
    for name, table in positions.tables().items():
        heading(console, name)
        shown = plain_table(["quantity"], table.positions)
        for row in text_rows(table, digits=2):
            shown.add_row(*row)
        console.print(shown)
        console.print()
    console.print(positions.note(), soft_wrap=True)
