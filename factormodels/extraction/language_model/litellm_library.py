"""Access to the litellm library, with output silenced and answers limited."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from factormodels.extraction.language_model.guarded_http import guard, guarded_session
from factormodels.extraction.optional_libraries import optional_module
from factormodels.garbage_collection import no_collection

_ENVIRONMENT = {
    # Use the prices that come with the library instead of fetching them.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # Concurrency is limited by our own settings, not by the library.
    "AIOHTTP_CONNECTOR_LIMIT": "100000",
    "AIOHTTP_CONNECTOR_LIMIT_PER_HOST": "100000",
}
"""Environment variables that the library reads at import."""

_NEVER_AWAITED = r"coroutine '\w+\.\w*(completion|embedding)\w*' was never awaited"
"""Python's warning for a call that was canceled while a thread of the library prepared it. It
matches methods only, so a missing await of one of the library's public functions is still
reported."""

_LASTING = "LastingClients"
_FOR_EVER = 10 * 365 * 86400
"""Seconds."""


def quiet_litellm() -> Any:
    """Return the litellm module, set to fetch no prices, print nothing and send no telemetry.

    Answers of servers are limited, and redirects to other servers refused, as in
    `factormodels.extraction.http.bounds`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    importing = nullcontext() if "litellm" in sys.modules else no_collection()
    with _environment(_ENVIRONMENT), importing, warnings.catch_warnings():
        # Pydantic warns of a type that is completed with the first answer.
        warnings.simplefilter("ignore")
        litellm = optional_module("litellm", "llm")
        litellm.ModelResponse()
    warnings.filterwarnings("ignore", _NEVER_AWAITED, RuntimeWarning)
    _keep_clients(litellm)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _keep_clients(litellm: Any) -> None:
    """Make the library guard its HTTP clients, and keep them for the lifetime of the process.

    By default it would drop each client after an hour and create another without closing the
    connections of the first, for which aiohttp prints warnings.
    """
    known = type(litellm.in_memory_llm_clients_cache)
    if known.__name__ == _LASTING:
        return

    def set_cache(self: Any, key: str, value: object, **options: Any) -> Any:
        guard(value)
        return known.set_cache(self, key, value, **{**options, "ttl": _FOR_EVER})

    litellm.in_memory_llm_clients_cache = type(_LASTING, (known,), {"set_cache": set_cache})()
    for shared in (litellm.module_level_client, litellm.module_level_aclient):
        guard(shared)
    if litellm.aclient_session is None:
        # The clients of the OpenAI and Azure libraries use this session.
        litellm.aclient_session = guarded_session(litellm)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    added = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
