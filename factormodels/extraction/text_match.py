"""How much of a claim's text its response's passages hold: figures that stand in for both texts.

The words of the response's topic are left out, since every passage about it holds them: what is
compared is what the claim says of the topic. All passages of the response count, not only those
that were retrieved for the claim.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.extraction.relation_models.lexical_features import taken_apart
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import as_object, shown

TEXT_MATCH_KEY = "text_match"
"""Where a graph without texts holds the figures of its claims in its metadata, by id."""

FIGURES: Mapping[str, str] = {
    "names found": "share of the claim's names that any passage of the response holds",
    "words in one sentence": "largest share of the claim's content words and numbers that one "
    "sentence of a passage holds",
    "words in another": "the second largest such share",
}
"""Figures of a claim, the words of the topic left out, and what each says. 1 where a claim has none
of what is looked for, and 0 where there are no passages."""

_DIGITS = 4

_WORD = re.compile(r"\w")


def text_match(graph: FactGraph) -> NDArray[np.float64] | None:
    """`FIGURES` of a response's claims, (n, 3), each from 0 to 1; None where no texts tell them.

    They come from the texts if every claim has words and every passage a text, since what is not
    known holds nothing of a claim; else from the metadata.

    Raises:
        InputError: if the metadata hold something else under `TEXT_MATCH_KEY`.
    """
    if _has_texts(graph):
        texts = [context.text or context.snippet for context in graph.contexts]
        return _matched(graph.topic, [atom.text for atom in graph.atoms], texts)
    if not tells_match(graph):
        return None
    where = f"response {graph.id!r}: metadata {TEXT_MATCH_KEY!r}"
    told = as_object(graph.metadata[TEXT_MATCH_KEY], where)
    rows = [_figures(told.get(atom), f"{where}, claim {atom!r}") for atom in graph.atom_ids]
    return np.array(rows, np.float64).reshape(-1, len(FIGURES))


def tells_match(graph: FactGraph) -> bool:
    """Whether `text_match` has figures of a response."""
    return _has_texts(graph) or TEXT_MATCH_KEY in graph.metadata


def leaves_no_topic_out(graph: FactGraph) -> bool:
    """Whether figures of a response come from texts whose topic nobody named."""
    return _has_texts(graph) and not graph.topic


def _has_texts(graph: FactGraph) -> bool:
    passages = all(context.text or context.snippet for context in graph.contexts)
    return passages and all(_WORD.search(atom.text) for atom in graph.atoms)


def recorded_match(figures: NDArray[np.float64], atoms: Sequence[str]) -> dict[str, list[float]]:
    """What the metadata hold of figures (n, 3) under `TEXT_MATCH_KEY`."""
    return dict(zip(atoms, figures.tolist(), strict=True))


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
    # As files keep them, so that a judge reads the same of texts and of recorded figures.
    return rows.round(_DIGITS)


def _share(asked: set[str], there: set[str]) -> float:
    return len(asked & there) / len(asked) if asked else 1.0


def _figures(value: object, where: str) -> list[float]:
    numbers = value if isinstance(value, list | tuple) else []
    told = [float(x) for x in numbers if isinstance(x, int | float) and 0 <= x <= 1]
    if len(told) != len(FIGURES):
        raise InputError(
            f"{where}: {shown(value)} are no figures of its text; give {len(FIGURES)} numbers "
            f"from 0 to 1 ({', '.join(FIGURES)})"
        )
    return told
