"""What the lexical relation model sees of a pair of texts: counts of shared words and numbers.

Every distinct text is taken apart once; pairs are then compared by sparse matrices.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.extraction.word_lists import NEGATIONS, NUMBER_WORDS, STOP_WORDS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from factormodels.extraction.relation_models.base import TextPair

FEATURES = ("sentence", "passage", "names", "numbers", "number_conflict", "negation")
"""The columns of `pair_features`, in order."""

STEM_LENGTH = 6
"""Words count as equal if their first six letters are: physics, physicist."""

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_])|\n+")
_MARKUP = re.compile(r"</?\w+>")
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
_PAIRS_AT_ONCE = 20_000


class TakenApart(NamedTuple):
    """A text taken apart, sentence by sentence; tokens are numbers in a vocabulary."""

    words: list[set[int]]
    names: set[int]
    years: list[set[int]]
    others: list[set[int]]
    negated: list[bool]


@dataclass
class Vocabulary:
    """Numbers of the tokens that were met, in the order of meeting them."""

    numbers: dict[str, int]

    def of(self, token: str) -> int:
        """The number of a token."""
        return self.numbers.setdefault(token, len(self.numbers))


def pair_features(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
    """Features of pairs, an array of shape (n_pairs, 6) in the order of `FEATURES`.

    The title of the premise's page, where there is one, is the first sentence of the premise.

    - sentence: the share of the hypothesis's content words and numbers that stand in one sentence
      of the premise, the sentence with the most of them (the first of equals).
    - passage: the share that stands anywhere in the premise.
    - names: the share of the hypothesis's capitalised words that stand in the premise.
    - numbers: the share of its numbers and years that do; 1 if it has none.
    - number_conflict: sentence, if that sentence has a year (or another number) that the
      hypothesis lacks while the premise lacks one of the hypothesis's own; otherwise 0.
    - negation: sentence, if that sentence is negated and the hypothesis is not, or the other way
      round; otherwise 0.

    A hypothesis without content words has zeros for all shares.
    """
    vocabulary = Vocabulary({})
    premise_of, premises = _distinct(
        [pair.titled_premise for pair in pairs], vocabulary, whole=False
    )
    hypothesis_of, hypotheses = _distinct(
        [pair.hypothesis for pair in pairs], vocabulary, whole=True
    )
    if not pairs:
        return np.zeros((0, len(FEATURES)))
    size = len(vocabulary.numbers)
    tables = _Tables.of(premises, hypotheses, size)
    parts = [
        _features(tables, premise_of[start:stop], hypothesis_of[start:stop])
        for start in range(0, len(pairs), _PAIRS_AT_ONCE)
        for stop in [start + _PAIRS_AT_ONCE]
    ]
    return np.concatenate(parts)


@dataclass(frozen=True)
class _Tables:
    """Binary matrices, one row per premise, sentence of a premise, or hypothesis."""

    starts: NDArray[np.int64]
    sentence: csr_matrix
    passage: csr_matrix
    sentence_years: csr_matrix
    sentence_others: csr_matrix
    sentence_negated: NDArray[np.bool_]
    words: csr_matrix
    names: csr_matrix
    years: csr_matrix
    others: csr_matrix
    negated: NDArray[np.bool_]

    @classmethod
    def of(cls, premises: list[TakenApart], hypotheses: list[TakenApart], size: int) -> _Tables:
        lengths = [len(text.words) for text in premises]
        return cls(
            starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            sentence=_matrix((row for text in premises for row in text.words), size),
            passage=_matrix((set().union(*text.words) for text in premises), size),
            sentence_years=_matrix((row for text in premises for row in text.years), size),
            sentence_others=_matrix((row for text in premises for row in text.others), size),
            sentence_negated=np.array([flag for text in premises for flag in text.negated]),
            words=_matrix((text.words[0] for text in hypotheses), size),
            names=_matrix((text.names for text in hypotheses), size),
            years=_matrix((text.years[0] for text in hypotheses), size),
            others=_matrix((text.others[0] for text in hypotheses), size),
            negated=np.array([text.negated[0] for text in hypotheses]),
        )


def _features(
    tables: _Tables, premise: NDArray[np.int64], hypothesis: NDArray[np.int64]
) -> NDArray[np.float64]:
    lengths = np.diff(tables.starts)[premise]
    ends = np.cumsum(lengths)
    begins = ends - lengths
    pair = np.repeat(np.arange(len(premise)), lengths)
    sentence = np.arange(ends[-1]) - np.repeat(begins, lengths)
    sentence += np.repeat(tables.starts[premise], lengths)
    words = tables.words[hypothesis]
    shared = _shared(tables.sentence[sentence], words[pair])
    # The first of the sentences with the most: each count is made distinct by its position.
    ranked = shared * (len(shared) + 1) - np.arange(len(shared))
    best_of = np.maximum.reduceat(ranked, begins)
    best = sentence[np.flatnonzero(ranked == np.repeat(best_of, lengths))]
    count = np.maximum(1, _sums(words))
    in_sentence = np.maximum.reduceat(shared, begins) / count
    passage = tables.passage[premise]
    names = tables.names[hypothesis]
    years, others = tables.years[hypothesis], tables.others[hypothesis]
    n_years, n_others = _sums(years), _sums(others)
    found_years, found_others = _shared(passage, years), _shared(passage, others)
    numbers = n_years + n_others
    other_year = _sums(tables.sentence_years[best]) > _shared(tables.sentence_years[best], years)
    other_number = _sums(tables.sentence_others[best]) > _shared(
        tables.sentence_others[best], others
    )
    conflict = ((found_years < n_years) & other_year) | ((found_others < n_others) & other_number)
    turned = tables.sentence_negated[best] != tables.negated[hypothesis]
    columns = [
        in_sentence,
        _shared(passage, words) / count,
        _shared(passage, names) / np.maximum(1, _sums(names)),
        np.where(numbers > 0, (found_years + found_others) / np.maximum(1, numbers), 1.0),
        conflict * in_sentence,
        turned * in_sentence,
    ]
    return np.column_stack(columns).astype(np.float64)


def _distinct(
    texts: Sequence[str], vocabulary: Vocabulary, *, whole: bool
) -> tuple[NDArray[np.int64], list[TakenApart]]:
    places: dict[str, int] = {}
    index = np.array([places.setdefault(text, len(places)) for text in texts], dtype=np.int64)
    return index, [taken_apart(text, vocabulary, whole=whole) for text in places]


def taken_apart(text: str, vocabulary: Vocabulary, *, whole: bool) -> TakenApart:
    """A text's content words, names and numbers.

    Args:
        text: the text.
        vocabulary: numbers of tokens, to which those met here are added.
        whole: whether the text counts as one sentence.
    """
    plain = unicodedata.normalize("NFKC", _MARKUP.sub(" ", text))
    sentences = [plain] if whole else [s for s in _SENTENCE_END.split(plain) if s.strip()]
    result = TakenApart([], set(), [], [], [])
    for sentence in sentences or [""]:
        words: set[int] = set()
        years: set[int] = set()
        others: set[int] = set()
        negated = False
        for token in _TOKEN.findall(sentence):
            if token[0].isdigit():
                number = vocabulary.of(_number(token))
                (years if _is_year(token) else others).add(number)
                words.add(number)
                continue
            # An accent is no difference: passages and claims spell foreign names both ways.
            lower = _without_accents(token.casefold().replace("’", "'"))
            if lower in NEGATIONS or lower.endswith("n't"):
                negated = not negated
            elif lower in NUMBER_WORDS:
                number = vocabulary.of(NUMBER_WORDS[lower])
                others.add(number)
                words.add(number)
            elif lower.removesuffix("'s") not in STOP_WORDS and len(lower) > 1:
                word = vocabulary.of(_stem(lower))
                words.add(word)
                if token[0].isupper():
                    result.names.add(word)
        result.words.append(words)
        result.years.append(years)
        result.others.append(others)
        result.negated.append(negated)
    return result


def _stem(word: str) -> str:
    plain = word.removesuffix("'s")
    if len(plain) > 3 and plain.endswith("s") and not plain.endswith("ss"):
        plain = plain[:-1]
    return plain[:STEM_LENGTH]


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def _number(token: str) -> str:
    return re.sub(r"[.,](?=\d{3}(?!\d))", "", token)


def _is_year(token: str) -> bool:
    return token.isdecimal() and len(token) == 4 and _FIRST_YEAR <= int(token) <= _LAST_YEAR


def _matrix(rows: Iterable[set[int]], size: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    columns: list[int] = []
    starts = [0]
    for row in rows:
        columns.extend(sorted(row))
        starts.append(len(columns))
    values = np.ones(len(columns), dtype=np.int64)
    shape = (len(starts) - 1, max(1, size))
    return csr_matrix((values, np.array(columns, dtype=np.int64), starts), shape=shape)


def _shared(left: csr_matrix, right: csr_matrix) -> NDArray[np.int64]:
    """Number of columns that each row of two binary matrices has in common."""
    return _sums(left.multiply(right))


def _sums(matrix: csr_matrix) -> NDArray[np.int64]:
    return np.asarray(matrix.sum(axis=1), dtype=np.int64).ravel()
