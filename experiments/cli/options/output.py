"""What is written of an assessment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.options import shared


@dataclass(frozen=True)
class OutputOptions:
    """Output."""

    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the graphs with their posteriors to this file, as JSON Lines.",
        ),
    ] = None
    retry_failed: shared.RetryFailed = False
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="Assess responses that an outage cut off with whatever was obtained."
        ),
    ] = False
    report: Annotated[
        bool,
        typer.Option("--report", help="Make pages for a browser, in OUT-report (assessed-report)."),
    ] = False
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Compute on the Dask cluster at this address, such as tcp://head:8786; models "
            "are still asked from this machine.",
        ),
    ] = None
