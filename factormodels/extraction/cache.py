"""Answers of language models, kept on disk: a finished call is never paid for twice.

The file is SQLite in write-ahead mode: several processes may share it, and a process that is
killed leaves every answer that it stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import time
from dataclasses import asdict, replace
from pathlib import Path

from factormodels.errors import InputError
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    Request,
    Token,
    Usage,
)

_APPLICATION = 0x666D6361
"""Marks the file as ours: "fmca" in ASCII."""

_VERSION = 1
_PATIENCE = 60.0
"""Seconds to wait while another process writes."""

_PAUSE = 0.01
"""Seconds between two tries to open the file."""


def cache_key(model: str, request: Request) -> str:
    """SHA-256 of everything that an answer may depend on.

    These are the model, the messages, every parameter of sampling, the index among repeated
    samples, and the prompt with its version; the stage that asks is not among them.
    """
    known = asdict(request)
    del known["stage"]
    text = json.dumps({"model": model, **known}, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class AnswerCache:
    """Answers by key, in a file that several processes may share.

    Args:
        path: the file; it is made if it does not exist.
        read_only: whether to refuse a file that does not exist, and to store nothing.

    Raises:
        InputError: if the file is no cache of this version, or cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        if read_only and not self.path.is_file():
            raise InputError(
                f"{self.path}: there is no such cache; give the file of an earlier run"
            )
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._prepare_patiently()
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path}: this cannot be used as a cache ({error}); give another file or a "
                "new name"
            ) from None

    def _prepare_patiently(self) -> None:
        # The change to write-ahead mode fails at once where other statements wait for a lock.
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._prepare()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)

    def _prepare(self) -> None:
        # In this order: whoever finds a table finds the marks that were committed with it.
        empty = not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        owner = self._connection.execute("PRAGMA application_id").fetchone()[0]
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if not empty and (owner, version) != (_APPLICATION, _VERSION):
            what = f"version {version}" if owner == _APPLICATION else "another program's"
            raise InputError(
                f"{self.path}: this database is {what}, not a cache of version {_VERSION}; give "
                "another file or a new name"
            )
        if self.read_only:
            self._connection.execute("PRAGMA query_only = ON")
            return
        self._connection.execute("PRAGMA journal_mode = WAL")
        # Written answers survive the death of the process; a power cut may lose the last ones.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if empty:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS answers "
                "(key TEXT PRIMARY KEY, model TEXT, prompt TEXT, answer TEXT) WITHOUT ROWID"
            )
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")
            self._connection.execute("COMMIT")

    def get(self, key: str) -> Completion | None:
        """Stored answer, or None.

        Raises:
            InputError: if what is stored is damaged.
        """
        try:
            row = self._connection.execute(
                "SELECT answer FROM answers WHERE key = ?", (key,)
            ).fetchone()
            return None if row is None else _decoded(row[0])
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{self.path}: the entry {key[:12]} cannot be read ({error}); the file is damaged: "
                "give another file or a new name"
            ) from None

    def put(self, key: str, model: str, request: Request, answer: Completion) -> None:
        """Store an answer; one that is stored already stays.

        Raises:
            InputError: if the file cannot be written.
        """
        if self.read_only:
            return
        prompt = f"{request.prompt.name} {request.prompt.version}"
        try:
            self._connection.execute(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)",
                (key, model, prompt, _encoded(answer)),
            )
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path}: an answer cannot be stored ({error}); free some space or give "
                "another file"
            ) from None

    def __len__(self) -> int:
        count: int = self._connection.execute("SELECT COUNT(*) FROM answers").fetchone()[0]
        return count

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class CachedModel:
    """A language model whose finished answers are kept; failures are asked for again.

    Equal requests that are under way at the same time are sent once.

    Args:
        model: who answers what is not stored; None to replay: what is not stored is an error.
        name: the model's name, if there is no model to ask for it.
        cache: where answers are kept.

    Raises:
        InputError: if neither a model nor a name is given.
    """

    def __init__(self, model: LanguageModel | None, cache: AnswerCache, *, name: str = "") -> None:
        if model is None and not name:
            raise InputError("a replay needs the model's name: answers are stored under it")
        self._model = model
        self._cache = cache
        self._name = model.name if model is not None else name
        self._under_way: dict[str, asyncio.Future[Completion | Failure]] = {}

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._name

    async def complete(self, request: Request) -> Completion | Failure:
        """Stored answer, or ask and store what comes.

        Raises:
            InputError: in a replay, if the answer is not stored.
        """
        key = cache_key(self._name, request)
        found = self._cache.get(key)
        if found is not None:
            return replace(found, cached=True)
        if self._model is None:
            raise InputError(_missing(request, key, self._name, self._cache.path))
        if key in self._under_way:
            answer = await asyncio.shield(self._under_way[key])
            return replace(answer, cached=True) if isinstance(answer, Completion) else answer
        future: asyncio.Future[Completion | Failure] = asyncio.get_running_loop().create_future()
        self._under_way[key] = future
        try:
            answer = await self._model.complete(request)
            if isinstance(answer, Completion):
                self._cache.put(key, self._name, request, answer)
        except BaseException:
            future.cancel()
            raise
        else:
            future.set_result(answer)
        finally:
            del self._under_way[key]
        return answer


def _missing(request: Request, key: str, model: str, path: Path) -> str:
    words = " ".join(request.messages[-1].content.split())
    return (
        f"{path}: the replay has no answer of {model!r} to prompt {request.prompt.name!r} version "
        f"{request.prompt.version}, asked by stage {request.stage!r} (key {key[:12]}; "
        f"{words[:80]!r}); run without replay to ask for it"
    )


def _encoded(answer: Completion) -> str:
    tokens = [[token.text, token.log_probability, token.alternatives] for token in answer.tokens]
    usage = [answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.cost]
    return json.dumps(
        {"text": answer.text, "tokens": tokens, "usage": usage, "finish": answer.finish}
    )


def _decoded(text: str) -> Completion:
    known = json.loads(text)
    return Completion(
        text=known["text"],
        tokens=tuple(
            Token(token, log_probability, tuple((other, value) for other, value in alternatives))
            for token, log_probability, alternatives in known["tokens"]
        ),
        usage=Usage(*known["usage"]),
        finish=known["finish"],
    )
