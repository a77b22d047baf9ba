"""Share of a claim's text in its response's passages: figures that replace both texts.

Words of the response's topic are left out, since all passages about it contain them. All passages
of the response count, not only those retrieved for the claim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from factormodels.extraction.relation_models.lexical_features import taken_apart
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_match import FIGURES, TEXT_MATCH_KEY, match_in_metadata

_DIGITS = 4

_WORD = re.compile(r"\w")


def text_match(graph: FactGraph) -> NDArray[np.float64] | None:
    """Return the `FIGURES` of a response's claims, (n, 3), each in [0, 1]; None if unavailable.

    They are computed from the texts if every claim has words and every passage a text, and
    otherwise taken from the metadata.

    Raises:
        InputError: if the metadata hold something else under `TEXT_MATCH_KEY`.
    """
    if _has_texts(graph):
        texts = [context.text or context.snippet for context in graph.contexts]
        return _matched(graph.topic, [atom.text for atom in graph.atoms], texts)
    if not has_text_match(graph):
        return None
    return match_in_metadata(graph)


def has_text_match(graph: FactGraph) -> bool:
    """Return whether `text_match` has figures of a response."""
    return _has_texts(graph) or TEXT_MATCH_KEY in graph.metadata


def leaves_no_topic_out(graph: FactGraph) -> bool:
    """Return whether figures of a response come from texts without a stated topic."""
    return _has_texts(graph) and not graph.topic


def _has_texts(graph: FactGraph) -> bool:
    passages = all(context.text or context.snippet for context in graph.contexts)
    return passages and all(_WORD.search(atom.text) for atom in graph.atoms)


def _matched(topic: str, claims: Sequence[str], passages: Sequence[str]) -> NDArray[np.float64]:
    about = taken_apart(topic, whole=True).words[0]
    sentences = [words for text in passages for words in taken_apart(text, whole=False).words]
    known = set().union(*sentences)
    rows = np.zeros((len(claims), len(FIGURES)))
    for row, claim in zip(rows, claims, strict=True):
        apart = taken_apart(claim, whole=True)
        words, names = apart.words[0] - about, apart.names - about
        shares = nlargest(2, (_share(words, there) for there in sentences))
        row[0] = _share(names, known) if sentences else 0.0
        row[1 : 1 + len(shares)] = shares
    # Rounded as in files, so that texts and recorded figures give a judge the same values.
    return rows.round(_DIGITS)


def _share(asked: set[str], there: set[str]) -> float:
    return len(asked & there) / len(asked) if asked else 1.0
