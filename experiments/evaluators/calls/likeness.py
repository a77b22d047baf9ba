"""Likeness of the two texts of a pair: shared words, or the cosine of embeddings."""

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
"""Prefix of a similarity by embeddings, followed by the folder of their model."""

Alike = Callable[[Sequence[TextPair]], Floats]
"""From n pairs to how alike the two texts of each are, (n,), from 0 to 1."""


def likeness_of_pairs(name: str, beside: Path | None = None) -> Alike:
    """Return the likeness of a name: `words`, or `meaning:FOLDER`.

    The first is `shared_words`. The second is the cosine between the embeddings of both texts by a
    model of sentence-transformers in the folder, 0 where it is less; no text is embedded twice.

    Args:
        name: the name.
        beside: folder in which embeddings are kept; None keeps none.

    Raises:
        InputError: for an unknown likeness, or a folder without such a model.
        MissingDependencyError: if sentence-transformers is needed and not installed.
    """
    if name == WORDS:
        return shared_words
    if not name.startswith(MEANING):
        raise InputError(unknown_name(f"the likeness {name!r}", name, (WORDS, f"{MEANING}FOLDER")))
    # It is slow to load, and most do without.
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
