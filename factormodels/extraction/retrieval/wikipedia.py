"""Wikipedia as a source of evidence, through its web API."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from factormodels.errors import InputError
from factormodels.extraction.retrieval.base import Retrieved, checked_top_k
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.retrieval.http import (
    HttpSettings,
    RequestFailed,
    http_client,
    request,
)
from factormodels.extraction.retrieval.json_answers import json_answer, objects, text_of
from factormodels.extraction.retrieval.pages import (
    Hit,
    Reading,
    checked_reading,
    passages_of,
    plain_snippet,
)

if TYPE_CHECKING:
    import httpx

QUERY_CHARACTERS = 300
"""The longest search that the API takes."""


@dataclass(frozen=True)
class WikipediaRetriever:
    """Searches Wikipedia and reads the pages found (FactReasoner, section 4, with k = 3).

    Attributes:
        top_k: passages per query.
        reading: what of a page becomes a passage; see `factormodels.extraction.retrieval.pages`.
        pages: pages that are read per query; as many as passages if None.
        language: the Wikipedia, by its code.
        base_url: address of the API; "{language}" in it stands for the language.
        http: limits of requests.
        chunks: how pages are cut for the reading "chunks".
        name: the retriever's name in tables and manifests.
    """

    top_k: int = 3
    reading: Reading = "head"
    pages: int | None = None
    language: str = "en"
    base_url: str = "https://{language}.wikipedia.org/w/api.php"
    http: HttpSettings = field(default_factory=HttpSettings)
    chunks: ChunkSettings = field(default_factory=ChunkSettings)
    name: str = "wikipedia"

    def __post_init__(self) -> None:
        checked_top_k(self.top_k)
        checked_reading(self.reading)
        if self.pages is not None:
            checked_top_k(self.pages)
        if not self.language.replace("-", "").isalnum():
            raise InputError(f"{self.language!r} is no code of a language; use one like en")

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """Return what each query finds; several are open at once."""
        with (
            http_client(self.http) as client,
            ThreadPoolExecutor(self.http.concurrency) as threads,
        ):
            return list(threads.map(lambda query: self._search(client, query), queries))

    def _search(self, client: httpx.Client, query: str) -> Retrieved:
        if not query.strip():
            return Retrieved(())
        try:
            answer = self._ask(
                client,
                list="search",
                srsearch=query[:QUERY_CHARACTERS],
                srlimit=str(self.pages or self.top_k),
                srprop="snippet",
            )
        except RequestFailed as error:
            return Retrieved((), (str(error),))
        hits = [
            Hit(text_of(found, "title"), "", plain_snippet(text_of(found, "snippet")))
            for found in objects(answer.get("query"), "search")
        ]
        read: list[tuple[Hit, str]] = []
        failures: list[str] = []
        for hit in hits:
            try:
                read.append(self._page(client, hit))
            except RequestFailed as error:
                failures.append(str(error))
                read.append((hit, ""))
        return passages_of(query, read, failures, self.reading, self.top_k, self.chunks)

    def _page(self, client: httpx.Client, hit: Hit) -> tuple[Hit, str]:
        answer = self._ask(
            client,
            titles=hit.title,
            prop="extracts|info",
            explaintext="1",
            inprop="url",
            redirects="1",
        )
        page = next(iter(objects(answer.get("query"), "pages")), {})
        return Hit(hit.title, text_of(page, "fullurl"), hit.snippet), text_of(page, "extract")

    def _ask(self, client: httpx.Client, **params: str) -> dict[str, Any]:
        url = self.base_url.replace("{language}", self.language)
        fixed = {"action": "query", "format": "json", "formatversion": "2"}
        return json_answer(url, *request(client, "GET", url, self.http, params={**fixed, **params}))
