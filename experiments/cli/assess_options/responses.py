"""Which responses are assessed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.assess.inputs import LoadedResponses


@dataclass(frozen=True)
class ResponseOptions:
    """Responses."""

    query: Annotated[str | None, typer.Option(metavar="TEXT", help="What was asked.")] = None
    topic: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it is about; searched with each claim.")
    ] = None
    response: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of a table, the column of the responses; where there is none such, as --take.",
        ),
    ] = None
    question: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a table, the column of the questions.")
    ] = None
    id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a table, the column of the ids.")
    ] = None
    take: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="The response to take from many; repeatable."),
    ] = None
    passages: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON Lines of passages for FActScore's atoms."),
    ] = None

    def load(self, source: Path) -> LoadedResponses:
        """The responses of a file that these options name."""
        from experiments.assess.inputs import load_responses
        from experiments.assess.tabled import ResponseColumns

        return load_responses(
            source,
            query=self.query,
            topic=self.topic,
            columns=ResponseColumns(self.response, self.question, self.id),
            take=self.take or (),
            passages=self.passages,
        )
