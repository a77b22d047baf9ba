"""The interface that every retriever keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from factormodels.errors import InputError

CONTEXT_CHARACTERS = 4000
"""FactReasoner's cap on the text of a context (section 4)."""


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
    """What came of one query.

    Attributes:
        passages: the passages found, best first.
        failures: one sentence, without keys, for each request that failed for good: the search
            itself (then there is no passage) or a page (then its snippet stands for it). Counted
            and shown; a search that finds nothing is no failure.
        dropped: one sentence for each page that was left out, others having taken its place
            where there were any.
        searched: whether the search itself was answered; otherwise nobody knows what there is.
        refused: whether it was refused in a way that does not pass by itself, as for a wrong key.
    """

    passages: tuple[Passage, ...]
    failures: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    searched: bool = True
    refused: bool = False


class Retriever(Protocol):
    """Anything that finds passages for queries."""

    @property
    def name(self) -> str:
        """The retriever's name in tables and manifests."""
        ...

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """What each query finds, in order; a failure is a value, no exception."""
        ...


def checked_top_k(top_k: int) -> int:
    """Number of passages per query.

    Raises:
        InputError: if it is not a whole number from 1.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise InputError(f"the number of passages per query is {top_k!r}; give one from 1")
    return top_k
