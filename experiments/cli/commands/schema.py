"""`factormodels schema`: what a file of this project's own formats may hold."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="One format: fact-graph, evidence, study, row or manifest."
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of one of our formats, or list them.

    The schemas (draft 2020-12) are for editors and for validators in other projects.
    Every file that we accept is valid. Rules about several values at once, such as
    unique ids, are checked by the reader only.

    [b]Examples[/b]

      factormodels schema
      factormodels schema fact-graph > fact-graph.schema.json
      factormodels schema study
    """
    import json

    from experiments.analyses.schemas_by_name import SCHEMAS, schema

    if name is None:
        for each in SCHEMAS:
            typer.echo(f"{each:<12}{schema(each)['description']}")
    else:
        typer.echo(json.dumps(schema(name), indent=2, ensure_ascii=False))
