"""`factormodels bench`: the speed of algorithms, as ratios within one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    families: Annotated[
        list[str] | None,
        typer.Argument(metavar="FAMILY", help="Families to time; all if none is given."),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Rounds per graph; the family's own if not given."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the results (bench.json).")
    ] = Path("results/bench"),
    list_: Annotated[
        bool, typer.Option("--list", help="List families and algorithms and time nothing.")
    ] = False,
) -> None:
    """Time algorithms against each other on families of graphs.

    Algorithms take turns on the same graphs in one process, warm; what counts is
    the median of the paired ratios, with its interval. Times alone depend on the
    machine. The result is a table and bench.json.

    [b]Examples[/b]

      factormodels bench --list
      factormodels bench
      factormodels bench fr2-31x3 --repeats 3 --out results/bench-fr2
    """
    from experiments.bench import report
    from experiments.bench.algorithms import ALGORITHMS
    from experiments.bench.families import select
    from experiments.bench.timing import measure
    from experiments.console import messages, output
    from experiments.outputs import prepare_folder
    from experiments.warm_up import announced, warm_up
    from inference import entries, get_backend

    console, remarks = output(), messages()
    if list_:
        report.show_families(console)
        return
    chosen = select(families or ())
    prepare_folder(out)
    timed = {name for family in chosen for name in (family.subject, *family.peers)}
    with announced(remarks):
        for name in sorted(timed & entries().keys()):
            if not ALGORITHMS[name].missing:
                warm_up(get_backend(name))
    results = []
    for family in chosen:
        results.append(measure(family, repeats=repeats, report=remarks.print))
        report.show(console, results[-1])
    console.print(str(report.write(results, out)), soft_wrap=True)
