"""Searches of the web, kept on disk: a finished search is never made twice, and can be replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from factormodels.errors import InputError
from factormodels.extraction.cache import AnswerCache, cache_key
from factormodels.extraction.language_model import Completion, Message, PromptIdentity, Request
from factormodels.extraction.retrieval.base import Passage, Retrieved, Retriever

STAGE = "searches"
_FORM = PromptIdentity("search", 1, "")


@dataclass(frozen=True)
class CachedRetriever:
    """A retriever whose searches are kept in the file that answers of language models are kept in.

    A search with a failure is not kept, and is made again.

    Attributes:
        retriever: who answers what is not kept.
        cache: where searches are kept.
        settings: JSON values that an answer depends on, as `search_settings` gives them.
        replay: whether to take every answer from the cache.
    """

    retriever: Retriever
    cache: AnswerCache = field(repr=False)
    settings: dict[str, Any]
    replay: bool = False

    @property
    def name(self) -> str:
        """The retriever's name in tables and manifests."""
        return self.retriever.name

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """What each query finds, in order.

        Raises:
            InputError: in a replay, for a search that is not kept.
        """
        requests = {query: self._request(query) for query in queries}
        found: dict[str, Retrieved] = {}
        for query, request in requests.items():
            kept = self.cache.get(cache_key(self.name, request))
            if kept is not None:
                found[query] = _decoded(kept.text)
            elif self.replay:
                raise InputError(
                    f"{self.cache.path}: the replay has no search of {self.name} for "
                    f"{query[:80]!r}; run without replay to make it"
                )
        asked = [query for query in requests if query not in found]
        answers = self.retriever.retrieve(asked) if asked else []
        for query, answer in zip(asked, answers, strict=True):
            found[query] = answer
            if not answer.failures:
                request = requests[query]
                kept = Completion(_encoded(answer))
                self.cache.put(cache_key(self.name, request), self.name, request, kept)
        return [found[query] for query in queries]

    def _request(self, query: str) -> Request:
        asked = json.dumps({**self.settings, "query": query}, sort_keys=True)
        digest = hashlib.sha256(asked.encode()).hexdigest()
        return Request((Message("user", digest),), _FORM, STAGE)


def search_settings(retriever: Any) -> dict[str, Any]:
    """Settings of a retriever that its answers depend on, as JSON values."""
    settings = asdict(retriever)
    del settings["http"]
    return settings


def _encoded(answer: Retrieved) -> str:
    return json.dumps([asdict(passage) for passage in answer.passages])


def _decoded(text: str) -> Retrieved:
    return Retrieved(tuple(Passage(**passage) for passage in json.loads(text)))
