"""`factormodels references`: backends against the reference answers of UAI networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder with NAME.uai, NAME.uai.evid and the answers NAME.uai.MAR or .PR.",
        ),
    ],
    backend: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Backend to hold against them; repeatable. [exact]"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of every backend; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the comparisons as JSON.")
    ] = None,
) -> None:
    """Hold backends against the reference answers of UAI networks.

    For every network below the folder: whether the backend answers, the induced
    width, the time, and the error: the largest of a marginal (MAR), or that of
    log10 Z relative to its size (PR).

    [b]Examples[/b]

      factormodels references uai2014
      factormodels references uai2014 --set memory_limit=4000000000
      factormodels references uai2014/MAR --backend lbp --backend wmb --out errors.json
    """
    from rich.progress import track

    from experiments import references
    from experiments.console import messages, output
    from experiments.settings import build_backend, parse_settings
    from experiments.warm_up import announced, warm_up

    settings = parse_settings(set_ or ())
    algorithms = [build_backend(name, settings) for name in backend or ["exact"]]
    networks = references.find_networks(folder)
    remarks = messages()
    with announced(remarks):
        for algorithm in algorithms:
            warm_up(algorithm)
    comparisons = []
    for path in track(
        networks, "networks", console=remarks, transient=True, disable=not remarks.is_terminal
    ):
        for algorithm in algorithms:
            comparisons += references.compare(path, algorithm)
    references.show(output(), comparisons)
    if out is not None:
        references.write(comparisons, out)
