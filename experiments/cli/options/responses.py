"""Which responses are assessed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class ResponseOptions:
    """Responses."""

    query: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The question that was asked.")
    ] = None
    topic: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="The topic of the response, added to the search for each claim."
        ),
    ] = None
    response: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="In a table, the column of the responses; if there is no such column, the "
            "same as --take.",
        ),
    ] = None
    question: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="In a table, the column of the questions.")
    ] = None
    id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="In a table, the column of the ids.")
    ] = None
    take: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Id of a response to use; repeatable."),
    ] = None
    passages: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Passages for FActScore's atoms, as JSON Lines."),
    ] = None
