"""Google as a source of evidence, through Serper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    fetch_page,
    passages_of,
)

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "SERPER_API_KEY"


@dataclass(frozen=True)
class GoogleRetriever:
    """Searches Google through Serper and reads the pages found (FactReasoner, k = 5; FaStfact).

    The key is read from the environment variable SERPER_API_KEY when a search is made, and is
    held nowhere.

    Attributes:
        top_k: passages per query.
        reading: what of a page becomes a passage; see `factormodels.extraction.retrieval.pages`.
        pages: results that are looked at per query; as many as passages if None.
        base_url: address of the service.
        http: limits of requests.
        chunks: how pages are cut for the reading "chunks".
        name: the retriever's name in tables and manifests.
    """

    top_k: int = 5
    reading: Reading = "head"
    pages: int | None = None
    base_url: str = "https://google.serper.dev/search"
    http: HttpSettings = field(default_factory=HttpSettings)
    chunks: ChunkSettings = field(default_factory=ChunkSettings)
    name: str = "google"

    def __post_init__(self) -> None:
        checked_top_k(self.top_k)
        checked_reading(self.reading)
        if self.pages is not None:
            checked_top_k(self.pages)

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """Return what each query finds; several are open at once.

        Raises:
            InputError: if the environment holds no key.
        """
        key = serper_key()
        with (
            http_client(self.http) as client,
            ThreadPoolExecutor(self.http.concurrency) as threads,
        ):
            return list(threads.map(lambda query: self._search(client, query, key), queries))

    def _search(self, client: httpx.Client, query: str, key: str) -> Retrieved:
        if not query.strip():
            return Retrieved(())
        count = self.pages or self.top_k
        try:
            body, charset = request(
                client,
                "POST",
                self.base_url,
                self.http,
                headers={"X-API-KEY": key},
                json={"q": query, "num": count},
            )
            answer = json_answer(self.base_url, body, charset)
        except RequestFailed as error:
            return Retrieved((), (str(error),))
        hits = [
            Hit(text_of(found, "title"), text_of(found, "link"), text_of(found, "snippet"))
            for found in objects(answer, "organic")
        ][:count]
        read: list[tuple[Hit, str]] = []
        failures: list[str] = []
        for hit in hits:
            text, failure = "", None
            if self.reading != "snippet":
                text, failure = fetch_page(client, hit.link, self.http)
            if failure is not None:
                failures.append(failure)
            read.append((hit, text))
        return passages_of(query, read, failures, self.reading, self.top_k, self.chunks)


def serper_key() -> str:
    """Return the key for Serper from the environment.

    Raises:
        InputError: if there is none, or it holds what no header may.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise InputError(
            f"the environment variable {KEY_VARIABLE} is not set; set it to your key, or use "
            "another retriever"
        )
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"the key in {KEY_VARIABLE} holds characters that no key has; correct it")
    return key
