"""Excerpts of long texts: the deciding sentence of a passage, and the claims in a response."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import RelationKind
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.lexical_features import STEM_LENGTH
from factormodels.fact_graph import FactGraph

_SENTENCE_END = re.compile(
    r"([.!?…][\"”’»)\]]*)\s+|([。！？][」』”’）]*)\s*",
)
_GOES_ON = re.compile(
    r"(?:\b(?:[^\W\d_]|\d{1,2}|dr|mrs?|ms|prof|st|sr|jr|gen|col|gov|rev|sen|vs|approx|no|vol|pp)\."
    r"|[?？][\"”’»)\]」』）]*)$",
    re.IGNORECASE,
)
"""End of a piece that goes on: an initial, an ordinal number, an abbreviation before a name or a
number, or a question, which decides with its answer."""

_LONGEST = 400
"""Largest number of shown characters of a sentence."""

_MOST_SENTENCES = 200
"""Largest number of examined sentences of a passage."""

_LEAST_SHARE = 0.5
"""Smallest share of a claim's words in the sentence that is marked for it, if its sentence is
unknown."""


class Marked(NamedTuple):
    """A piece of a response.

    Attributes:
        text: the piece.
        claims: indices of its claims, from 0; empty between sentences.
    """

    text: str
    claims: tuple[int, ...] = ()


def deciding_sentences(passages: Sequence[tuple[str, str, RelationKind]]) -> list[str]:
    """The sentence of each passage that decides its relation to a claim, with … for omitted text.

    The basis of a relation model's answer is not recorded. The function takes the sentence with the
    largest sum of two numbers: the share of the claim's words in the sentence, weighted by their
    rarity among the sentences of all passages and the claims, so that ubiquitous names count
    little; and half of the lexical model's probability of the recorded relation. A question is
    taken with the sentence that follows. Ties go to the first sentence.

    Args:
        passages: (passage, claim, the recorded relation).
    """
    from factormodels.extraction.relation_models.lexical import relation_distributions
    from factormodels.extraction.relation_models.lexical_features import pair_features

    parts = [_sentences(text)[:_MOST_SENTENCES] for text, _, _ in passages]
    pairs = [
        TextPair(sentence, claim)
        for sentences, (_, claim, _) in zip(parts, passages, strict=True)
        for sentence in sentences
    ]
    if not pairs:
        return [""] * len(passages)
    distributions = relation_distributions(pair_features(pairs))
    shares = _rare_shares(pairs)
    excerpts = []
    start = 0
    for sentences, (_, _, kind) in zip(parts, passages, strict=True):
        these = slice(start, start + len(sentences))
        probable = distributions[these, int(kind is RelationKind.CONTRADICTION)]
        scores = shares[these] + probable / 2
        start += len(sentences)
        if not sentences:
            excerpts.append("")
            continue
        best = int(scores.argmax())
        before = "… " if best else ""
        after = " …" if best + 1 < len(sentences) else ""
        shown = textwrap.shorten(sentences[best], _LONGEST, placeholder=" …")
        excerpts.append(f"{before}{shown}{after}")
    return excerpts


def deciding_excerpts(
    passages: Sequence[tuple[str, str, RelationKind]], whole: int = 600
) -> list[str]:
    """Deciding sentence of each passage with its neighbors, or the whole of a short passage.

    Args:
        passages: as in `deciding_sentences`.
        whole: number of characters up to which a passage is shown in full.
    """
    long = [passage for passage in passages if len(passage[0]) > whole]
    sentences = iter(deciding_sentences(long))
    excerpts = []
    for text, _, _ in passages:
        if len(text) <= whole:
            excerpts.append(text)
            continue
        decides = next(sentences).removeprefix("… ").removesuffix(" …")
        parts = _sentences(text)
        start = " ".join(decides.split())
        at = next(
            (k for k, sentence in enumerate(parts) if " ".join(sentence.split()).startswith(start)),
            0,
        )
        first, last = max(0, at - 1), min(len(parts), at + 2)
        before, after = "… " if first else "", " …" if last < len(parts) else ""
        excerpts.append(f"{before}{' '.join(parts[first:last])}{after}")
    return excerpts


def _sentences(text: str) -> list[str]:
    """The sentences of a passage, a question together with the sentence that follows."""
    sentences: list[str] = []
    lines = _SENTENCE_END.sub(lambda end: f"{end[1] or end[2]}\n", text).splitlines()
    for piece in filter(None, map(str.strip, lines)):
        # What is longer is not shown.
        if sentences and len(sentences[-1]) < _LONGEST and _GOES_ON.search(sentences[-1]):
            sentences[-1] += f" {piece}"
        else:
            sentences.append(piece)
    return sentences


def _rare_shares(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
    """Share of each hypothesis's words in its premise, weighted by rarity in all texts."""
    words = [(_words(pair.premise), _words(pair.hypothesis)) for pair in pairs]
    # Claims count as well: the subject of a response is in most of them, and a pronoun in passages.
    texts = {pair.premise for pair in pairs} | {pair.hypothesis for pair in pairs}
    counts = Counter(word for text in texts for word in _words(text))

    def weight(some: set[str]) -> float:
        return math.fsum(sorted(math.log((len(texts) + 1) / (counts[word] + 0.5)) for word in some))

    return np.array(
        [
            weight(claim & passage) / total if (total := weight(claim)) > 0 else 0.0
            for passage, claim in words
        ]
    )


def _words(text: str) -> set[str]:
    return {word[:STEM_LENGTH] for word in re.findall(r"\w{2,}", text.lower())}


def marked_response(graph: FactGraph) -> tuple[Marked, ...]:
    """Split the text of a response into pieces, each with its claims.

    A claim belongs to the sentence that it was extracted from. If this is not recorded, it belongs
    to the sentence with most of its words, provided that it has at least half of them.
    """
    from factormodels.extraction.relation_models.lexical_features import pair_features
    from factormodels.extraction.sentences import sentences_of

    sentences = sentences_of(graph)
    made: list[list[int]] = [[] for _ in sentences]
    for number, atom in enumerate(graph.atoms):
        index = None if atom.sentence is None else atom.sentence - 1
        if index is None and sentences:
            shares = pair_features([TextPair(sentence, atom.text) for sentence in sentences])[:, 0]
            index = int(shares.argmax()) if shares.max() >= _LEAST_SHARE else None
        if index is not None and 0 <= index < len(sentences):
            made[index].append(number)
    pieces: list[Marked] = []
    at = 0
    for sentence, claims in zip(sentences, made, strict=True):
        begin = graph.response.find(sentence, at)
        # Markup of lists and bold words is not part of sentences, but may occur within them.
        if begin < 0:
            continue
        pieces.append(Marked(graph.response[at:begin]))
        pieces.append(Marked(sentence, tuple(claims)))
        at = begin + len(sentence)
    pieces.append(Marked(graph.response[at:]))
    return tuple(piece for piece in pieces if piece.text)
