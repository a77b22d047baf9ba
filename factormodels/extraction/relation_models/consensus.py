"""Probabilities of relations from several answers: what they say, and how alike they are.

A language model is asked the same question at several temperatures, and gives a reason and a
relation each time. An answer counts by how like the others it is, by the mean likeness of its text
to theirs (Bhattacharjya et al. 2025, SIMBA-UQ, arXiv 2510.13836, section 3). There the mean
likeness of the best answer is its confidence. That is no probability: reasons in other words make
it small where all answers say the same. Here likenesses weigh the votes instead.

How much votes are worth is a law of few coefficients, a conditional logit. That without data takes
the weighed votes as they are; `calibration.recalibration.relation_law` learns one from labels.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import RelationKind
from factormodels.errors import InputError, unknown_name
from factormodels.io.files import read_text, write_text
from factormodels.io.json_records import located
from factormodels.io.learned_files import Fields, LearnedFormat, learned_content, read_learned
from factormodels.learned_from import ResponseIdentity, identities_as_plain, identities_from

KINDS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL)
"""What an answer can say, in the order of all arrays here."""

TEMPERATURES = (0.3, 0.5, 0.7, 1.0)
SAMPLES = 8
_FILE = LearnedFormat(
    "factormodels consensus",
    2,
    "law of a consensus",
    "make one with factormodels consensus --save",
    "learn it anew",
)

_MOST_WEIGHT = 1e4
"""Largest magnitude of a coefficient: e to its power is not finite."""

_MOST_LOG_RATIO = 30.0
"""Log ratios of the probabilities of relations are within it, so that none is 0."""

_WORD = re.compile(r"\w+")


class SampledAnswer(NamedTuple):
    """One of several answers to one question.

    Attributes:
        temperature: what it was sampled at.
        kind: the relation that it says.
        text: all of it, its reason among it.
    """

    temperature: float
    kind: RelationKind
    text: str


def same_words(first: Sequence[str], second: Sequence[str]) -> float:
    """Share of the words of either text that both have (Jaccard)."""
    own, other = set(first), set(second)
    return len(own & other) / len(own | other) if own | other else 1.0


def same_order(first: Sequence[str], second: Sequence[str]) -> float:
    """Longest common subsequence of words, twice its length over both lengths (ROUGE-L, F1)."""
    if not first or not second:
        return float(not first and not second)
    lengths = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for place, other in enumerate(second, 1):
            above = lengths[place]
            lengths[place] = diagonal + 1 if word == other else max(above, lengths[place - 1])
            diagonal = above
    return 2.0 * lengths[-1] / (len(first) + len(second))


def same_relation(first: Sequence[str], second: Sequence[str]) -> float:
    """1 whatever the texts are, so that every answer has one vote."""
    del first, second
    return 1.0


def same_letters(first: Sequence[str], second: Sequence[str]) -> float:
    """Letters in runs that both texts have, twice their number over both lengths (difflib)."""
    own, other = " ".join(first), " ".join(second)
    return difflib.SequenceMatcher(None, own, other, autojunk=False).ratio()


LIKENESSES: Mapping[str, Callable[[Sequence[str], Sequence[str]], float]] = MappingProxyType(
    {"order": same_order, "words": same_words, "letters": same_letters, "none": same_relation}
)
"""How alike the words of two answers are, from 0 to 1, by name."""

MEANING = "meaning:"
"""How a likeness by embeddings begins; the folder of their model follows."""

Alike = Callable[[Sequence[str]], NDArray[np.float64]]
"""From n texts to how alike each two are, (n, n); its diagonal says nothing."""


def likeness_named(name: str) -> Alike:
    """The likeness of a name of `LIKENESSES`, or of `meaning:FOLDER`.

    The latter is the cosine between embeddings of whole texts, 0 where it is less, by the model of
    sentence-transformers in the folder, which is read once.

    Raises:
        InputError: for an unknown likeness, or a folder without such a model.
        MissingDependencyError: if sentence-transformers is needed and not installed.
    """
    if name.startswith(MEANING):
        # It is slow to load, and most laws do without.
        from factormodels.extraction.embeddings import load_embedder

        embedder = load_embedder(name.removeprefix(MEANING), "")
        return lambda texts: _cosines(embedder.embed(texts).vectors)
    _refuse_unknown(name)

    def by_words(texts: Sequence[str]) -> NDArray[np.float64]:
        words = [_WORD.findall(text.casefold()) for text in texts]
        alike = np.zeros((len(words), len(words)))
        for first, own in enumerate(words):
            for second, other in enumerate(words[:first]):
                alike[first, second] = LIKENESSES[name](own, other)
        return alike + alike.T

    return by_words


def _cosines(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # A vector of nothing is like none.
    rows = rows / np.where(lengths == 0.0, 1.0, lengths)
    result: NDArray[np.float64] = np.clip(rows @ rows.T, 0.0, 1.0)
    return result


def _refuse_unknown(likeness: str) -> None:
    if likeness not in LIKENESSES and not likeness.startswith(MEANING):
        known = (*LIKENESSES, f"{MEANING}FOLDER")
        raise InputError(unknown_name(f"the likeness {likeness!r}", likeness, known))


@dataclass(frozen=True)
class ConsensusLaw:
    """How answers are sampled, and the probability of each relation from what they say.

    The log odds of relations are the sum of an intercept and of weighted columns: the log share of
    the votes for a relation, each weighed by its likeness; then the same of the plain votes at
    each temperature alone. One vote spread evenly is added to each, as by the method "samples".

    Attributes:
        temperatures: what answers are sampled at, in turn.
        samples: answers per pair.
        likeness: one of `LIKENESSES`, or `meaning:FOLDER`, as `likeness_named` has them.
        weights: (1 + temperatures) weights of the columns.
        intercepts: of entailment and of contradiction, against neutral.
        learned_from: what it was learned from, one sentence; empty without data.
        taught: identities of the responses whose labels it was learned from.
    """

    temperatures: tuple[float, ...] = TEMPERATURES
    samples: int = SAMPLES
    likeness: str = "order"
    weights: tuple[float, ...] = ()
    intercepts: tuple[float, float] = (0.0, 0.0)
    learned_from: str = ""
    taught: tuple[ResponseIdentity, ...] = ()

    def __post_init__(self) -> None:
        if not self.temperatures or not all(0.0 <= each <= 2.0 for each in self.temperatures):
            raise InputError(
                f"the temperatures are {list(self.temperatures)}; give one or more from 0 to 2"
            )
        if len(set(self.temperatures)) < len(self.temperatures):
            raise InputError(f"the temperatures {list(self.temperatures)} have one twice; keep one")
        if self.samples < 1:
            raise InputError(f"{self.samples} answers say nothing; give 1 or more samples")
        _refuse_unknown(self.likeness)
        if not self.weights:
            object.__setattr__(self, "weights", (1.0, *(0.0 for _ in self.temperatures)))
        if len(self.weights) != 1 + len(self.temperatures) or len(self.intercepts) != 2:
            raise InputError(
                f"{len(self.weights)} weights and {len(self.intercepts)} intercepts do not fit "
                f"{len(self.temperatures)} temperatures; give 1 + {len(self.temperatures)} and 2"
            )
        if not all(map(math.isfinite, (*self.weights, *self.intercepts))):
            raise InputError("a coefficient of the consensus is not a finite number; learn it anew")

    def temperature_of(self, sample: int) -> float:
        """What the answer of a number, from 0, is sampled at."""
        return self.temperatures[sample % len(self.temperatures)]

    @cached_property
    def _alike(self) -> Alike:
        return likeness_named(self.likeness)

    def mean_likenesses(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Mean likeness of each text to the others, (n,); 1 of one that is alone.

        Raises:
            InputError: as `likeness_named`.
            MissingDependencyError: likewise.
        """
        n = len(texts)
        if n < 2:
            return np.ones(n)
        alike = self._alike(texts).copy()
        np.fill_diagonal(alike, 0.0)
        result: NDArray[np.float64] = alike.sum(axis=1) / (n - 1)
        return result

    def columns(self, answers: Sequence[SampledAnswer]) -> NDArray[np.float64]:
        """What answers say of each relation, (3, 1 + temperatures), as the class has it.

        Raises:
            InputError: for an answer at a temperature that the law has not.
        """
        votes = np.array([[each.kind is kind for kind in KINDS] for each in answers], np.float64)
        votes = votes.reshape(-1, len(KINDS))
        counted = [self.mean_likenesses([each.text for each in answers]) @ votes]
        places = Counter(each.temperature for each in answers)
        for unknown in places.keys() - set(self.temperatures):
            raise InputError(
                f"an answer at temperature {unknown:g} is none of {list(self.temperatures)}; "
                "sample as the law says"
            )
        for temperature in self.temperatures:
            own = np.array([each.temperature == temperature for each in answers], bool)
            counted.append(votes[own].sum(axis=0))
        shares = np.array(counted) + 1.0 / len(KINDS)
        result: NDArray[np.float64] = np.log(shares / shares.sum(axis=1, keepdims=True)).T
        return result

    def distribution(self, answers: Sequence[SampledAnswer]) -> tuple[float, float, float]:
        """Probabilities of entailment, contradiction and neutral.

        Raises:
            InputError: as `columns`.
        """
        columns = self.columns(answers)[None]
        entailment, contradiction, neutral = relation_probabilities(
            columns, np.array((*self.intercepts, *self.weights))
        )[0].tolist()
        return entailment, contradiction, neutral

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the law as JSON.

        Raises:
            InputError: if the file cannot be written.
        """
        content = {name: getattr(self, name) for name in _NUMBERS}
        content["labelled_responses"] = identities_as_plain(self.taught)
        text = json.dumps(learned_content(_FILE, content), indent=1, allow_nan=False)
        write_text(path, text + "\n")


_NUMBERS = ("temperatures", "samples", "likeness", "weights", "intercepts", "learned_from")
"""Attributes of a law that its file has under the same names."""

VOTES = ConsensusLaw()
"""The law without data: weighed votes as they are."""


def relation_probabilities(
    columns: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Probabilities of relations, (n, 3), none of them 0: softmax of weighted columns.

    Args:
        columns: (n, 3, k) columns of each relation.
        coefficients: (2 + k,) intercepts of entailment and contradiction, then weights.
    """
    scores = columns @ coefficients[2:] + np.array([*coefficients[:2], 0.0])
    powers = np.exp(np.maximum(scores - scores.max(axis=1, keepdims=True), -_MOST_LOG_RATIO))
    result: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return result


def read_consensus(path: str | os.PathLike[str]) -> ConsensusLaw:
    """A law from its file.

    Raises:
        InputError: if it is no such file, of another version, or damaged.
    """
    return read_learned(read_text(path), path, _FILE, _law_from)[0]


def _law_from(fields: Fields) -> ConsensusLaw:
    """The law that `ConsensusLaw.save` wrote."""
    fields.only(*_NUMBERS, "labelled_responses")
    temperatures = fields.numbers("temperatures")
    reach = (-_MOST_WEIGHT, _MOST_WEIGHT)
    first, second = fields.numbers("intercepts", 2, *reach)
    weights = fields.numbers("weights", 1 + len(temperatures), *reach)
    with located(fields.where):
        return ConsensusLaw(
            tuple(temperatures),
            fields.whole("samples"),
            fields.text("likeness"),
            tuple(weights),
            (first, second),
            fields.text("learned_from"),
            identities_from(fields.object("labelled_responses")),
        )
