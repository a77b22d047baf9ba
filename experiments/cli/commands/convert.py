"""`factormodels convert`: a model from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import options


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="Fact graph JSON, FactReasoner, FActScore, Factcheck-Bench, UAI or BIF; or the "
            "name of an embedded dataset.",
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="A file ending in .json, .jsonl or .uai.")
    ],
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="View of the fact graphs: given (default), FR1, FR2 or FR3."
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Encoding of relations in a .uai file: implication (default) or conditional.",
        ),
    ] = None,
    response: options.ResponseId = None,
) -> None:
    """Convert a model from one format to another.

    The content of INPUT tells what it is, the suffix of OUTPUT what it becomes:
    .json one fact graph, .jsonl one fact graph per line, .uai a factor graph
    (the names of its variables go into OUTPUT.names beside it).

    [b]Examples[/b]

      factormodels convert factreasoner.json graph.json
      factormodels convert graph.json graph.uai --variant FR2 \\
          --encoding conditional
      factormodels convert alarm.bif alarm.uai
      factormodels convert annotated.jsonl graphs.jsonl
      factormodels convert demonstration demonstration.jsonl
    """
    from experiments.cli.console import output
    from experiments.cli.conversion import convert

    output().print(convert(source, target, variant=variant, encoding=encoding, response=response))
