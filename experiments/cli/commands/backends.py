"""`factormodels backends`: which algorithms there are, and what they are for."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One backend, with its settings.")
    ] = None,
) -> None:
    """List the inference backends: installed or not, kind of log Z, limits, settings.

    With a name, shows that backend's settings with types, defaults and meaning;
    they are given to `infer` with --set and to a study under settings.

    [b]Examples[/b]

      factormodels backends
      factormodels backends lbp
      factormodels infer graph.json --backend lbp --set damping=0.5
    """
    from experiments.cli.console import output
    from experiments.cli.views import backend as backend_view

    if name is None:
        backend_view.show_all(output())
    else:
        backend_view.show_one(output(), name)
