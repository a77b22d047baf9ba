"""Searches and pages of the web, each asked for once: in a run, and with a cache on disk ever.

In the cache each is an answer of a model called "web", its text the JSON of what was found. Its key
is that of such an answer, so that the files of earlier versions are replayed without a request.
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
"""Seconds for which a page that is not there, or is none, is not asked for again."""

_FORM = PromptIdentity("web", 2, "")


class WebStore:
    """What searches found and what pages said, by what was asked; threads may share it.

    An answer is kept for good. A failure is kept with its reason, for the rest of the run and for
    a replay; a later run asks again, for a page that is not there only after a day.

    Args:
        cache: the file; None keeps what was asked for in memory alone.
        replay: whether every answer and failure is taken from the file.
        retry_failed: whether pages that are not there are asked for again at once.
        budget: what searches may cost; None for anything.
        price: US dollars per search; None where it is not known.
        clock: seconds since 1970.

    Attributes:
        asked: number of searches and pages that services were asked for.
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
        """A kept answer, or what `ask` gives; whoever wants the same meanwhile waits for it.

        Args:
            stage: `SEARCHES` or `PAGES`.
            facts: JSON values that the answer depends on.
            ask: gives the answer, a JSON value.

        Raises:
            RequestFailed: if there is none.
            InputError: in a replay, for what is not kept.
            LimitReachedError: if a search would cost more than is allowed.
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
            # Also for whoever waits; unless it is the end of this loop alone.
            future.set_exception(
                error if isinstance(error, Exception) else RequestFailed("the run was interrupted")
            )
            raise
        future.set_result(entry)
        # What stands in the file need not stay in memory, which pages of a long run would fill.
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
                # Nobody is paid for what he refuses.
                self._budget.refund(price)
                self.paid -= price
        return entry | {"at": self._clock()}

    def _kept(self, request: Request) -> dict[str, Any] | None:
        stored = None if self._cache is None else self._cache.get(cache_key("web", request))
        if stored is None:
            return None
        entry: dict[str, Any] = json.loads(stored.text)
        # What a service refuses today, for want of a key or credit, it may give in a minute.
        lasting = entry["lasting"] and request.stage == PAGES
        expired = not lasting or self._clock() - entry["at"] >= self._patience
        return None if entry["failure"] is not None and expired and not self.replay else entry
