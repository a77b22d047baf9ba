"""Embeddings of texts, from a provider through litellm or from a model in a local folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError, InputError
from factormodels.extraction.language_model import Completion, Usage
from factormodels.extraction.language_model.accounting import Ledger
from factormodels.extraction.language_model.limits import Budget
from factormodels.extraction.optional_libraries import optional_module, without_progress_bars
from factormodels.io.store.sqlite import sound_database
from factormodels.io.store.tables import Store, StoredTable, StoreLayout

Vectors = NDArray[np.float32]

_ATTEMPTS = 4
_TIMEOUT = 120.0

TEXTS_AT_ONCE = 64
"""Number of texts per call. Vectors are stored after each call."""

STAGE = "embeddings"

_VECTORS = StoredTable(
    "vectors",
    {"key": "TEXT", "vector": "BLOB", "tokens": "INTEGER", "cost": "REAL"},
    key=("key",),
    in_order=True,
)
_LAYOUT = StoreLayout("a store of embeddings", "remove the file to compute them again", (_VECTORS,))


def n_embedding_calls(n_texts: int) -> int:
    """Return the number of calls for the vectors of texts."""
    return ceil(n_texts / TEXTS_AT_ONCE)


class EmbeddingError(FactormodelsError):
    """A provider returned no embeddings; the message gives the reason, without keys."""


class Embedded(NamedTuple):
    """The result of an embedder.

    Attributes:
        vectors: (n, d), in the order of the texts.
        usage: the provider's consumption; None if no provider was asked.
    """

    vectors: Vectors
    usage: Usage | None = None


class Embedder(Protocol):
    """Interface of embedders of texts."""

    @property
    def name(self) -> str:
        """Name of the model in tables and manifests."""
        ...

    @property
    def identity(self) -> str:
        """Key of everything that vectors depend on besides the text."""
        ...

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return vectors of texts, at most `TEXTS_AT_ONCE` of them.

        Raises:
            EmbeddingError: if the provider returns none.
            LimitReachedError: if the budget allows no further call.
        """
        ...


@dataclass(frozen=True)
class LitellmEmbedder:
    """Embeddings from a provider, whose key is in the environment.

    Attributes:
        name: the model as litellm spells it, such as openai/text-embedding-3-small.
        api_base: address of a compatible server; None for the provider's own.
        price: US dollars per token; None if unknown.
        budget: limits of calls and cost.
    """

    name: str
    api_base: str | None = None
    price: float | None = None
    budget: Budget = field(default_factory=Budget, compare=False)

    @property
    def identity(self) -> str:
        """The model's name, since a provider reports nothing more."""
        return self.name

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return vectors of texts, with one call."""
        from factormodels.extraction.concurrency import run_until_done
        from factormodels.extraction.language_model.call_errors import (
            describe,
            is_exhausted,
            is_transient,
            nothing_left,
        )
        from factormodels.extraction.language_model.litellm_library import quiet_litellm
        from factormodels.extraction.language_model.repeated_calls import repeated

        litellm = quiet_litellm()
        options: dict[str, Any] = {}
        if self.api_base is not None:
            options["api_base"] = self.api_base
            lacking = litellm.validate_environment(model=self.name).get("missing_keys") or []
            if lacking and not any(os.environ.get(name) for name in lacking):
                # A local server needs no key, but the client library requires one.
                options["api_key"] = "none"

        # A token has at least one byte.
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        longest = (self.price or 0.0) * size

        async def attempt() -> Any:
            call = litellm.aembedding(
                model=self.name,
                input=list(texts),
                timeout=_TIMEOUT,
                max_retries=0,
                **options,
            )
            # The library's own time-out restarts with every byte received.
            return await asyncio.wait_for(call, _TIMEOUT)

        async def ask() -> tuple[Any, Usage]:
            await self.budget.admit(longest)
            usage = Usage()
            try:
                answer = await repeated(attempt, _ATTEMPTS)
                tokens = int(getattr(answer.usage, "prompt_tokens", 0) or 0)
                usage = Usage(tokens, 0, None if self.price is None else tokens * self.price)
            finally:
                self.budget.settle(usage.cost, longest)
            return answer, usage

        try:
            # Use the loop of all other calls: litellm's synchronous function leaves an open event
            # loop in the calling thread.
            answer, usage = run_until_done(ask())
            rows = sorted(answer.data, key=lambda row: int(row["index"]))
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except FactormodelsError:
            raise
        except Exception as error:
            if is_exhausted(error):
                raise nothing_left(self.name, error) from None
            advice = "correct the name with --embeddings, or use --retriever local"
            if is_transient(error):
                advice = "answered calls are kept; run the same command again to continue"
            raise EmbeddingError(
                f"{self.name} gave no embeddings ({describe(error)}); {advice}"
            ) from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise EmbeddingError(
                f"{self.name} gave embeddings of shape {vectors.shape} for {len(texts)} texts; "
                "name an embedding model"
            )
        return Embedded(vectors, usage)


@dataclass(frozen=True)
class FolderEmbedder:
    """Embeddings from a sentence-transformers model in a folder, as `load_embedder` opens it.

    Attributes:
        name: the model's name in tables and manifests.
        identity: hash of the folder's content.
    """

    name: str
    identity: str
    model: Any = field(repr=False, compare=False)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return vectors of texts, computed locally."""
        vectors = self.model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return Embedded(np.asarray(vectors, dtype=np.float32))


def load_embedder(folder: str | os.PathLike[str], identity: str) -> FolderEmbedder:
    """Load an embedding model from a folder with sentence-transformers; nothing is downloaded.

    Args:
        folder: the folder.
        identity: hash of its content.

    Raises:
        InputError: if the folder does not exist or contains no such model.
        MissingDependencyError: if sentence-transformers is not installed.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder; name the folder of a model")
    library = optional_module("sentence_transformers", "dense")
    try:
        with without_progress_bars():
            model = library.SentenceTransformer(str(path), local_files_only=True, device="cpu")
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: sentence-transformers finds no model there ({reason}); name a folder that "
            "its save wrote"
        ) from None
    return FolderEmbedder(f"embeddings:{path.name}", identity, model)


class VectorStore:
    """Vectors of one model by the hash of their text, in a file, so that no text is embedded twice.

    The file is a SQLite database. The vectors of each call are appended when it is answered, so a
    killed process loses at most the pending call.

    Args:
        embedder: computes vectors that are not stored.
        folder: folder of the file, created if needed; None keeps vectors in memory.
        replay: whether every vector must be in the file.
        ledger: counter of a provider's calls; None for none.

    Raises:
        InputError: if the file exists and cannot be read.
    """

    def __init__(
        self,
        embedder: Embedder,
        folder: Path | None = None,
        *,
        replay: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        self.embedder = embedder
        self._replay = replay
        self._ledger = ledger
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._known: dict[str, Vectors] = {}
        if folder is not None:
            digest = hashlib.sha256(embedder.identity.encode()).hexdigest()
            self._path = folder / f"{digest[:16]}.sqlite"
            self._stored(())  # reports an unreadable file before any call

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of texts, (n, d).

        Raises:
            EmbeddingError: if the provider returns none.
            InputError: in a replay, for a text without a vector; or if the file cannot be written.
            LimitReachedError: if no further call or cost is allowed; answered calls are stored.
        """
        # Responses are assessed concurrently, and equal texts must not be embedded twice.
        with self._lock:
            return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        self._stored(new)
        new = {key: text for key, text in new.items() if key not in self._known}
        if new and self._replay:
            raise InputError(
                f"{self._path}: the replay has no embedding by {self.embedder.name} of "
                f"{next(iter(new.values()))[:80]!r}; run without replay to ask for it"
            )
        waiting = iter(new.items())
        while part := dict(islice(waiting, TEXTS_AT_ONCE)):
            self._embed(part)
        return np.stack([self._known[key] for key in keys])

    def _embed(self, texts: Mapping[str, str]) -> None:
        """Embed texts, given by their keys, and store their vectors."""
        vectors, usage = self.embedder.embed(list(texts.values()))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        self._known |= dict(zip(texts, vectors, strict=True))
        self._count(usage)
        if self._path is None:
            return
        shares = _shares(usage, [len(text) for text in texts.values()])
        rows = [
            (key, row.tobytes(), *share)
            for key, row, share in zip(texts, vectors, shares, strict=True)
        ]
        advice = "make the folder writable, or copy the documents"
        with sound_database(self._path, "embeddings cannot be kept beside the documents", advice):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(Store(self._path, replace(_LAYOUT, advice=advice))) as store:
                store.put(_VECTORS.name, *rows)

    def _stored(self, keys: Iterable[str]) -> None:
        """Load the stored vectors of some keys into memory."""
        if self._path is None or not self._path.is_file():
            return
        usages = []
        with (
            closing(Store(self._path, _LAYOUT, read_only=True)) as store,
            store.sound("these embeddings cannot be read"),
        ):
            for row in filter(None, (store.get(_VECTORS.name, key) for key in keys)):
                key, vector, tokens, cost = row
                stored = np.frombuffer(vector, dtype=np.float32)
                lengths = {len(other) for other in islice(self._known.values(), 1)}
                if not np.isfinite(stored).all() or ({len(stored)} - lengths and lengths):
                    raise ValueError("a vector is damaged")
                self._known[key] = stored
                if tokens is not None:
                    usages.append(Usage(int(tokens), 0, None if cost is None else float(cost)))
        self._count(sum(usages, Usage()) if usages else None, cached=True)

    def _count(self, usage: Usage | None, *, cached: bool = False) -> None:
        if self._ledger is not None and usage is not None:
            self._ledger.add(STAGE, Completion("", usage=usage, cached=cached))


def _shares(
    usage: Usage | None, lengths: Sequence[int]
) -> Iterator[tuple[int | None, float | None]]:
    """Yield tokens and cost of each text of a call, since a provider reports the sums."""
    done, assigned = 0, 0
    whole = max(1, sum(lengths))
    for length in lengths:
        if usage is None:
            yield None, None
            continue
        done += length
        tokens = round(usage.prompt_tokens * done / whole) - assigned
        assigned += tokens
        yield (
            tokens,
            None if usage.cost is None else usage.cost * tokens / max(1, usage.prompt_tokens),
        )
