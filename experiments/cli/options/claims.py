"""How a response is taken apart into claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from experiments.cli.options import shared


@dataclass(frozen=True)
class ClaimOptions:
    """Claims."""

    atoms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Claims: given (as recorded), model (listed by the language model), or sentences "
            "(each sentence one claim).",
        ),
    ] = None
    stride: shared.Stride = "all"
    revise: Annotated[
        bool | None,
        typer.Option(
            "--revise/--no-revise",
            help="Rewrite claims so that they can be understood on their own; by default only "
            "those listed by the language model.",
        ),
    ] = None
