"""The litellm library: quiet, its answers bounded."""

from __future__ import annotations

import gc
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from factormodels.extraction.language_model.guarded_http import guard, guarded_session
from factormodels.extraction.optional_libraries import optional_module

_ENVIRONMENT = {
    # Prices come with the library and are fetched from nowhere.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # How many calls are under way is said by us; the library's own bound would be another.
    "AIOHTTP_CONNECTOR_LIMIT": "100000",
    "AIOHTTP_CONNECTOR_LIMIT_PER_HOST": "100000",
}
"""What the library reads when it is imported."""

_NEVER_AWAITED = r"coroutine '\w+\.\w*(completion|embedding)\w*' was never awaited"
"""What Python says of a call that was canceled while a thread of the library prepared it: a method
of a class. The library's functions that users call are none, so that an await they forget is
reported."""

_LASTING = "LastingClients"
_FOR_EVER = 10 * 365 * 86400
"""Seconds."""


def quiet_litellm() -> Any:
    """Litellm, which asks no network for prices, prints nothing and reports to nobody.

    The answers of servers are bounded, and redirects to other servers refused, as
    `factormodels.extraction.http.bounds` says.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    importing = nullcontext() if "litellm" in sys.modules else _no_collection()
    with _environment(_ENVIRONMENT), importing, warnings.catch_warnings():
        # Its types are completed with the first answer, and pydantic warns of one of them.
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
    """Have the library guard the clients of servers, and keep them while the process lasts.

    It would drop each after an hour and make another, without an end to the connections of the
    first, of which aiohttp complains on the standard error.
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
        # Clients of the libraries of OpenAI and Azure are built around this one.
        litellm.aclient_session = guarded_session(litellm)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Look for no circles of objects while the block runs.

    A million objects are made by the import, and all of them stay: looking through them again and
    again is a quarter of its time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Counting what is frozen takes as long as there is much of it: done once, after the import.
        if not gc.get_freeze_count():
            # All that is young counts as old now: the next collection does not look through it.
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    added = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
