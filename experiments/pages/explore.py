"""A local page on which a user changes a graph and sees the posteriors change."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as
from experiments.progress import watcher
from experiments.settings import USUAL, Option, Settings, front_door
from experiments.settings.inputs import graphs_of
from factormodels.errors import InputError, unknown_name

if TYPE_CHECKING:
    from experiments.pages.explored_page import Explored
    from experiments.settings.inputs import Responses


class ExploreSettings(Settings):
    """Page.

    Options of `explore`.
    """

    writes_several_files = True

    response: Annotated[str | None, Option("ID", usual=True)] = None
    """Response to show first, if the file has several."""

    port: Annotated[int, Field(ge=0, le=65535), USUAL] = 0
    """Port on 127.0.0.1; 0 picks a free one."""

    browser: Annotated[bool, USUAL] = True
    """Open the page in a browser."""

    out: Annotated[Path | None, Option("DIR", command_line=False, writes=True)] = None
    """Save files from the page in this folder; explored by default."""


@front_door
def explore(source: Responses, settings: ExploreSettings) -> Findings:
    """Open a local page where you can change the graph of a response.

    Change priors and strengths of relations, observe a claim, leave out a passage, or switch
    encoding, variant and backend. The page immediately shows the probability of every claim, the
    changes, log Z and the drawing. It saves the graph, the figure and a study that reproduces the
    view in the folder of --out, by default explored. The page is served only on this machine, at an
    address with a token; it needs the extra `explore`. Press Ctrl-C to stop; the command then
    prints the changes of the posteriors.

    Examples::

        explore("graph.json")
        explore("demonstration", response="demo-01-marie-curie")
        explore("results/compare", port=8080, browser=False)

    Args:
        source: Fact graph JSON, an embedded dataset, or the folder of a finished run. In Python
            also fact graphs.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the source cannot be read, or the port cannot be opened.
        MissingDependencyError: if NiceGUI is not installed.
    """
    from experiments.pages.explored_page import Exploration, serve
    from experiments.settings.backend_settings import build_backend
    from inference.warm_up import warm_up

    name = str(source) if isinstance(source, str | os.PathLike) else "the graphs"
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        from experiments.pages.from_run_folder import read_subject

        graphs = tuple(graph for each in read_subject(Path(source)).data for graph in each.graphs)
    else:
        graphs = graphs_of(source)
    chosen = [graph for graph in graphs if settings.response in (None, graph.id)]
    if not chosen:
        subject = f"{name}: the response {settings.response!r}"
        raise InputError(unknown_name(subject, settings.response, (graph.id for graph in graphs)))
    with socket.socket() as free:
        try:
            free.bind(("127.0.0.1", settings.port))
        except OSError as error:
            raise InputError(
                f"--port {settings.port}: it cannot be opened ({error.strerror}); give another"
            ) from None
        number = free.getsockname()[1]
    start = Exploration(chosen[0])
    warm_up(build_backend(start.backend, {}))
    tells = watcher()
    kept = serve(
        graphs,
        port=number,
        out=settings.out or Path("explored"),
        start=start,
        show=settings.browser,
        show_address=lambda address: tells.notice(f"{address}\nCtrl-C ends it"),
    )
    return _found(name, kept)


def _found(name: str, kept: dict[str, tuple[Explored, Explored]]) -> Findings:
    rows: list[dict[str, Any]] = [
        {
            "response": response,
            "claim": atom.id,
            "before": first.claims.get(atom.id),
            "p": last.claims[atom.id],
            "text": atom.text,
        }
        for response, (first, last) in kept.items()
        for atom in last.view.atoms
    ]
    columns = columns_as("claim | before:4 P(true) at first | p:4 P(true) at last | text")
    table = Table(rows, columns, "Claims that were looked at.", group="response")
    return Findings(name, tables={"claims": table})
