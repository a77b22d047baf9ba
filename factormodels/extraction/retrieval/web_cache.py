"""Cache of web searches and pages: each is requested once per run, or once ever with a disk cache.

In the cache, each is an answer of a model called "web", whose text is the result in JSON. It has
the key of such an answer, so that files of earlier versions can be replayed without requests.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any

from factormodels.errors import InputError
from factormodels.extraction.http.requests import RequestFailed
from factormodels.extraction.language_model import Completion, Message, PromptIdentity, Request
from factormodels.extraction.language_model.cache import AnswerCache, cache_key
from factormodels.extraction.language_model.limits import Budget

SEARCHES, PAGES = "searches", "pages"

LASTING_FAILURES = 86_400.0
"""Seconds before a missing or invalid page is requested again."""

_FORM = PromptIdentity("web", 2, "")


class WebStore:
    """Results of searches and texts of pages, by request; threads may share it.

    An answer is stored permanently. A failure is stored with its reason, for the rest of the run
    and for a replay; a later run repeats the request, for a missing page only after a day.

    Args:
        cache: the file; None stores answers in memory only.
        replay: whether every answer and failure must be in the file.
        retry_failed: whether to request missing pages again immediately.
        budget: limit of the cost of searches; None for no limit.
        price: US dollars per search; None if unknown.
        clock: function that returns seconds since 1970.

    Attributes:
        asked: number of searches and pages that were requested from services.
        paid: US dollars for the searches among them.
    """

    def __init__(
        self,
        cache: AnswerCache | None = None,
        *,
        replay: bool = False,
        retry_failed: bool = False,
        budget: Budget | None = None,
        price: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.replay = replay
        self.asked: Counter[str] = Counter()
        self.paid = 0.0
        self._cache = cache
        self._patience = 0.0 if retry_failed else LASTING_FAILURES
        self._budget = budget or Budget()
        self._price = price
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, Future[dict[str, Any]]] = {}

    async def get(
        self, stage: str, facts: Mapping[str, Any], ask: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Return a stored answer, or the result of `ask`; concurrent callers wait for the same
        result.

        Args:
            stage: `SEARCHES` or `PAGES`.
            facts: JSON values that the answer depends on.
            ask: returns the answer, a JSON value.

        Raises:
            RequestFailed: if there is none.
            InputError: in a replay, for an answer that is not stored.
            LimitReachedError: if a search would exceed the limit of cost.
        """
        text = json.dumps({"stage": stage, **facts}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        with self._lock:
            future = self._known.get(digest)
            if future is None:
                future = self._known[digest] = Future()
                first = True
            else:
                first = False
        if first:
            await self._find(future, stage, digest, facts, ask)
        entry = await asyncio.wrap_future(future)
        if entry["failure"] is not None:
            raise RequestFailed(entry["failure"], lasting=entry["lasting"])
        return entry["value"]

    async def _find(
        self,
        future: Future[dict[str, Any]],
        stage: str,
        digest: str,
        facts: Mapping[str, Any],
        ask: Callable[[], Awaitable[Any]],
    ) -> None:
        request = Request((Message("user", digest),), _FORM, stage)
        try:
            entry = self._kept(request)
            if entry is None and self.replay:
                path = "" if self._cache is None else f"{self._cache.path}: "
                asked = next(iter(facts.values()))
                raise InputError(
                    f"{path}the replay has nothing of {stage} for {str(asked)[:80]!r}; run "
                    "without replay to ask for it"
                )
            if entry is None:
                entry = await self._ask(stage, ask)
                if self._cache is not None:
                    key = cache_key("web", request)
                    self._cache.remove(key)
                    self._cache.put(key, "web", request, Completion(json.dumps(entry)))
        except BaseException as error:
            with self._lock:
                del self._known[digest]
            # Pass the exception on to waiting callers, unless only this loop ends.
            future.set_exception(
                error if isinstance(error, Exception) else RequestFailed("the run was interrupted")
            )
            raise
        future.set_result(entry)
        # Answers in the file are not kept in memory, which the pages of a long run would fill.
        if self._cache is not None and entry["failure"] is None:
            with self._lock:
                del self._known[digest]

    async def _ask(self, stage: str, ask: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        price = self._price or 0.0
        if stage == SEARCHES:
            await self._budget.charge(price)
            self.paid += price
        self.asked[stage] += 1
        entry: dict[str, Any] = {"value": None, "failure": None, "lasting": False}
        try:
            entry["value"] = await ask()
        except RequestFailed as error:
            entry |= {"failure": str(error), "lasting": error.lasting}
            if stage == SEARCHES and error.lasting:
                # Refused searches are not charged.
                self._budget.refund(price)
                self.paid -= price
        return entry | {"at": self._clock()}

    def _kept(self, request: Request) -> dict[str, Any] | None:
        stored = None if self._cache is None else self._cache.get(cache_key("web", request))
        if stored is None:
            return None
        entry: dict[str, Any] = json.loads(stored.text)
        # A search refused for lack of a key or credit may succeed later.
        lasting = entry["lasting"] and request.stage == PAGES
        expired = not lasting or self._clock() - entry["at"] >= self._patience
        return None if entry["failure"] is not None and expired and not self.replay else entry
