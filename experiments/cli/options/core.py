"""Options of Core around a scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from factormodels.errors import InputError

if TYPE_CHECKING:
    from experiments.assess.core import CoreSettings


@dataclass(frozen=True)
class CoreOptions:
    """Claims that count."""

    select: Annotated[
        str | None,
        typer.Option(
            metavar="core",
            help="Also score only the claims that count: informative, not repeated, faithful.",
        ),
    ] = None
    faithfulness: Annotated[
        bool,
        typer.Option(
            "--faithfulness/--no-faithfulness",
            help="With --select: require that a claim is entailed by its sentence.",
        ),
    ] = True
    select_relations: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With --select: what decides entailment: lexical, model, nli:FOLDER or "
            "recorded:FILE.",
        ),
    ] = "lexical"
    domain: Annotated[
        str, typer.Option(metavar="NAME", help="With --select: domain of the bleached claims.")
    ] = "people"

    def settings(self) -> CoreSettings | None:
        """How claims are selected; None where they are not.

        Raises:
            InputError: for another selection than Core's.
        """
        from experiments.assess.core import CoreSettings

        if self.select is None:
            return None
        if self.select != "core":
            raise InputError(f"--select {self.select!r} is unknown; use core")
        return CoreSettings(self.faithfulness, self.select_relations, self.domain)
