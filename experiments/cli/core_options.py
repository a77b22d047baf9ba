"""Options of Core around a scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.assess.core import CoreSettings


@dataclass(frozen=True)
class CoreOptions:
    """Claims that count."""

    select: Annotated[
        str | None,
        typer.Option(
            metavar="core",
            help="Also score the claims that count alone: informative, not repeated, faithful.",
        ),
    ] = None
    faithfulness: Annotated[
        bool,
        typer.Option(
            "--faithfulness/--no-faithfulness",
            help="With --select, whether a claim must be entailed by its sentence to count.",
        ),
    ] = True
    select_relations: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With --select, who entails whom: lexical, model, nli:FOLDER or recorded:FILE.",
        ),
    ] = "lexical"
    domain: Annotated[
        str, typer.Option(metavar="NAME", help="With --select, domain of the bleached claims.")
    ] = "people"

    def settings(self) -> CoreSettings | None:
        """How claims are selected; None where they are not."""
        from experiments.assess.core import CoreSettings

        if self.select is None:
            return None
        return CoreSettings(self.select, self.faithfulness, self.select_relations, self.domain)
