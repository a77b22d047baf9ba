"""Which language model answers, how it is called, and where its answers are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.options import shared

if TYPE_CHECKING:
    from factormodels.extraction.language_model.limits import Budget
    from factormodels.extraction.language_model.litellm_model import LitellmSettings
    from factormodels.extraction.language_model.prices import Prices


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
    api_base: shared.ApiBase = None
    concurrency: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many calls may be under way at once.")
    ] = 16
    requests_per_minute: Annotated[
        float | None, typer.Option(metavar="N", help="Requests per minute at most, evenly spaced.")
    ] = None
    tokens_per_minute: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="Tokens per minute at most, in questions and answers together."
        ),
    ] = None
    price_in: Annotated[
        float | None,
        typer.Option(
            metavar="USD", help="Price of a million input tokens; litellm's price if not given."
        ),
    ] = None
    price_out: Annotated[
        float | None, typer.Option(metavar="USD", help="Price of a million output tokens.")
    ] = None
    price_search: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Price of one web search.")
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="USD",
            help="Stop before the run costs more than this; you can continue it later.",
        ),
    ] = None
    max_calls: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Stop after this many calls; you can continue later."
        ),
    ] = None
    cache: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="File that keeps answers and searches, so that none is repeated."
        ),
    ] = Path("answers.sqlite")
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show calls, tokens and cost by stage without sending anything."
        ),
    ] = False
    replay: shared.Replay = False
    prompts: shared.PromptsFolder = None

    def settings(self) -> LitellmSettings:
        """How the language model is called."""
        from factormodels.extraction.language_model.litellm_model import LitellmSettings

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
        from factormodels.extraction.language_model.prices import prices_per_million

        return prices_per_million(self.price_in, self.price_out)

    def budget(self) -> Budget:
        """What a run may ask and spend."""
        from factormodels.extraction.language_model.limits import Budget

        return Budget(self.max_calls, self.max_cost)
