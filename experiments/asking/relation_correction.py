"""Corrections of a relation model's label bias: their source and their effect.

`calibration.label_bias` computes the corrections; this module applies them to relation models.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from calibration.label_bias import VectorScaling, without_bias
from calibration.validation import Floats
from experiments.settings import Option
from factormodels.claims import JUDGED_KINDS, likeliest_kind
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.relation_models.base import (
    Judgment,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.fact_graph import FactGraph
from factormodels.io.json import encode
from factormodels.io.learned_files import Fields, LearnedFormat, learned_content, read_learned
from factormodels.io.source.files import read_text, write_text
from factormodels.io.source.opening import exists
from factormodels.io.taught_responses import identities_as_plain, identities_from
from factormodels.metadata.evidence_source import RELATIONS_KEY
from factormodels.metadata.learned_from import (
    LEARNED_FROM,
    ResponseIdentity,
    joined_mark,
    learned_from,
    relations_mark,
)

NONE, PROBE, BATCH = "none", "probe", "batch"
AUTOMATIC = "automatic"
NAMED = (AUTOMATIC, NONE, PROBE, BATCH)

_FILE = LearnedFormat(
    "factormodels/relation-correction",
    1,
    "correction of relations",
    f"give a file that fit --relations wrote, or one of {', '.join(NAMED)}",
    "learn it again with fit --relations",
)

_LABELS = tuple(map(str, JUDGED_KINDS))

_LARGEST = 1_000
"""Largest weight or constant in a file; beyond it every answer would be certain."""

CorrectionName = Annotated[str, Field(min_length=1), Option("NAME")]
"""A correction: a name of `NAMED`, or a file that `fit` writes."""


def wanted_correction(name: str) -> str | RelationCorrection:
    """Return a name of `NAMED`, or read the correction in a file.

    Raises:
        InputError: if it is neither, or the file has no correction.
    """
    if name in NAMED:
        return name
    path = Path(name)
    if not exists(path):
        if path.suffix or len(path.parts) > 1:
            raise InputError(
                f"{name}: there is no such file; name a file that `factormodels fit` wrote, or "
                f"give --relation-correction {NAMED[0]}"
            )
        raise InputError(
            f"{unknown_name(f'--relation-correction {name!r}', name, NAMED)}, or a file that "
            "`factormodels fit` wrote"
        )
    return read_correction(name)


@dataclass(frozen=True)
class Lesson:
    """Data from which a correction was learned.

    Attributes:
        relations: name of the relation model whose answers were labeled; empty if a table does not
            name it.
        pairs: number of labeled pairs.
        log_loss: log loss of the given answers, in nats; None if infinite.
        corrected_log_loss: out-of-fold log loss after the scaling; None without folds.
        taught: identities of the responses of the pairs.
    """

    relations: str
    pairs: int
    log_loss: float | None
    corrected_log_loss: float | None
    taught: tuple[ResponseIdentity, ...]


@dataclass(frozen=True)
class RelationCorrection:
    """A map of the probabilities of entailment, contradiction and neutral.

    Attributes:
        name: origin: probe, batch, or the name of a file.
        bias: preference for each relation, which divides the probabilities; None for a scaling.
        scaling: scaling that was learned from labels; None for a bias.
        lesson: training data; None for a bias, or if not recorded.
        edited: True if its file has no digest, so that its numbers cannot be verified.
    """

    name: str
    bias: tuple[float, ...] | None = None
    scaling: VectorScaling | None = None
    lesson: Lesson | None = None
    edited: bool = False

    def corrected(self, shares: Floats) -> Floats:
        """Corrected probabilities, (n, 3).

        Args:
            shares: probabilities of entailment, contradiction and neutral, (n, 3).
        """
        if self.scaling is not None:
            return self.scaling.apply(shares)
        return shares if self.bias is None else without_bias(shares, np.array(self.bias))

    def marked(self, graph: FactGraph) -> FactGraph:
        """Graph that records whether labels of its response trained the correction."""
        facts = graph.metadata.get(RELATIONS_KEY)
        if self.lesson is None or not isinstance(facts, Mapping):
            return graph
        (mark,) = learned_from(self.lesson.taught, [graph])
        marked = {**facts, LEARNED_FROM: str(joined_mark(mark, relations_mark(graph)))}
        return replace(graph, metadata={**graph.metadata, RELATIONS_KEY: marked})

    def remarks(self, relations: str) -> Iterator[str]:
        """Remarks on the application of a learned correction.

        Args:
            relations: name of the relation model whose answers are corrected.
        """
        taught = "" if self.lesson is None else self.lesson.relations
        if taught and taught != relations:
            yield (
                f"The correction {self.name} was learned from answers of {taught}, and is "
                f"applied to answers of {relations}, whose label bias may differ."
            )
        if self.edited:
            yield (f"The correction {self.name} has no digest, so its numbers cannot be verified.")

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that results depend on, as JSON values."""
        facts: dict[str, Any] = {"name": self.name}
        if self.bias is not None:
            facts["bias"] = dict(zip(_LABELS, self.bias, strict=True))
        if self.scaling is not None:
            facts["weights"] = dict(zip(_LABELS, self.scaling.weights, strict=True))
            facts["constants"] = dict(zip(_LABELS, self.scaling.constants, strict=True))
        return facts


@dataclass(frozen=True)
class CorrectedRelations:
    """A relation model whose probabilities are corrected.

    An answer with only the probability of its own relation is unchanged, because the division of
    the rest is unknown.

    Attributes:
        model: the relation model.
        correction: the correction of its probabilities.
    """

    model: RelationModel
    correction: RelationCorrection

    @property
    def name(self) -> str:
        """The name of the model that judges."""
        return self.model.name

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return an answer per pair, in order."""
        return corrected_answers(self.model.judge(pairs), self.correction)


def corrected_answers(
    answers: Sequence[Judgment | Missing], correction: RelationCorrection
) -> list[Judgment | Missing]:
    """Correct the probabilities of a relation model's answers, and keep the original ones."""
    places = [
        at
        for at, answer in enumerate(answers)
        if isinstance(answer, Judgment) and answer.distribution is not None
    ]
    if not places:
        return list(answers)
    given = [answers[at] for at in places]
    shares = correction.corrected(np.array([as_stated(answer) for answer in given]))
    corrected = list(answers)
    for at, row in zip(places, shares.tolist(), strict=True):
        corrected[at] = _with_shares(answers[at], (row[0], row[1], row[2]))
    return corrected


def _with_shares(
    answer: Judgment | Missing, shares: tuple[float, float, float]
) -> Judgment | Missing:
    if isinstance(answer, Missing):
        return answer
    kind, probability = likeliest_kind(*shares)
    return replace(
        answer,
        kind=kind,
        probability=probability,
        distribution=shares,
        uncorrected=as_stated(answer),
    )


def as_stated(answer: Judgment | Missing) -> tuple[float, float, float] | None:
    """Distribution of an answer before any correction, or None."""
    if isinstance(answer, Missing):
        return None
    return answer.uncorrected or answer.distribution


def write_correction(correction: RelationCorrection, path: str | os.PathLike[str]) -> None:
    """Write a learned correction as JSON, which `read_correction` reads.

    Args:
        correction: the correction, with a scaling and its training data.
        path: the file.

    Raises:
        InputError: if it was not learned, or the file cannot be written.
    """
    scaling, lesson = correction.scaling, correction.lesson
    if scaling is None or lesson is None:
        raise InputError(f"the correction {correction.name} was not learned and cannot be written")
    content = {
        "weights": dict(zip(_LABELS, scaling.weights, strict=True)),
        "constants": dict(zip(_LABELS, scaling.constants, strict=True)),
        "relations": lesson.relations,
        "pairs": lesson.pairs,
        "log_loss": lesson.log_loss,
        "corrected_log_loss": lesson.corrected_log_loss,
        "labelled_responses": identities_as_plain(lesson.taught),
    }
    value = learned_content(_FILE, content, signed=not correction.edited)
    write_text(path, encode(value, str(path), indent=2) + "\n")


def read_correction(path: str | os.PathLike[str]) -> RelationCorrection:
    """Read a correction that `write_correction` wrote.

    Raises:
        InputError: if the file cannot be read, contains no such correction, or is damaged.
    """
    where = os.fspath(path)
    correction, signed = read_learned(read_text(path), where, _FILE, partial(_parsed, where))
    return correction if signed else replace(correction, edited=True)


def _parsed(path: str, fields: Fields) -> RelationCorrection:
    fields.only(
        *("weights", "constants", "relations", "pairs", "log_loss", "corrected_log_loss"),
        "labelled_responses",
    )
    weights, constants = (fields.object(key) for key in ("weights", "constants"))
    for numbers in (weights, constants):
        numbers.only(*_LABELS)
    lesson = Lesson(
        fields.text("relations"),
        fields.whole("pairs", 1),
        fields.optional_number("log_loss", 0.0),
        fields.optional_number("corrected_log_loss", 0.0),
        identities_from(fields.object("labelled_responses")),
    )
    scaling = VectorScaling(
        tuple(weights.number(label, -_LARGEST, _LARGEST) for label in _LABELS),
        tuple(constants.number(label, -_LARGEST, _LARGEST) for label in _LABELS),
    )
    return RelationCorrection(Path(path).name, scaling=scaling, lesson=lesson)
