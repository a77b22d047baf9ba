"""The retriever over HTTP: a search, the pages that it finds, and what of them becomes evidence.

What a service asks and answers stands in a subclass of `WebRetriever`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from factormodels.extraction.retrieval.base import Retrieved, checked_top_k
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.retrieval.http import (
    HttpSettings,
    RequestFailed,
    http_client,
    request,
)
from factormodels.extraction.retrieval.pages import Hit, Reading, checked_reading, passages_of

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True)
class WebRetriever(ABC):
    """Searches the web by a service and reads the pages found.

    Attributes:
        top_k: passages per query.
        reading: what of a page becomes a passage; see `factormodels.extraction.retrieval.pages`.
        pages: pages that are read per query; as many as passages if None.
        base_url: address of the service.
        http: limits of requests.
        chunks: how pages are cut for the reading "chunks".
        name: the retriever's name in tables and manifests.

    Raises:
        InputError: for a number below 1 or an unknown reading.
    """

    top_k: int
    reading: Reading = "head"
    pages: int | None = None
    base_url: str = ""
    http: HttpSettings = field(default_factory=HttpSettings)
    chunks: ChunkSettings = field(default_factory=ChunkSettings)
    name: str = ""

    def __post_init__(self) -> None:
        checked_top_k(self.top_k)
        checked_reading(self.reading)
        if self.pages is not None:
            checked_top_k(self.pages)

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """What each query finds, in order; several are open at once.

        Raises:
            InputError: if the service needs a key and the environment holds none.
        """
        headers = self.headers()
        with (
            http_client(self.http) as client,
            ThreadPoolExecutor(self.http.concurrency) as threads,
        ):
            return list(threads.map(partial(self._retrieved, client, headers), queries))

    def headers(self) -> Mapping[str, str]:
        """Headers of a search, such as a key; pages are read without them."""
        return {}

    @abstractmethod
    def hits(
        self, client: httpx.Client, headers: Mapping[str, str], query: str, count: int
    ) -> list[Hit]:
        """At most `count` results of a search, best first.

        Raises:
            RequestFailed: if the search fails for good.
        """

    @abstractmethod
    def page(self, client: httpx.Client, hit: Hit) -> tuple[Hit, str]:
        """A result, with what its page adds to it, and the text of the page.

        Raises:
            RequestFailed: if the page cannot be read.
        """

    def _retrieved(self, client: httpx.Client, headers: Mapping[str, str], query: str) -> Retrieved:
        if not query.strip():
            return Retrieved(())
        try:
            hits = self.hits(client, headers, query, self.pages or self.top_k)
        except RequestFailed as error:
            return Retrieved((), (str(error),))
        read: list[tuple[Hit, str]] = []
        failures: list[str] = []
        for hit in hits:
            try:
                read.append(self.page(client, hit))
            except RequestFailed as error:
                failures.append(str(error))
                read.append((hit, ""))
        return passages_of(query, read, failures, self.reading, self.top_k, self.chunks)


def request_json(
    client: httpx.Client, method: str, url: str, settings: HttpSettings, **parts: Any
) -> dict[str, Any]:
    """The JSON object that a service answers; `parts` as `request` takes them.

    Raises:
        RequestFailed: if there is no answer, or it is no JSON object, or reports an error.
    """
    body, charset = request(client, method, url, settings, **parts)
    try:
        value = json.loads(body.decode(charset or "utf-8"))
    except (ValueError, LookupError, RecursionError):
        raise RequestFailed(f"{url}: the answer is not JSON") from None
    if not isinstance(value, dict):
        raise RequestFailed(f"{url}: the answer is not a JSON object")
    if "error" in value:
        raise RequestFailed(f"{url}: the service reports an error")
    return value


def objects(value: object, key: str) -> list[dict[str, Any]]:
    """The objects in the list at `key`; none where there is no such list."""
    found = value.get(key) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def text_of(value: dict[str, Any], key: str) -> str:
    """The text at `key`; empty where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""
