"""Retriever over HTTP: a search, the pages that it finds, and the passages taken from them.

Subclasses of `WebRetriever` implement the interface of each service.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.http.requests import (
    HttpSettings,
    RequestFailed,
    http_client,
    request,
)
from factormodels.extraction.retrieval.base import Retrieved, checked_top_k
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.retrieval.pages import Hit, Reading, checked_reading, passages_of
from factormodels.extraction.retrieval.usefulness import repeats, why_useless
from factormodels.extraction.retrieval.web_cache import PAGES, SEARCHES, WebStore

if TYPE_CHECKING:
    import httpx

HITS = 15
"""Number of results to request, since about one page in three cannot be read."""

_OPERATORS = re.compile(r"(?<!\w)[-+~!](?=\w)|[\"“”„«»*?~|\\()\[\]{}<>^]|(?<=\w):")
_CONNECTIVES = re.compile(r"\b(?:AND|OR|NOT|AROUND)\b")


@dataclass(frozen=True)
class WebRetriever(ABC):
    """Base class of retrievers that search the web with a service and read the resulting pages.

    Pages are read in order of rank until enough of them are usable. A page that blocks access,
    contains only notices or repeats the response is not usable. If usable pages are too few, the
    search engine's snippets replace the others, except for pages that repeat the response.

    Attributes:
        top_k: passages per query.
        reading: the part of a page that becomes a passage; see
            `factormodels.extraction.retrieval.pages`.
        pages: number of usable pages to read per query; `top_k` if None.
        results: number of results to request from a search.
        base_url: address of the service.
        http: limits of requests.
        chunks: settings of chunks for the reading "chunks".
        name: the retriever's name in tables and manifests.
        store: cache of searches and pages.
        response: the response that is checked; a page that repeats it is not evidence.

    Raises:
        InputError: for a number below 1 or an unknown reading.
    """

    top_k: int
    reading: Reading = "head"
    pages: int | None = None
    results: int = HITS
    base_url: str = ""
    http: HttpSettings = field(default_factory=HttpSettings)
    chunks: ChunkSettings = field(default_factory=ChunkSettings)
    name: str = ""
    store: WebStore = field(default_factory=WebStore, repr=False, compare=False)
    response: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        checked_top_k(self.top_k)
        checked_top_k(self.results)
        checked_reading(self.reading)
        if self.pages is not None:
            checked_top_k(self.pages)

    def checking(self, response: str) -> WebRetriever:
        """Return this retriever for the claims of a response."""
        return replace(self, response=response)

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """Return the result of each query, in order, with concurrent searches.

        Raises:
            InputError: if the service needs a key that is not in the environment or, in a replay,
                for a search or page that is not cached.
        """
        return run_until_done(self._retrieve(queries))

    def headers(self) -> Mapping[str, str]:
        """Return headers of a search, such as a key; they are not sent to pages."""
        return {}

    @abstractmethod
    async def hits(
        self, client: httpx.AsyncClient, headers: Mapping[str, str], query: str, count: int
    ) -> list[Hit]:
        """Return at most `count` results of a search, best first.

        Raises:
            RequestFailed: if the search fails permanently.
        """

    @abstractmethod
    async def page(self, client: httpx.AsyncClient, hit: Hit) -> tuple[str, str]:
        """Return (address, text) of the page of a result.

        Raises:
            RequestFailed: if the page cannot be read.
        """

    def service(self) -> str:
        """Address that searches are sent to."""
        return self.base_url

    async def _retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        headers = {} if self.store.replay else self.headers()
        slots = asyncio.Semaphore(self.http.concurrency)
        async with http_client(self.http) as client:
            retrieve = partial(self._retrieved, client, slots, headers)
            return await each(retrieve, queries, self.http.concurrency)

    async def _retrieved(
        self,
        client: httpx.AsyncClient,
        slots: asyncio.Semaphore,
        headers: Mapping[str, str],
        query: str,
    ) -> Retrieved:
        plain = plain_query(query)
        if not plain:
            return Retrieved(())

        async def search() -> list[list[str]]:
            async with slots:
                hits = await self.hits(client, headers, plain, self.results)
            return [[hit.title, hit.link, hit.snippet] for hit in hits]

        facts = {"query": plain, "service": self.service(), "results": self.results}
        try:
            hits = [Hit(*hit) for hit in await self.store.get(SEARCHES, facts, search)]
        except RequestFailed as error:
            return Retrieved((), (str(error),), searched=False, refused=error.lasting)
        return await self._read(client, slots, plain, hits)

    async def _read(
        self, client: httpx.AsyncClient, slots: asyncio.Semaphore, query: str, hits: Sequence[Hit]
    ) -> Retrieved:
        wanted = self.pages or self.top_k
        good: dict[int, tuple[Hit, str]] = {}
        poor: dict[int, tuple[Hit, str]] = {}
        failures: list[str] = []
        dropped: list[str] = []
        waiting = list(dict.fromkeys(hits))
        ranks = {hit: rank for rank, hit in enumerate(waiting)}
        while waiting and len(good) < wanted:
            batch = [waiting.pop(0) for _ in range(min(len(waiting), wanted - len(good)))]
            for hit, (link, text, failure) in zip(
                batch,
                await asyncio.gather(*(self._page(client, slots, hit) for hit in batch)),
                strict=True,
            ):
                page = Hit(hit.title, link or hit.link, hit.snippet), text
                if self.reading == "snippet":
                    good[ranks[hit]] = page
                elif failure:
                    failures.append(failure)
                    poor[ranks[hit]] = page
                elif repeats(text, self.response):
                    dropped.append(f"{page[0].link or hit.title}: it repeats the response")
                elif reason := why_useless(text):
                    dropped.append(f"{page[0].link or hit.title}: {reason}")
                    poor[ranks[hit]] = page[0], ""
                else:
                    good[ranks[hit]] = page
        if len(good) >= wanted:
            # Failed pages were replaced by equally good ones, so nothing is missing.
            dropped, failures = [*dropped, *failures], []
        for rank in list(poor)[: wanted - len(good)]:
            good[rank] = poor[rank]
        read = [good[rank] for rank in sorted(good)]
        made = passages_of(query, read, failures, self.reading, self.top_k, self.chunks)
        return replace(made, dropped=tuple(dropped))

    async def _page(
        self, client: httpx.AsyncClient, slots: asyncio.Semaphore, hit: Hit
    ) -> tuple[str, str, str]:
        """Return (address, text, failure) of a page; request nothing if snippets suffice."""
        if self.reading == "snippet" and hit.link:
            return hit.link, "", ""

        async def fetch() -> list[str]:
            async with slots:
                return list(await self.page(client, hit))

        facts = {"page": hit.link or hit.title, "service": "" if hit.link else self.service()}
        try:
            link, text = await self.store.get(PAGES, facts, fetch)
        except RequestFailed as error:
            return hit.link, "", str(error)
        return link, text, ""


def plain_query(text: str) -> str:
    """Return a text as a query for its words, without search operators.

    Operators are quotation marks, brackets, wildcards, signs before a word, a colon after a word as
    in "site:example", and connectives in capitals. Claims contain them by chance, and would then
    find nothing or something else.
    """
    # Lone surrogates, which JSON may contain, cannot be sent.
    text = text.encode("utf-8", "replace").decode()
    words = _CONNECTIVES.sub(lambda match: match[0].lower(), _OPERATORS.sub(" ", text))
    return " ".join(words.split())


async def request_json(
    client: httpx.AsyncClient, method: str, url: str, settings: HttpSettings, **parts: Any
) -> dict[str, Any]:
    """Return the JSON object that a service answers; `parts` are those of `request`.

    Raises:
        RequestFailed: if there is no answer, it is not a JSON object, or it reports an error.
    """
    body, charset = await request(client, method, url, settings, **parts)
    try:
        value = json.loads(body.decode(charset or "utf-8"))
    except (ValueError, LookupError, RecursionError):
        raise RequestFailed(f"{url}: the answer is not JSON", lasting=False) from None
    if not isinstance(value, dict):
        raise RequestFailed(f"{url}: the answer is not a JSON object", lasting=False)
    if "error" in value:
        raise RequestFailed(f"{url}: the service reports an error", lasting=False)
    return value


def objects(value: object, key: str) -> list[dict[str, Any]]:
    """Return the objects in the list at `key`; none if there is no such list."""
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def text_of(value: dict[str, Any], key: str) -> str:
    """Return the text at `key`; empty if there is none."""
    text = value.get(key)
    return text if isinstance(text, str) else ""
