"""Options that several commands take, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.help_text import choices
from factormodels.encodings import ENCODINGS

ResponseId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Which response to use, if the file holds many."),
]

BackendName = Annotated[
    str,
    typer.Option(metavar="NAME", help="Algorithm; `factormodels list backends` names them."),
]

BackendSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the backend; repeatable."),
]

Encoding = Annotated[str, typer.Option(metavar="NAME", help=f"{choices(ENCODINGS)}.")]

ApiBase = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of a server with a compatible API.")
]

AnswerCache = Annotated[
    Path,
    typer.Option(metavar="FILE", help="File that keeps its answers, so that none is repeated."),
]

Replay = Annotated[
    bool, typer.Option("--replay", help="Take every answer from the cache; send nothing.")
]

PromptsFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of prompts that replace ours by name; `factormodels list prompts` lists them.",
    ),
]

BootstrapSeed = Annotated[
    int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Seed of the bootstrap.")
]

Stride = Annotated[
    str, typer.Option(metavar="W", help="Sentences per call that lists claims, or all.")
]

SearchBase = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Address of your own search server, with the same API as the service."
    ),
]

RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="Ask again for what an interrupted batch recorded as failed or missing.",
    ),
]
