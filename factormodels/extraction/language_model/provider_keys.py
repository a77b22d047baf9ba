"""Keys of providers: which are missing, and which a server on this machine does not need."""

from __future__ import annotations

import ipaddress
import os
import socket

from factormodels.extraction.addresses import host_of
from factormodels.extraction.language_model.litellm_library import quiet_litellm
from factormodels.extraction.language_model.model_parameters import provider_of

_NO_KEY = "none"
"""What stands for a key where none is needed: the libraries of some providers want a text."""

_REGION = "us-east-1"
"""What stands for a region likewise."""


def missing_keys(model: str, api_base: str | None) -> list[str]:
    """Names that a provider's tools look for in the environment, where none of them is set.

    Raises:
        MissingDependencyError: if litellm is not installed.
    """
    found = quiet_litellm().validate_environment(model=model)
    # An address that is given need not stand in the environment.
    names = [
        name
        for name in found.get("missing_keys") or []
        if api_base is None or not name.endswith("API_BASE")
    ]
    # Of several names for a key one is enough.
    return [] if any(os.environ.get(name) for name in names) else names


def unneeded_keys(model: str, api_base: str | None) -> dict[str, str]:
    """Arguments that stand for missing keys, where a server on this machine needs none."""
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
    """Whether a URL's host is this machine."""
    host = host_of(address)
    if host == "localhost" or host.endswith(".localhost") or host == socket.gethostname().lower():
        return True
    try:
        known = ipaddress.ip_address(host)
    except ValueError:
        return False
    return known.is_loopback or known.is_unspecified
