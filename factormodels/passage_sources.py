"""Sources of passages and their priors: less reliable sources have smaller priors.

A passage's domain is the host of its address, without "www."; its source is the name that the
record of the response states for it (`SOURCES_KEY`), or else its domain; its kind is "passage". The
source of a sampled answer is always "sample".

Source: FactReasoner, section 3.1: the prior of a context is smaller the less reliable its source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

from factormodels.claims import Context, ContextKind
from factormodels.errors import InputError
from factormodels.validation import validated_probability

PassageKey = Literal["domain", "source", "kind"]
"""Ways to identify the source of a passage."""

SOURCES_KEY = "sources"
"""Metadata key of the names of sources, by id of context."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://(?P<authority>[^/?#\\]*)", re.I)
_HOST = re.compile(r"[^\s\[\]:@]+")

OTHERS = "*"
"""Name that denotes all sources without a prior of their own."""


def domain_of(link: str) -> str:
    """Return the host of an address in lower case, without "www."; "" if the text is not an
    address.
    """
    address = _ADDRESS.match(link.strip())
    if address is None:
        return ""
    # The part before "@" is the name of a user, even if it looks like a host.
    host = address["authority"].rpartition("@")[2].partition(":")[0].casefold()
    return host.removeprefix("www.").rstrip(".") if _HOST.fullmatch(host) else ""


def source_of(context: Context, by: PassageKey, metadata: Mapping[str, Any], name: str = "") -> str:
    """Return the source of a passage; "" if nothing states it.

    Args:
        context: the passage.
        by: how its source is identified.
        metadata: metadata of its response.
        name: id of the passage in the recorded response, if a view has renamed it.
    """
    if by == "kind" or context.kind is ContextKind.SAMPLE:
        return str(context.kind)
    stated = metadata.get(SOURCES_KEY) if by == "source" else None
    named = stated.get(context.id, stated.get(name)) if isinstance(stated, Mapping) else None
    if isinstance(named, str) and named.strip():
        return named.strip()
    return domain_of(context.link)


def priors_text(priors: Mapping[str, float]) -> str:
    """Return priors of sources as one text, ``blog=0.6,wikipedia.org=0.95``, sorted by name.

    Raises:
        InputError: if there are no priors, or a name contains a comma or an equals sign.
    """
    if not priors:
        raise InputError("no priors are given; give some, such as wikipedia.org=.95,blog=.6")
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
        text: pairs such as ``wikipedia.org=.95,blog=.6``; `OTHERS` means all other sources.

    Raises:
        InputError: for a pair without "=", a name that occurs twice, or a prior outside [0, 1].
    """
    priors: dict[str, float] = {}
    for pair in text.split(","):
        name, equals, number = (part.strip() for part in pair.rpartition("="))
        if not equals or not name:
            raise InputError(f"{pair.strip()!r} is not a prior of a source; write NAME=P")
        try:
            value = float(number)
        except ValueError:
            raise InputError(
                f"the prior {number!r} of {name} is not a number; give one from 0 to 1"
            ) from None
        if name.casefold() in priors:
            raise InputError(f"the source {name!r} has two priors; keep one")
        priors[name.casefold()] = validated_probability(value, f"the prior of {name}")
    return MappingProxyType(priors)


def name_in(source: str, by: PassageKey, priors: Mapping[str, float]) -> str | None:
    """Return the name under which the priors list a source; None if they do not.

    A domain matches its own name or the name of a parent domain: en.wikipedia.org matches
    wikipedia.org. A source without a name matches only `OTHERS`.
    """
    name = source.casefold()
    while name:
        if name in priors:
            return name
        name = name.partition(".")[2] if by == "domain" else ""
    return OTHERS if OTHERS in priors else None
