"""`factormodels diff`: what changed from one run to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli import options
from experiments.cli.console import output


def command(
    before: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run's results.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Folder of another run's results.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every number to a CSV file.")
    ] = None,
    seed: options.BootstrapSeed = 0,
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
    from experiments.cli.views import diff as diff_view
    from experiments.results.diff_analyses import are_analyses

    if are_analyses(before, after):
        from experiments.results.diff_analyses import as_rows as value_rows
        from experiments.results.diff_analyses import compare_analyses

        tables = compare_analyses(before, after)
        _write(out, value_rows(tables))
        diff_view.show_analyses(output(), tables)
        return
    from experiments.results.diff import as_rows, compare_runs

    difference = compare_runs(before, after, seed=seed)
    _write(out, as_rows(difference))
    diff_view.show(output(), difference)


def _write(out: Path | None, rows: list[dict[str, Any]]) -> None:
    if out is None:
        return
    import pandas as pd

    from calibration.tables import csv_text
    from factormodels.io.files import write_text

    write_text(out, csv_text(pd.DataFrame(rows)))
