"""Embeddings of texts: by a provider through litellm, or by a model in a folder on this disk."""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError, InputError
from factormodels.extraction.optional import optional_module
from factormodels.io.files import atomic_path

Vectors = NDArray[np.float32]

_ATTEMPTS = 4
_TIMEOUT = 120.0
_TEXTS_AT_ONCE = 64


class EmbeddingError(FactormodelsError):
    """A provider gave no embeddings: the message says why, without keys."""


class Embedder(Protocol):
    """Anything that embeds texts."""

    @property
    def name(self) -> str:
        """Model's name in tables and manifests."""
        ...

    @property
    def identity(self) -> str:
        """What vectors depend on beside the text: equal identities give equal vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, (n, d), in order.

        Raises:
            EmbeddingError: if there are none to be had.
        """
        ...


@dataclass(frozen=True)
class LitellmEmbedder:
    """Embeddings of a provider, its key in the environment.

    Attributes:
        name: the model as litellm spells it, such as openai/text-embedding-3-small.
        api_base: address of a compatible server; None for the provider's own.
    """

    name: str
    api_base: str | None = None

    @property
    def identity(self) -> str:
        """The model's name: a provider does not say more."""
        return self.name

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, (n, d), some dozens at a call."""
        parts = [
            self._call(list(texts[start : start + _TEXTS_AT_ONCE]))
            for start in range(0, len(texts), _TEXTS_AT_ONCE)
        ]
        return np.concatenate(parts)

    def _call(self, texts: list[str]) -> Vectors:
        from factormodels.extraction.call_errors import describe, is_transient
        from factormodels.extraction.concurrency import run_until_done
        from factormodels.extraction.litellm_library import quiet_litellm

        litellm = quiet_litellm()
        tenacity = optional_module("tenacity", "llm")
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            retry=tenacity.retry_if_exception(is_transient),
            wait=tenacity.wait_random_exponential(multiplier=0.5, max=30.0),
            reraise=True,
        )
        options: dict[str, Any] = {}
        if self.api_base is not None:
            options["api_base"] = self.api_base
            lacking = litellm.validate_environment(model=self.name).get("missing_keys") or []
            if lacking and not any(os.environ.get(name) for name in lacking):
                # A server of one's own asks for none, and the client library for some.
                options["api_key"] = "none"
        try:
            # In the loop of all other calls: litellm's own form for ordinary code leaves an event
            # loop behind, open, in the thread that asks.
            answer = run_until_done(
                retrying(
                    litellm.aembedding,
                    model=self.name,
                    input=texts,
                    timeout=_TIMEOUT,
                    max_retries=0,
                    **options,
                )
            )
            rows = sorted(answer.data, key=lambda row: int(row["index"]))
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except Exception as error:
            raise EmbeddingError(
                f"{self.name} gave no embeddings ({describe(error)}); correct the name with "
                "--embeddings, or use --retriever local"
            ) from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise EmbeddingError(
                f"{self.name} gave embeddings of shape {vectors.shape} for {len(texts)} texts; "
                "name a model of embeddings"
            )
        return vectors


@dataclass(frozen=True)
class FolderEmbedder:
    """Embeddings of a model of sentence-transformers in a folder, as `load_embedder` opens it.

    Attributes:
        name: the model's name in tables and manifests.
        identity: hash of the folder's content.
    """

    name: str
    identity: str
    model: Any = field(repr=False, compare=False)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, (n, d)."""
        found = self.model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        vectors: Vectors = np.asarray(found, dtype=np.float32)
        return vectors


def load_embedder(folder: str | os.PathLike[str], identity: str) -> FolderEmbedder:
    """Model of embeddings in a folder that sentence-transformers can read; nothing is downloaded.

    Args:
        folder: the folder.
        identity: hash of its content.

    Raises:
        InputError: if there is no such folder, or no such model in it.
        MissingDependencyError: if sentence-transformers is not installed.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder; name the folder of a model")
    library = optional_module("sentence_transformers", "dense")
    try:
        model = library.SentenceTransformer(str(path), local_files_only=True, device="cpu")
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: sentence-transformers finds no model there ({reason}); name a folder that "
            "its save wrote"
        ) from None
    return FolderEmbedder(f"embeddings:{path.name}", identity, model)


class VectorStore:
    """Vectors of one model by the hash of their text, in a file: no text is embedded twice.

    Args:
        embedder: embeds what is not stored.
        folder: where the file is; it is made if needed. None keeps vectors in memory.
        replay: whether every vector is taken from the file.

    Raises:
        InputError: if the file is there and cannot be read.
    """

    def __init__(
        self, embedder: Embedder, folder: Path | None = None, *, replay: bool = False
    ) -> None:
        self._embedder = embedder
        self._replay = replay
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._known: dict[str, Vectors] = {}
        if folder is not None:
            digest = hashlib.sha256(embedder.identity.encode()).hexdigest()
            self._path = folder / f"{digest[:16]}.npz"
            if self._path.is_file():
                self._known = _read(self._path)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, each of length one, (n, d).

        Raises:
            EmbeddingError: if there are none to be had.
            InputError: in a replay, for a text without a vector; or if the file cannot be written.
        """
        # Responses are assessed side by side, and equal texts are not to be embedded twice.
        with self._lock:
            return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new and self._replay:
            raise InputError(
                f"{self._path}: the replay has no embedding by {self._embedder.name} of "
                f"{next(iter(new.values()))[:80]!r}; run without replay to ask for it"
            )
        if new:
            found = self._embedder.embed(list(new.values()))
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
            found = (found / np.where(lengths > 0, lengths, 1)).astype(np.float32)
            self._known |= dict(zip(new, found, strict=True))
            if self._path is not None:
                _write(self._path, self._known)
        return np.stack([self._known[key] for key in keys])


def _read(path: Path) -> dict[str, Vectors]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path}: these embeddings cannot be read ({type(error).__name__}); remove the file "
            "to have them made anew"
        ) from None


def _write(path: Path, known: dict[str, Vectors]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary, temporary.open("wb") as out:
            np.savez(out, keys=np.array(list(known)), vectors=np.stack(list(known.values())))
    except OSError as error:
        raise InputError(
            f"{path}: embeddings cannot be kept beside the documents ({error.strerror}); make the "
            "folder writable, or copy the documents"
        ) from None
