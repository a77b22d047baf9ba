"""How the web is asked, by every command that searches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class WebOptions:
    """Requests to the web."""

    contact: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Your e-mail address or web page, sent to web servers as Wikipedia asks.",
        ),
    ] = ""
    max_wait: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Longest wait to accept when a web server asks for one."
        ),
    ] = 300.0
    allow_private_hosts: Annotated[
        bool,
        typer.Option(
            "--allow-private-hosts",
            help="Also fetch pages from this machine and from private networks.",
        ),
    ] = False
