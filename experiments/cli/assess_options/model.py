"""Which language model answers, how it is called, and where its answers are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli import options

if TYPE_CHECKING:
    from factormodels.extraction.limits import Budget
    from factormodels.extraction.litellm_model import LitellmSettings
    from factormodels.extraction.prices import Prices


@dataclass(frozen=True)
class ModelOptions:
    """Language model."""

    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language model as litellm spells it, such as openai/NAME; its key comes from the "
            "environment.",
        ),
    ] = None
    api_base: options.ApiBase = None
    concurrency: Annotated[
        int, typer.Option(min=1, metavar="N", help="Calls under way at a time.")
    ] = 16
    requests_per_minute: Annotated[
        float | None, typer.Option(metavar="N", help="Most requests a minute, evenly spaced.")
    ] = None
    tokens_per_minute: Annotated[
        float | None,
        typer.Option(metavar="N", help="Most tokens a minute, of questions and answers."),
    ] = None
    price_in: Annotated[
        float | None,
        typer.Option(
            metavar="USD", help="Price of a million tokens asked; without it, as litellm knows."
        ),
    ] = None
    price_out: Annotated[
        float | None, typer.Option(metavar="USD", help="Price of a million tokens answered.")
    ] = None
    price_search: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Price of a search of the web.")
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="USD", help="End the run before it costs more; it can be gone on with."
        ),
    ] = None
    max_calls: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="End the run after so many calls, likewise."),
    ] = None
    cache: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Where answers and searches are kept: none is repeated."),
    ] = Path("answers.sqlite")
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show calls, tokens and cost by stage; send nothing.")
    ] = False
    replay: options.Replay = False
    prompts: options.PromptsFolder = None

    def settings(self) -> LitellmSettings:
        """How the language model is called."""
        from factormodels.extraction.litellm_model import LitellmSettings

        return LitellmSettings(
            self.model or "",
            self.api_base,
            self.concurrency,
            prices=self.prices(),
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
        )

    def prices(self) -> Prices | None:
        """What tokens cost; None: as litellm knows."""
        from factormodels.extraction.prices import prices_per_million

        return prices_per_million(self.price_in, self.price_out)

    def budget(self) -> Budget:
        """What a run may ask and spend."""
        from factormodels.extraction.limits import Budget

        return Budget(self.max_calls, self.max_cost)
