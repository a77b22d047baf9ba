"""Features of the lexical relation model: shared words, names and numbers of a pair of texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.extraction.word_lists import NEGATIONS, NUMBER_WORDS, STOP_WORDS

if TYPE_CHECKING:
    from factormodels.extraction.relation_models.base import TextPair

FEATURES = ("sentence", "passage", "names", "numbers", "number_conflict", "negation")
"""The columns of `pair_features`, in order."""

STEM_LENGTH = 6
"""Words with the same first six letters count as equal: physics, physicist."""

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_])|\n+")
_MARKUP = re.compile(r"</?\w+>")
_FIRST_YEAR, _LAST_YEAR = 1000, 2100


class TakenApart(NamedTuple):
    """The words and numbers of a text by sentence; the names are those of all sentences."""

    words: list[set[str]]
    names: set[str]
    years: list[set[str]]
    others: list[set[str]]
    negated: list[bool]


def pair_features(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
    """Return features of pairs, float64 (n_pairs, 6), in the order of `FEATURES`.

    The title of the premise's page, if any, is the first sentence of the premise.

    - sentence: the share of the hypothesis's content words and numbers in one sentence of the
      premise, the sentence with the most of them (the first among equals).
    - passage: the share that occurs anywhere in the premise.
    - names: the share of the hypothesis's capitalized words that occur in the premise.
    - numbers: the share of its numbers and years that occur there; 1 if it has none.
    - number_conflict: the value of `sentence` if that sentence has a year (or another number) that
      the hypothesis lacks while the premise lacks one of the hypothesis's own; otherwise 0.
    - negation: the value of `sentence` if either that sentence or the hypothesis is negated, but
      not both; otherwise 0.

    All shares of a hypothesis without content words are zero.
    """
    premises = {
        text: taken_apart(text, whole=False)
        for text in dict.fromkeys(pair.titled_premise for pair in pairs)
    }
    passages = {text: set().union(*apart.words) for text, apart in premises.items()}
    hypotheses = {
        text: taken_apart(text, whole=True)
        for text in dict.fromkeys(pair.hypothesis for pair in pairs)
    }
    rows = [
        _features(premises[text], passages[text], hypotheses[pair.hypothesis])
        for pair in pairs
        for text in [pair.titled_premise]
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, len(FEATURES))


def _features(premise: TakenApart, passage: set[str], hypothesis: TakenApart) -> tuple[float, ...]:
    """Return the features of a pair; `passage` has all words and numbers of the premise."""
    words, years, others = hypothesis.words[0], hypothesis.years[0], hypothesis.others[0]
    shared = [len(words & sentence) for sentence in premise.words]
    most = max(shared)
    best = shared.index(most)
    count = max(1, len(words))
    in_sentence = most / count
    numbers = len(years) + len(others)
    conflict = any(
        not numbers <= passage and not there[best] <= numbers
        for numbers, there in ((years, premise.years), (others, premise.others))
    )
    turned = premise.negated[best] != hypothesis.negated[0]
    return (
        in_sentence,
        len(words & passage) / count,
        len(hypothesis.names & passage) / max(1, len(hypothesis.names)),
        (len(years & passage) + len(others & passage)) / numbers if numbers else 1.0,
        conflict * in_sentence,
        turned * in_sentence,
    )


def taken_apart(text: str, *, whole: bool) -> TakenApart:
    """Return a text's content words, names and numbers.

    Args:
        text: the text.
        whole: whether the text counts as one sentence.
    """
    plain = unicodedata.normalize("NFKC", _MARKUP.sub(" ", text))
    sentences = [plain] if whole else [s for s in _SENTENCE_END.split(plain) if s.strip()]
    result = TakenApart([], set(), [], [], [])
    for sentence in sentences or [""]:
        words: set[str] = set()
        years: set[str] = set()
        others: set[str] = set()
        negated = False
        for token in _TOKEN.findall(sentence):
            if token[0].isdigit():
                number = _number(token)
                (years if _is_year(token) else others).add(number)
                words.add(number)
                continue
            # Ignore accents, since foreign names are spelled with and without them.
            lower = _without_accents(token.casefold().replace("’", "'"))
            if lower in NEGATIONS or lower.endswith("n't"):
                negated = not negated
            elif lower in NUMBER_WORDS:
                number = NUMBER_WORDS[lower]
                others.add(number)
                words.add(number)
            elif lower.removesuffix("'s") not in STOP_WORDS and len(lower) > 1:
                word = _stem(lower)
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
