"""`factormodels diff`: what changed from one run to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def command(
    before: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run's results.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Folder of another run's results.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every number to a CSV file.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the bootstrap.")] = 0,
) -> None:
    """Say what changed from one run of a study to another.

    What differs in the study, the data and the versions; then, for every cell
    that both runs have, how many posteriors changed and by how much, and how far
    each measure moved over the claims that both judged, with 95% intervals from
    the paired bootstrap over responses. Of two runs of an analysis, which values
    of their tables changed, the intervals among them.

    [b]Examples[/b]

      factormodels diff results/compare results/damped
      factormodels diff results/before results/after --out changes.csv
    """
    from experiments.cli.console import output
    from experiments.cli.views.diff import show
    from experiments.results.diff import as_rows, compare

    difference = compare(before, after, seed=seed)
    if out is not None:
        _write(out, as_rows(difference))
    show(output(), difference)


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    import pandas as pd

    from experiments.paper.artefacts import csv_text
    from factormodels.io.files import write_text

    write_text(out, csv_text(pd.DataFrame(rows)))
