"""Google as a source of evidence, through Serper."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from factormodels.errors import InputError
from factormodels.extraction.retrieval.pages import Hit, fetch_page
from factormodels.extraction.retrieval.web import WebRetriever, objects, request_json, text_of

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "SERPER_API_KEY"


@dataclass(frozen=True)
class GoogleRetriever(WebRetriever):
    """Retriever that searches Google through Serper and reads the results (FactReasoner, k = 5;
    FaStfact).

    The key is read from the environment variable SERPER_API_KEY for each search and is not stored.
    The attributes are those of `WebRetriever`.
    """

    top_k: int = 5
    base_url: str = "https://google.serper.dev/search"
    name: str = "google"

    def headers(self) -> Mapping[str, str]:
        """Header with the key."""
        return {"X-API-KEY": serper_key()}

    async def hits(
        self, client: httpx.AsyncClient, headers: Mapping[str, str], query: str, count: int
    ) -> list[Hit]:
        """Return the organic results of a search."""
        asked = {"q": query, "num": count}
        answer = await request_json(
            client, "POST", self.base_url, self.http, headers=headers, json=asked
        )
        return [
            Hit(text_of(item, "title"), text_of(item, "link"), text_of(item, "snippet"))
            for item in objects(answer, "organic")
        ][:count]

    async def page(self, client: httpx.AsyncClient, hit: Hit) -> tuple[str, str]:
        """Return the page that a result links to."""
        return hit.link, await fetch_page(client, hit.link, self.http)


def serper_key() -> str:
    """Return the key for Serper from the environment.

    Raises:
        InputError: if there is none, or it contains characters that are invalid in a header.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise InputError(
            f"the environment variable {KEY_VARIABLE} is not set; set it to your key, or use "
            "another retriever"
        )
    if not (key.isascii() and key.isprintable()):
        raise InputError(
            f"the key in {KEY_VARIABLE} has characters that a key must not contain; correct it"
        )
    return key
