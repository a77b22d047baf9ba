"""`factormodels explore`: a local page on which one changes a graph and sees what follows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.options import shared


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|RUN",
            help="Fact graph JSON, an embedded dataset, or the folder of a finished run.",
        ),
    ],
    response: shared.ResponseId = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, metavar="N", help="Port on 127.0.0.1; 0 picks a free one."),
    ] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder where the page saves.")] = Path(
        "explored"
    ),
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a local page where you can change the graph of a response.

    Move priors and strengths of relations, observe a claim, leave out a passage,
    switch encoding, variant and backend: the page shows at once the probability of
    every claim, what moved, log Z and the drawing. It can save the graph, the figure
    and a study that reproduces what you see. The page is served only on this
    machine, at an address with a token; it needs the extra `explore`. Press Ctrl-C
    to stop.

    [b]Examples[/b]

      factormodels explore graph.json
      factormodels explore demonstration --response demo-01-marie-curie
      factormodels explore results/compare --port 8080 --no-browser
    """
    import socket

    from experiments.cli.console import messages, output
    from experiments.cli.progress import announced
    from experiments.explore.exploration import Exploration
    from experiments.explore.page import serve
    from experiments.study.backend_settings import build_backend
    from experiments.study.inputs import read_graphs
    from factormodels.errors import InputError
    from inference.warm_up import warm_up

    if source.is_dir():
        from experiments.report.from_run_folder import read_subject

        graphs = tuple(graph for one in read_subject(source).data for graph in one.graphs)
    else:
        graphs = tuple(read_graphs(source))
    chosen = [graph for graph in graphs if response in (None, graph.id)]
    if not chosen:
        raise InputError(f"{source}: it has no response {response!r}; leave --response out")
    with socket.socket() as free:
        try:
            free.bind(("127.0.0.1", port))
        except OSError as error:
            raise InputError(
                f"--port {port}: it cannot be opened ({error.strerror}); give another"
            ) from None
        number = free.getsockname()[1]
    start = Exploration(chosen[0])
    with announced(messages()):
        warm_up(build_backend(start.backend, {}))
    console = output()
    serve(
        graphs,
        port=number,
        out=out,
        start=start,
        show=browser,
        said=lambda address: console.print(f"{address}\nCtrl-C ends it", soft_wrap=True),
    )
