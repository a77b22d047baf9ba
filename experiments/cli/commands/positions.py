"""`factormodels positions`: claims by where they stand in their response."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import options


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Labelled responses: FActScore's or Factcheck-Bench's JSON Lines, fact graphs, or "
            "records with the model's own judgements.",
        ),
    ],
    out: options.TablesFolder = None,
    bins: options.PositionBins = 5,
    interval: Annotated[
        str, typer.Option(metavar="NAME", help="Intervals over responses: bootstrap or delta.")
    ] = "bootstrap",
    seed: options.BootstrapSeed = 0,
) -> None:
    """Tabulate and draw claims by their relative position.

    Sentence i of n stands at i/n. In each of five bins: share and number of
    supported, unsupported and irrelevant claims, averaged over sentences, with
    intervals over responses. Where the file holds the model's own judgements:
    Self-Known, Self-Unknown and the factuality that they suggest.

    [b]Examples[/b]

      factormodels positions annotated.jsonl
      factormodels positions annotated.jsonl --out results/positions
      factormodels positions records.jsonl --bins 4 --interval delta
    """
    from calibration.self_knowledge import IntervalSettings
    from experiments.analyses import positions
    from experiments.cli.console import output
    from experiments.cli.views.positions import show
    from experiments.study.labelled_claims import load_claims

    intervals = IntervalSettings(method=interval, seed=seed)
    analysed = positions.analyse(load_claims(file), intervals, bins)
    written = [] if out is None else positions.write_positions(analysed, out, file.stem)
    console = output()
    show(console, analysed)
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True)
