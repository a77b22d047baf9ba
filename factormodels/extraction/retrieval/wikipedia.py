"""Wikipedia as a source of evidence, through its web API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from factormodels.errors import InputError
from factormodels.extraction.retrieval.pages import Hit, plain_snippet
from factormodels.extraction.retrieval.web import WebRetriever, objects, request_json, text_of

if TYPE_CHECKING:
    import httpx

QUERY_CHARACTERS = 300
"""Maximum length of a search in the API, in characters."""


@dataclass(frozen=True)
class WikipediaRetriever(WebRetriever):
    """Retriever that searches Wikipedia and reads the articles (FactReasoner, section 4, with k =
    3).

    Attributes:
        language: the Wikipedia, by its code; it replaces "{language}" in `base_url`. The other
            attributes are those of `WebRetriever`.
    """

    top_k: int = 3
    base_url: str = "https://{language}.wikipedia.org/w/api.php"
    name: str = "wikipedia"
    language: str = "en"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.language.replace("-", "").isalnum():
            raise InputError(f"{self.language!r} is not a language code; use one such as en")

    def service(self) -> str:
        """Address of the API of the Wikipedia in a language."""
        return self.base_url.replace("{language}", self.language)

    async def hits(
        self, client: httpx.AsyncClient, headers: Mapping[str, str], query: str, count: int
    ) -> list[Hit]:
        """Return the results of a search; their addresses come with their pages."""
        search = {"list": "search", "srsearch": query[:QUERY_CHARACTERS], "srlimit": str(count)}
        answer = await self._asked(client, {**search, "srprop": "snippet"}, headers)
        return [
            Hit(text_of(item, "title"), "", plain_snippet(text_of(item, "snippet")))
            for item in objects(answer.get("query"), "search")
        ]

    async def page(self, client: httpx.AsyncClient, hit: Hit) -> tuple[str, str]:
        """Return the address of an article, and its plain text."""
        extract = {"prop": "extracts|info", "explaintext": "1", "inprop": "url", "redirects": "1"}
        answer = await self._asked(client, {"titles": hit.title, **extract})
        page = next(iter(objects(answer.get("query"), "pages")), {})
        return text_of(page, "fullurl"), text_of(page, "extract")

    async def _asked(
        self,
        client: httpx.AsyncClient,
        params: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        asked = {"action": "query", "format": "json", "formatversion": "2", **params}
        return await request_json(
            client, "GET", self.service(), self.http, params=asked, headers=headers
        )
