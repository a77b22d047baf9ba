"""`factormodels diff`: what changed from one run to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    the paired bootstrap over responses.

    [b]Examples[/b]

      factormodels diff results/compare results/damped
      factormodels diff results/before results/after --out changes.csv
    """
    from experiments import diff_view
    from experiments.console import output
    from experiments.diff import as_rows, compare_runs
    from factormodels.io.files import write_text

    difference = compare_runs(before, after, seed=seed)
    if out is not None:
        import pandas as pd

        write_text(out, pd.DataFrame(as_rows(difference)).to_csv(index=False, lineterminator="\n"))
    diff_view.show(output(), difference)
