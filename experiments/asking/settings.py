"""Settings of the language model, its calls, and the web search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer

from experiments.settings import USUAL, Option, Settings
from experiments.settings.limits import Calls, Count, DryRun, FilePath, Positive, Price, WebAddress
from factormodels.extraction.http.requests import HttpSettings
from factormodels.extraction.language_model.limits import Budget
from factormodels.extraction.language_model.litellm_model import TIMEOUT, LitellmSettings
from factormodels.extraction.language_model.prices import Prices, prices_per_million
from factormodels.extraction.language_model.provider_keys import is_on_this_machine

LOCAL_TIMEOUT = 600.0
"""Default timeout in seconds for a local server, which may have few processors and answer
sequentially."""


def name_of_model(model: Any) -> str | None:
    """Name of a model in any accepted form."""
    if isinstance(model, LitellmSettings):
        return model.model
    return model if model is None or isinstance(model, str) else str(model.name)


Model = Annotated[Any, Option("NAME"), PlainSerializer(name_of_model)]
"""A language model: its name as litellm spells it, litellm settings, or an object with the methods
of `LanguageModel`."""


class AnswerSettings(Settings):
    """Language model.

    Options of a language model's answers: address, cache, pace, prices and limits.
    """

    api_base: Annotated[WebAddress | None, Option("URL", usual=True)] = None
    """Base URL of a server with a compatible API."""

    cache: FilePath = Path("answers.sqlite")
    """Cache file of answers and searches, which are then not repeated."""

    replay: bool = False
    """Use only cached answers; send nothing."""

    concurrency: Count = 16
    """Number of concurrent calls."""

    timeout: Annotated[Positive | None, Option("SECONDS")] = None
    """Seconds to wait for an answer: by default 120, or 600 for a server on this machine."""

    requests_per_minute: Annotated[Positive | None, Option("N")] = None
    """Largest number of requests per minute, evenly spaced."""

    tokens_per_minute: Annotated[Positive | None, Option("N")] = None
    """Largest number of tokens per minute, input and output together."""

    price_in: Annotated[Price | None, Option("USD")] = None
    """Price of a million input tokens; litellm's price by default."""

    price_out: Annotated[Price | None, Option("USD")] = None
    """Price of a million output tokens."""

    max_cost: Annotated[Price | None, Option("USD", usual=True)] = None
    """Stop before the cost exceeds this limit. You can continue later."""

    max_calls: Calls | None = None
    """Stop after this many calls; you can continue later."""

    @property
    def prices(self) -> Prices | None:
        """Prices of tokens; None for litellm's prices."""
        return prices_per_million(self.price_in, self.price_out)

    @property
    def budget(self) -> Budget:
        """Limits on calls and spending."""
        return Budget(self.max_calls, self.max_cost)

    @property
    def _is_local(self) -> bool:
        return self.api_base is not None and is_on_this_machine(self.api_base)

    def litellm(self, name: str) -> LitellmSettings:
        """Litellm settings for a model name."""
        return LitellmSettings(
            name,
            self.api_base,
            self.concurrency,
            self.timeout or (LOCAL_TIMEOUT if self._is_local else TIMEOUT),
            prices=self.prices,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
        )


class AskingSettings(AnswerSettings):
    """Language model.

    Options of `AnswerSettings`, with the model, its prompts and the dry run.
    """

    model: Annotated[Model, USUAL] = None
    """Language model as litellm spells it, such as openai/NAME. Its key comes from the environment.
    """

    prompts: Annotated[FilePath | None, Option("DIR")] = None
    """Folder of prompts that replace the default prompts by name; `factormodels list prompts` lists
    the defaults."""

    dry_run: DryRun = False


class WebSettings(Settings):
    """Requests to the web.

    Options of requests to web pages and search engines.
    """

    search_base: Annotated[WebAddress | None, Option("URL")] = None
    """Base URL of your own search server, with the same API as the service."""

    price_search: Annotated[Price | None, Option("USD")] = None
    """Price of one web search."""

    contact: str = ""
    """Your e-mail address or web page, sent to web servers as Wikipedia requests."""

    max_wait: Annotated[float, Field(ge=0), Option("SECONDS")] = 300.0
    """Longest wait to accept when a web server requests one."""

    allow_private_hosts: bool = False
    """Also fetch pages from this machine and private networks."""

    @property
    def http(self) -> HttpSettings:
        """Limits of web requests."""
        return HttpSettings(
            longest_wait=self.max_wait,
            contact=self.contact,
            allow_private_hosts=self.allow_private_hosts,
        )
