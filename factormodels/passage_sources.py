"""Sources of passages, and their priors: weaker sources have smaller ones.

A passage's domain is the host of its address, without "www."; its source is the name that the
record of the response states for it (`SOURCES_KEY`), or else its domain.

Source: FactReasoner, section 3.1: the prior of a context is smaller the less reliable its source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

from factormodels.claims import Context
from factormodels.errors import InputError
from factormodels.validation import validated_probability

PassageKey = Literal["domain", "source"]
"""What identifies the source of a passage."""

SOURCES_KEY = "sources"
"""Metadata key of the names of sources, by id of context."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://(?P<authority>[^/?#\\]*)", re.I)
_HOST = re.compile(r"[^\s\[\]:@]+")

OTHERS = "*"
"""Name that stands for all sources without a prior of their own."""


def domain_of(link: str) -> str:
    """Return the host of an address in lower case, without "www."; "" for what is no address."""
    address = _ADDRESS.match(link.strip())
    if address is None:
        return ""
    # What stands before "@" names a user, whatever it looks like.
    host = address["authority"].rpartition("@")[2].partition(":")[0].casefold()
    return host.removeprefix("www.").rstrip(".") if _HOST.fullmatch(host) else ""


def source_of(context: Context, by: PassageKey, metadata: Mapping[str, Any], name: str = "") -> str:
    """Return the source of a passage; "" if nothing states it.

    Args:
        context: the passage.
        by: what identifies its source.
        metadata: those of its response.
        name: id of the passage in the response as recorded, where a view gave it another.
    """
    stated = metadata.get(SOURCES_KEY) if by == "source" else None
    named = stated.get(context.id, stated.get(name)) if isinstance(stated, Mapping) else None
    if isinstance(named, str) and named.strip():
        return named.strip()
    return domain_of(context.link)


def priors_text(priors: Mapping[str, float]) -> str:
    """Return priors of sources as one text, ``blog=0.6,wikipedia.org=0.95``, sorted by name.

    Raises:
        InputError: if there is none, or a name holds a comma or an equals sign.
    """
    if not priors:
        raise InputError("there is no prior; give some, such as wikipedia.org=.95,blog=.6")
    for name in priors:
        if not name or "," in name or "=" in name:
            raise InputError(
                f"the source {name!r} is empty or holds a comma or '='; give it another name"
            )
    return ",".join(f"{name}={priors[name]!r}" for name in sorted(priors))


@lru_cache(maxsize=64)
def parse_priors(text: str) -> Mapping[str, float]:
    """Return the priors of sources, by name in lower case, that a text lists.

    Args:
        text: pairs such as ``wikipedia.org=.95,blog=.6``; `OTHERS` stands for all other sources.

    Raises:
        InputError: for a pair without "=", a name that occurs twice, or a prior outside [0, 1].
    """
    priors: dict[str, float] = {}
    for pair in text.split(","):
        name, equals, number = (part.strip() for part in pair.rpartition("="))
        if not equals or not name:
            raise InputError(f"{pair.strip()!r} is no prior of a source; give it as NAME=P")
        try:
            value = float(number)
        except ValueError:
            raise InputError(
                f"the prior {number!r} of {name} is no number; give one from 0 to 1"
            ) from None
        if name.casefold() in priors:
            raise InputError(f"the source {name!r} has two priors; keep one")
        priors[name.casefold()] = validated_probability(value, f"the prior of {name}")
    return MappingProxyType(priors)


def name_in(source: str, by: PassageKey, priors: Mapping[str, float]) -> str | None:
    """Return the name under which the priors list a source; None if they do not.

    A domain is listed by its own name or by one above it: en.wikipedia.org by wikipedia.org. A
    source without a name is listed by `OTHERS` alone.
    """
    name = source.casefold()
    while name:
        if name in priors:
            return name
        name = name.partition(".")[2] if by == "domain" else ""
    return OTHERS if OTHERS in priors else None
