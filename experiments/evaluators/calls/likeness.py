"""Similarity of the two texts of a pair: shared words, or the cosine of embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from calibration.validation import Floats
from experiments.asking.relation_models import content_hash
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.relation_models.base import TextPair

WORDS = "words"

MEANING = "meaning:"
"""Prefix of a similarity by embeddings, followed by the folder of the model."""

Alike = Callable[[Sequence[TextPair]], Floats]
"""Function from n pairs to the similarity of their texts, (n,), from 0 to 1."""


def likeness_of_pairs(name: str, beside: Path | None = None) -> Alike:
    """Return a similarity by name: `words`, or `meaning:FOLDER`.

    `words` is `shared_words`. `meaning` is the cosine of both texts' embeddings, clipped at 0, by a
    sentence-transformers model in the folder; no text is embedded twice.

    Args:
        name: the name.
        beside: folder for caching embeddings; None for no cache.

    Raises:
        InputError: for an unknown similarity, or a folder without such a model.
        MissingDependencyError: if sentence-transformers is needed and not installed.
    """
    if name == WORDS:
        return shared_words
    if not name.startswith(MEANING):
        raise InputError(unknown_name(f"the likeness {name!r}", name, (WORDS, f"{MEANING}FOLDER")))
    # Imported here because it loads slowly and most runs do not need it.
    from factormodels.extraction.embeddings import VectorStore, load_embedder
    from factormodels.extraction.retrieval.dense import FOLDER

    folder = name.removeprefix(MEANING)
    if not Path(folder).is_dir():
        raise InputError(f"{folder}: there is no such folder; name the folder of a model")
    embedder = load_embedder(folder, content_hash(Path(folder)))
    store = VectorStore(embedder, None if beside is None else beside / FOLDER)

    def of_meaning(pairs: Sequence[TextPair]) -> Floats:
        if not pairs:
            return np.empty(0)
        texts = [text for pair in pairs for text in (pair.titled_premise, pair.hypothesis)]
        vectors = store.vectors(texts).astype(np.float64)
        cosines: Floats = np.clip((vectors[::2] * vectors[1::2]).sum(axis=1), 0.0, 1.0)
        return cosines

    return of_meaning


def shared_words(pairs: Sequence[TextPair]) -> Floats:
    """Return the share of the words of each hypothesis that its premise has, float64 (n,)."""
    from factormodels.extraction.relation_models.lexical_features import FEATURES, pair_features

    if not pairs:
        return np.empty(0)
    return pair_features(pairs)[:, FEATURES.index("passage")]
