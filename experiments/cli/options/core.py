"""Options of Core around a scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class CoreOptions:
    """Claims that count."""

    core: Annotated[
        bool,
        typer.Option(
            "--core",
            help="Also score only the claims that count: informative, not repeated, faithful.",
        ),
    ] = False
    faithfulness: Annotated[
        bool,
        typer.Option(
            "--faithfulness/--no-faithfulness",
            help="With --core: require that a claim is entailed by its sentence.",
        ),
    ] = True
    core_relations: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With --core: what decides entailment: lexical, model, nli:FOLDER or "
            "recorded:FILE.",
        ),
    ] = "lexical"
    domain: Annotated[
        str, typer.Option(metavar="NAME", help="With --core: domain of the bleached claims.")
    ] = "people"
