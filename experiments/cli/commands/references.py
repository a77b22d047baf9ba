"""`factormodels references`: backends against the reference answers of UAI networks."""

from __future__ import annotations

from contextlib import ExitStack
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
        typer.Option(
            metavar="NAMES",
            help="Backends to hold against them, with commas between; repeatable. [exact]",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of every backend, or of one: BACKEND.KEY=VALUE; repeatable.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="SECONDS", help="Limit for one backend on one network."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the comparisons as JSON.")
    ] = None,
) -> None:
    """Hold backends against the reference answers of UAI networks.

    For every network below the folder: whether the backend answers, the induced
    width, the time, and the error: the largest of a marginal (MAR), or that of
    log10 Z relative to its size (PR). Then the same by set of networks (those whose
    names differ in a number alone), with log Z, or its bound, against the
    reference in nats, and the gap between bounds.

    [b]Examples[/b]

      factormodels references uai2014
      factormodels references uai2014 --set memory_limit=4000000000
      factormodels references uai2014 --backend wmb,lbp --set wmb.i_bound=10 \\
        --time-limit 60 --out errors.json
    """
    from rich.progress import track

    from experiments.bench import references
    from experiments.cli.console import messages, output
    from experiments.cli.progress import announced
    from experiments.cli.views.references import show
    from experiments.study.backend_settings import build_backend, settings_by_backend
    from inference.warm_up import warm_up

    names = [name for text in backend or ["exact"] for name in text.split(",")]
    algorithms = [
        build_backend(name, settings)
        for name, settings in settings_by_backend(set_ or (), names).items()
    ]
    networks = references.find_networks(folder)
    remarks = messages()
    comparisons = []
    with ExitStack() as stack:
        with announced(remarks):
            infer = stack.enter_context(references.within(time_limit, algorithms, warm_up))
        for path in track(
            networks, "networks", console=remarks, transient=True, disable=not remarks.is_terminal
        ):
            for algorithm in algorithms:
                comparisons += references.compare(path, algorithm, infer)
    show(output(), comparisons)
    if out is not None:
        references.write(comparisons, out)
