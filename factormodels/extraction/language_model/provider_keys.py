"""Keys of providers: missing keys, and keys that a local server does not need."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Sequence

from factormodels.errors import InputError
from factormodels.extraction.http.addresses import host_of
from factormodels.extraction.language_model.litellm_library import quiet_litellm
from factormodels.extraction.language_model.model_parameters import provider_of

_NO_KEY = "none"
"""Placeholder for a key that is not needed but required by the provider's library."""

_REGION = "us-east-1"
"""Placeholder for a region."""


KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "cohere": ("COHERE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": (
        *("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY", "FIREWORKSAI_API_KEY"),
        "FIREWORKS_AI_TOKEN",
    ),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "together_ai": (
        *("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"),
        "TOGETHER_AI_TOKEN",
    ),
    "xai": ("XAI_API_KEY",),
}
"""Names of environment variables of keys, for providers that always need one."""

_ADDRESSES = ("API_BASE", "BASE_URL", "API_BASE_URL")
"""Suffixes of environment variables that replace a provider's server."""


def require_key(model: str, api_base: str | None) -> None:
    """Refuse a model whose provider needs a key that is missing, without loading a library.

    The libraries of providers take seconds to load, and a missing key is the most common mistake.
    Unlisted providers are detected by a first call.

    Raises:
        InputError: if no call can succeed without a key.
    """
    provider, _, name = model.partition("/")
    names = KEYS.get(provider, ()) if name else ()
    if not names or api_base is not None or any(os.environ.get(each) for each in names):
        return
    if not any(os.environ.get(f"{provider.upper()}_{end}") for end in _ADDRESSES):
        raise no_key(model, names[:1])


def no_key(model: str, names: Sequence[str]) -> InputError:
    """Return the error of a model that needs a key."""
    return InputError(
        f"the model {model!r} needs {', '.join(names)} in the environment; set it, or replay an "
        "earlier run"
    )


def missing_keys(model: str, api_base: str | None) -> list[str]:
    """Return the environment variables that a provider's tools read for keys, if none of them is
    set.

    Raises:
        MissingDependencyError: if litellm is not installed.
    """
    checked = quiet_litellm().validate_environment(model=model)
    # A given address need not be in the environment.
    names = [
        name
        for name in checked.get("missing_keys") or []
        if api_base is None or not name.endswith("API_BASE")
    ]
    # One of several names for a key suffices.
    return [] if any(os.environ.get(name) for name in names) else names


def unneeded_keys(model: str, api_base: str | None) -> dict[str, str]:
    """Return placeholder arguments for missing keys that a server on this machine does not need."""
    if api_base is None or not is_on_this_machine(api_base):
        return {}
    if not provider_of(model)[0].startswith("bedrock"):
        return {"api_key": _NO_KEY} if missing_keys(model, api_base) else {}
    if not missing_keys(model, api_base) or any(
        os.environ.get(name) for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")
    ):
        return {}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or _REGION
    return {
        "aws_access_key_id": _NO_KEY,
        "aws_secret_access_key": _NO_KEY,
        "aws_region_name": region,
    }


def is_on_this_machine(address: str) -> bool:
    """Return whether a URL's host is this machine."""
    host = host_of(address)
    if host == "localhost" or host.endswith(".localhost") or host == socket.gethostname().lower():
        return True
    try:
        known = ipaddress.ip_address(host)
    except ValueError:
        return False
    return known.is_loopback or known.is_unspecified
