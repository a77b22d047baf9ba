"""Options that several commands take, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ResponseId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="The response to take from a file that holds many."),
]

BackendName = Annotated[
    str, typer.Option(metavar="NAME", help="Algorithm; `factormodels backends` lists them.")
]

BackendSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the backend; repeatable."),
]

Encoding = Annotated[str, typer.Option(metavar="NAME", help="implication or conditional.")]

ApiBase = Annotated[str | None, typer.Option(metavar="URL", help="Address of a compatible server.")]

AnswerCache = Annotated[
    Path, typer.Option(metavar="FILE", help="Where its answers are kept: none is repeated.")
]

Replay = Annotated[
    bool, typer.Option("--replay", help="Take every answer from the cache; ask nobody.")
]

PromptsFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Templates in place of ours, each by its name; `factormodels prompts` lists them.",
    ),
]

EntailmentModel = Annotated[
    str,
    typer.Option(metavar="NAME", help="Who entails whom: lexical, recorded:FILE, nli:FOLDER."),
]

ClaimWeights = Annotated[str, typer.Option(metavar="NAME", help="informativeness or uniform.")]

PositionBins = Annotated[
    int, typer.Option(min=1, max=20, metavar="N", help="Bins of relative position.")
]

BootstrapSeed = Annotated[
    int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Seed of the bootstrap.")
]

TablesFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write the tables and the figure there.")
]
