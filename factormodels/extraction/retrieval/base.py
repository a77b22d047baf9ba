"""Interface of retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from factormodels.errors import InputError

CONTEXT_CHARACTERS = 4000
"""FactReasoner's maximum length of the text of a context, in characters (section 4)."""

TOP_K = 3
"""Passages per query of retrievers over documents, as FactReasoner retrieves (section 4)."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved passage of evidence: a context before it has an id.

    Attributes:
        title: title of the page or document.
        link: its address.
        snippet: a short extract, such as a search engine's.
        text: the passage.
    """

    title: str
    link: str
    snippet: str
    text: str


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The result of a query.

    Attributes:
        passages: the passages found, best first.
        failures: one sentence, without keys, for each permanently failed request: the search itself
            (there is then no passage) or a page (replaced by its snippet). Counted and shown; a
            search without results is not a failure.
        dropped: one sentence for each page that was left out and replaced by others, if there were
            any.
        searched: whether the search itself was answered; otherwise the results are unknown.
        refused: whether it was refused permanently, as for a wrong key.
    """

    passages: tuple[Passage, ...]
    failures: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    searched: bool = True
    refused: bool = False


class Retriever(Protocol):
    """Protocol of retrievers: anything that finds passages for queries."""

    @property
    def name(self) -> str:
        """The retriever's name in tables and manifests."""
        ...

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """Return the result of each query, in order; failures are part of the result."""
        ...


def checked_top_k(top_k: int) -> int:
    """Return the number of passages per query after validation.

    Raises:
        InputError: if it is not a whole number from 1.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise InputError(f"the number of passages per query is {top_k!r}; give one from 1")
    return top_k
