"""From web pages to passages: their beginnings, as in FactReasoner, or their best chunks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from factormodels.errors import InputError
from factormodels.extraction.http.requests import HttpSettings, RequestFailed, request
from factormodels.extraction.retrieval.base import CONTEXT_CHARACTERS, Passage, Retrieved
from factormodels.extraction.retrieval.bm25 import ChunkIndex
from factormodels.extraction.retrieval.chunks import ChunkSettings, split_document
from factormodels.extraction.retrieval.documents import page_text
from factormodels.extraction.retrieval.pdf import is_pdf, pdf_text

if TYPE_CHECKING:
    import httpx

Reading = Literal["snippet", "head", "chunks"]
"""The part of a page that becomes a context: the search engine's snippet; its first 4,000
characters (FactReasoner, section 4); or the best chunks by BM25 of all pages of a query (FaStfact,
section 4.3)."""

PAGE_CHARACTERS = 200_000
"""Maximum characters of a page's text, about forty pages of a book."""

_TAG = re.compile(r"<[^>]*>")
_META_CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?\s*([\w-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hit:
    """Result of a search.

    Attributes:
        title: title of the page.
        link: its address.
        snippet: the search engine's extract, plain text.
    """

    title: str
    link: str
    snippet: str


def checked_reading(reading: str) -> Reading:
    """Return a valid name of a way to read pages.

    Raises:
        InputError: if it is unknown.
    """
    for known in get_args(Reading):
        if reading == known:
            return known  # type: ignore[no-any-return]
    raise InputError(
        f"the reading {reading!r} of pages is unknown; use one of {', '.join(get_args(Reading))}"
    )


def passages_of(
    query: str,
    pages: Sequence[tuple[Hit, str]],
    failures: Sequence[str],
    reading: Reading,
    top_k: int,
    chunks: ChunkSettings,
) -> Retrieved:
    """Return the passages from the pages of a query.

    Args:
        query: the query.
        pages: (hit, text of its page), best first; a page without text is replaced by its snippet.
        failures: failures so far.
        reading: the part of a page that becomes a passage.
        top_k: maximum number of passages.
        chunks: settings of chunks for the reading "chunks".
    """
    texts = [(hit, text.strip() or hit.snippet) for hit, text in pages]
    if reading == "chunks":
        cut = [
            Passage(hit.title, hit.link, hit.snippet, chunk)
            for hit, text in texts
            for chunk in split_document(text, chunks)
        ]
        best = ChunkIndex(tuple(passage.text for passage in cut)).best(query, top_k)
        return Retrieved(tuple(cut[index] for index in best), tuple(failures))
    whole = [
        Passage(
            hit.title,
            hit.link,
            hit.snippet,
            hit.snippet if reading == "snippet" else capped(text),
        )
        for hit, text in texts
    ]
    return Retrieved(tuple(passage for passage in whole if passage.text)[:top_k], tuple(failures))


def capped(text: str) -> str:
    """Return the beginning of a text, cut between words."""
    if len(text) <= CONTEXT_CHARACTERS:
        return text
    cut = text.rfind(" ", 0, CONTEXT_CHARACTERS + 1)
    return text[: cut if cut > 0 else CONTEXT_CHARACTERS].rstrip()


async def fetch_page(client: httpx.AsyncClient, link: str, settings: HttpSettings) -> str:
    """Return the text of a web page or of a PDF, at most `PAGE_CHARACTERS` of it.

    Raises:
        RequestFailed: if there is no answer, or it is not a page of text.
        MissingDependencyError: if pypdf or trafilatura is not installed.
    """
    body, charset = await request(client, "GET", link, settings)
    # Parsed in a thread, so that a slow page does not delay the time limits of others.
    return await asyncio.to_thread(_text, body, charset, link.partition("?")[0])


def _text(body: bytes, charset: str, location: str) -> str:
    if is_pdf(body):
        try:
            return pdf_text(body, PAGE_CHARACTERS)
        except ValueError as error:
            raise RequestFailed(f"{location}: {error}") from None
    if b"\0" in body[:1024]:
        raise RequestFailed(f"{location}: this is not a page of text")
    return page_text(_decoded(body, charset))[1][:PAGE_CHARACTERS]


def plain_snippet(html: str) -> str:
    """Return a search engine's extract without its markup."""
    from html import unescape

    return " ".join(unescape(_TAG.sub("", html)).split())


def _decoded(body: bytes, charset: str) -> str:
    declared = _META_CHARSET.search(body[:4096])
    for name in (charset, declared[1].decode("ascii") if declared else "", "utf-8"):
        try:
            return body.decode(name)
        # A server may name an invalid encoding, or one that is not for text ("idna", "undefined").
        except (LookupError, ValueError):
            continue
    return body.decode("utf-8", "replace")
