"""Options that several commands take, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.cli.help_text import choices
from factormodels.encodings import ENCODINGS

BackendName = Annotated[
    str,
    typer.Option(metavar="NAME", help="Algorithm; `factormodels list backends` names them."),
]

Encoding = Annotated[str, typer.Option(metavar="NAME", help=f"{choices(ENCODINGS)}.")]
