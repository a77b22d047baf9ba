"""Cache of language models' answers on disk, so that no finished call is paid for twice.

The cache is a store of `factormodels.io.store.tables`, which several processes may share.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from factormodels.errors import InputError
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    Request,
    Token,
    Usage,
    lacking_parameters,
)
from factormodels.extraction.language_model.prices import Prices
from factormodels.io.json import refuse_many_values
from factormodels.io.store.tables import Store, StoredTable, StoreLayout

T = TypeVar("T")

_ANSWERS = StoredTable(
    "answers",
    {"key": "TEXT", "model": "TEXT", "prompt": "TEXT", "answer": "TEXT"},
    key=("key",),
)
_PARAMETERS = StoredTable(
    "parameters",
    {"model": "TEXT", "parameter": "TEXT", "refused": "INTEGER"},
    key=("model", "parameter"),
    younger=True,
)
_FAILURES = StoredTable("failures", {"key": "TEXT", "failure": "TEXT"}, key=("key",), younger=True)

_LAYOUT = StoreLayout(
    "a cache of answers",
    "give another file or a new name",
    (_ANSWERS, _PARAMETERS, _FAILURES),
    application=0x666D6361,  # "fmca" in ASCII
    version=1,
)

_DEPENDED_ON = ("temperature", "max_tokens", "top_logprobs", "seed", "sample")
"""Fields of a request that an answer depends on, besides its messages and its prompt."""


def cache_key(model: str, request: Request) -> str:
    """Return the SHA-256 of everything that an answer may depend on.

    This covers the model, the messages, every parameter of sampling, the index among repeated
    samples, the schema of the answer, and the prompt with its version, but not the stage that asks.
    """
    known = {name: getattr(request, name) for name in _DEPENDED_ON}
    if request.schema:
        known["schema"] = request.schema
    known["messages"] = [asdict(message) for message in request.messages]
    known["prompt"] = asdict(request.prompt)
    text = json.dumps({"model": model, **known}, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class AnswerCache:
    """Answers by key, in a file that several processes may share.

    The file is closed by `close`, when the object is collected, and when the interpreter exits.

    Args:
        path: the file; created if it does not exist.
        read_only: whether to refuse a file that does not exist, and to store nothing.

    Raises:
        InputError: if the file is not a cache of this version, or cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        if read_only and not self.path.is_file():
            raise InputError(
                f"{self.path}: there is no such cache; give the file of an earlier run"
            )
        self._store = Store(self.path, _LAYOUT, read_only=read_only)

    def get(self, key: str) -> Completion | None:
        """Return a stored answer, or None.

        Raises:
            InputError: if the entry is damaged.
        """
        with self._store.sound(f"the entry {key[:12]} cannot be read"):
            row = self._store.get(_ANSWERS.name, key)
            if row is None:
                return None
            refuse_many_values(row[-1], self.path)
            return _decoded(row[-1])

    def put(self, key: str, model: str, request: Request, answer: Completion) -> None:
        """Store an answer, unless one is already stored.

        Raises:
            InputError: if the file cannot be written.
        """
        prompt = f"{request.prompt.name} {request.prompt.version}"
        with self._writing():
            self._store.put(_ANSWERS.name, (key, model, prompt, _encoded(answer)))

    def remove(self, key: str) -> None:
        """Delete an answer that proved useless."""
        with self._writing():
            self._store.remove(_ANSWERS.name, key)

    def failure(self, key: str) -> Failure | None:
        """Return the failure of the last call, which replays repeat; None if there is none.

        Raises:
            InputError: if the file cannot be read.
        """
        with self._store.sound(f"the failure of {key[:12]} cannot be read"):
            row = self._store.get(_FAILURES.name, key)
            if row is None:
                return None
            refuse_many_values(row[-1], self.path)
            return _decoded_failure(row[-1])

    def note_failure(self, key: str, failure: Failure | None) -> None:
        """Record for replays that the last call failed, or, with None, that it did not.

        Raises:
            InputError: if the file cannot be written.
        """
        if failure is not None:
            known = {
                "reason": failure.reason,
                "outage": failure.outage,
                "unread": failure.unread,
                "usage": _usage_values(failure),
            }
            with self._writing():
                self._store.put(_FAILURES.name, (key, json.dumps(known)), replace=True)
        elif self.failure(key) is not None:
            with self._writing():
                self._store.remove(_FAILURES.name, key)

    def lacking(self, model: str, *, refused: bool = False) -> frozenset[str]:
        """Return the parameters that a model was found not to take.

        Args:
            model: the model's name.
            refused: whether to return only parameters that its server refused, which cannot be
                known without a call.
        """
        with self._store.sound("the parameters that models lack cannot be read"):
            return frozenset(
                str(parameter)
                for _, parameter, was_refused in self._store.rows(_PARAMETERS.name, model=model)
                if was_refused >= refused
            )

    def note_lacking(self, model: str, parameters: Iterable[str], *, refused: bool) -> None:
        """Record that a model does not take some parameters.

        Raises:
            InputError: if the file cannot be written.
        """
        with self._writing():
            for name in parameters:
                self._store.put(_PARAMETERS.name, (model, name, int(refused)))

    def _writing(self) -> AbstractContextManager[None]:
        return self._store.sound(
            "an answer cannot be stored", "free some space or give another file"
        )

    def __len__(self) -> int:
        with self._store.sound("its answers cannot be counted"):
            return self._store.count(_ANSWERS.name)

    def close(self) -> None:
        """Close the database; a single file remains unless another process has it open."""
        self._store.close()


class NotRecordedError(InputError):
    """A replay has no answer to a question."""


class CachedModel:
    """A language model whose parsable answers are cached.

    Equal requests that are pending at the same time are sent once. Answers that cannot be parsed,
    according to `Request.fault`, are neither stored nor taken from the cache, but asked for again.
    The reason of a failure is recorded, so that a replay fails as the run did; a later run asks
    again, and the same run only after an outage.

    Args:
        model: answers requests that are not cached; None to replay, in which a request that is not
            cached is an error.
        name: the model's name, if there is no model.
        cache: the cache.
        prices: prices of tokens, from which the cost of cached answers is computed; None: their
            recorded cost.

    Raises:
        InputError: if neither a model nor a name is given.
    """

    def __init__(
        self,
        model: LanguageModel | None,
        cache: AnswerCache,
        *,
        name: str = "",
        prices: Prices | None = None,
    ) -> None:
        if model is None and not name:
            raise InputError("a replay needs the model's name: answers are stored under it")
        self._model = model
        self._cache = cache
        self._name = model.name if model is not None else name
        self._prices = prices
        self._under_way: dict[str, asyncio.Future[Completion | Failure]] = {}
        # Permanent failures of this run, so that repeated questions are not paid for again.
        self._failed: dict[str, Failure] = {}

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._name

    @property
    def lacking(self) -> frozenset[str]:
        """Parameters that the model does not take; in a replay, as an earlier run recorded."""
        if self._model is not None:
            return lacking_parameters(self._model)
        return self._cache.lacking(self._name)

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the cached answer, or ask the model and cache its answer.

        Raises:
            NotRecordedError: in a replay, if the question was never asked.
        """
        key = cache_key(self._name, request)
        stored = self._stored(key, request)
        if stored is not None:
            return stored
        if self._model is None:
            failed = self._cache.failure(key)
            if failed is not None:
                return failed
            raise NotRecordedError(_missing(request, key, self._name, self._cache.path))
        if key in self._failed:
            return replace(self._failed[key], cached=True)
        if key in self._under_way:
            answer = await asyncio.shield(self._under_way[key])
            return replace(answer, cached=True) if isinstance(answer, Completion) else answer
        future: asyncio.Future[Completion | Failure] = asyncio.get_running_loop().create_future()
        self._under_way[key] = future
        try:
            answer = await self._model.complete(request)
            self._cache.note_failure(key, answer if isinstance(answer, Failure) else None)
            if isinstance(answer, Failure) and not answer.outage:
                self._failed[key] = answer
            if isinstance(answer, Completion) and not request.fault_of(answer):
                self._cache.put(key, self._name, request, answer)
        except BaseException as error:
            # Pass an exception on to waiting tasks; canceling this loop is not their failure.
            if isinstance(error, Exception):
                future.set_exception(error)
                future.exception()  # marks it as retrieved
            else:
                future.cancel()
            raise
        else:
            future.set_result(answer)
        finally:
            del self._under_way[key]
        return answer

    def _stored(self, key: str, request: Request) -> Completion | None:
        """Return a stored answer that can be parsed."""
        stored = self._cache.get(key)
        if stored is None:
            return None
        if request.fault_of(stored):
            # The file was written before answers were checked when stored.
            self._cache.remove(key)
            return None
        usage = stored.usage
        if self._prices is not None:
            usage = replace(usage, cost=self._prices.of(usage))
        return replace(stored, cached=True, usage=usage)


def _missing(request: Request, key: str, model: str, path: Path) -> str:
    words = " ".join(request.messages[-1].content.split())
    return (
        f"{path}: the replay has no answer of {model!r} to prompt {request.prompt.name!r} version "
        f"{request.prompt.version}, asked by stage {request.stage!r} (key {key[:12]}; "
        f"{words[:80]!r}); run without replay to ask for it"
    )


def _encoded(answer: Completion) -> str:
    tokens = [[token.text, token.log_probability, token.alternatives] for token in answer.tokens]
    usage = _usage_values(answer)
    return json.dumps(
        {"text": answer.text, "tokens": tokens, "usage": usage, "finish": answer.finish}
    )


def _usage_values(answer: Completion | Failure) -> list[Any]:
    usage = answer.usage
    return [usage.prompt_tokens, usage.completion_tokens, usage.cost, usage.prefix_tokens]


def _decoded(text: Any) -> Completion:
    """Return the answer encoded in a text.

    Raises:
        ValueError, TypeError, LookupError, RecursionError: if the text does not encode an answer.
    """
    known = json.loads(text)
    tokens = tuple(
        Token(
            _of(str, token),
            float(log_probability),
            tuple((_of(str, other), float(value)) for other, value in alternatives),
        )
        for token, log_probability, alternatives in known["tokens"]
    )
    return Completion(
        _of(str, known["text"]), tokens, _usage(known["usage"]), finish=_of(str, known["finish"])
    )


def _decoded_failure(text: Any) -> Failure:
    """Return the failure encoded in a text; raise as `_decoded` does."""
    known = json.loads(text)
    return Failure(
        _of(str, known["reason"]),
        _usage(known["usage"]),
        outage=_of(bool, known["outage"]),
        cached=True,
        unread=_of(bool, known.get("unread", False)),  # absent in older files
    )


def _usage(values: Any) -> Usage:
    asked, answered, cost, *more = values
    (prefix,) = more or (0,)  # absent in older files
    return Usage(
        _of(int, asked),
        _of(int, answered),
        None if cost is None else float(cost),
        _of(int, prefix),
    )


def _of(kind: type[T], value: Any) -> T:
    """Return a value after checking its type, which a damaged file may have changed."""
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is there")
    return value
