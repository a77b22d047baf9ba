"""Corrections of a relation model's label bias: where they come from, and what they change.

What is divided by, or learned, is in `calibration.label_bias`; here it meets relation models.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from calibration.label_bias import VectorScaling, without_bias
from calibration.validation import Floats
from experiments.settings import Option
from factormodels.claims import JUDGED_KINDS, likeliest_kind
from factormodels.decoded_values import as_object, shown
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import (
    Judgement,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.io.json import check_keys, decode, encode
from factormodels.io.source.files import read_text, write_text
from factormodels.io.source.opening import exists

NONE, PROBE, BATCH = "none", "probe", "batch"
AUTOMATIC = "automatic"
NAMED = (AUTOMATIC, NONE, PROBE, BATCH)

FORMAT = "factormodels/relation-correction"
VERSION = 1

_LABELS = tuple(map(str, JUDGED_KINDS))

_LARGEST = 1_000
"""Largest weight or constant of a file: beyond it every answer would be certain."""

CorrectionName = Annotated[str, Field(min_length=1), Option("NAME")]
"""A correction: one of `NAMED`, or a file that `write_correction` writes."""


def wanted_correction(name: str) -> str | RelationCorrection:
    """A name of `NAMED`, or the correction in a file.

    Raises:
        InputError: if it is neither, or the file holds none.
    """
    if name in NAMED:
        return name
    if not exists(Path(name)):
        raise InputError(
            f"--relation-correction {name!r} is unknown; use one of {', '.join(NAMED)}, or a file "
            "of a learned scaling"
        )
    return read_correction(name)


@dataclass(frozen=True)
class RelationCorrection:
    """A map of the probabilities of entailment, contradiction and neutral.

    Attributes:
        name: where it is from: probe, batch, or the name of a file.
        bias: the preference for each that probabilities are divided by; None of a scaling.
        scaling: what was learned from labels; None of a bias.
    """

    name: str
    bias: tuple[float, ...] | None = None
    scaling: VectorScaling | None = None

    def corrected(self, shares: Floats) -> Floats:
        """Corrected probabilities, (n, 3).

        Args:
            shares: probabilities of entailment, contradiction and neutral, (n, 3).
        """
        if self.scaling is not None:
            return self.scaling.apply(shares)
        return shares if self.bias is None else without_bias(shares, np.array(self.bias))

    @property
    def facts(self) -> dict[str, Any]:
        """What results depend on, as JSON values."""
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

    An answer that gives the probability of its relation alone stays as it is: nothing says how it
    divides the rest.

    Attributes:
        model: what judges.
        correction: what its probabilities are corrected by.
    """

    model: RelationModel
    correction: RelationCorrection

    @property
    def name(self) -> str:
        """The name of the model that judges."""
        return self.model.name

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """One answer per pair, in order."""
        return corrected_answers(self.model.judge(pairs), self.correction)


def corrected_answers(
    answers: Sequence[Judgement | Missing], correction: RelationCorrection
) -> list[Judgement | Missing]:
    """Answers of a relation model with their probabilities corrected, those before kept beside."""
    places = [
        at
        for at, answer in enumerate(answers)
        if isinstance(answer, Judgement) and answer.distribution is not None
    ]
    if not places:
        return list(answers)
    given = [answers[at] for at in places]
    shares = correction.corrected(
        np.array([answer.distribution for answer in given if isinstance(answer, Judgement)])
    )
    corrected = list(answers)
    for at, row in zip(places, shares.tolist(), strict=True):
        corrected[at] = _with_shares(answers[at], (row[0], row[1], row[2]))
    return corrected


def _with_shares(
    answer: Judgement | Missing, shares: tuple[float, float, float]
) -> Judgement | Missing:
    if isinstance(answer, Missing):
        return answer
    kind, probability = likeliest_kind(*shares)
    return replace(
        answer,
        kind=kind,
        probability=probability,
        distribution=shares,
        uncorrected=answer.distribution,
    )


def write_correction(
    correction: RelationCorrection, path: str | os.PathLike[str], learned: Mapping[str, Any]
) -> None:
    """Write a correction that was learned, as JSON; `read_correction` returns it.

    Args:
        correction: the correction, with a scaling.
        path: the file.
        learned: what it was learned from, as JSON values.

    Raises:
        InputError: if the file cannot be written.
    """
    facts = {name: value for name, value in correction.facts.items() if name != "name"}
    value = {"format": FORMAT, "version": VERSION, **facts, "learned": dict(learned)}
    write_text(path, encode(value, str(path), indent=2) + "\n")


def read_correction(path: str | os.PathLike[str]) -> RelationCorrection:
    """A correction that `write_correction` wrote.

    Raises:
        InputError: if the file cannot be read, or holds no such correction.
    """
    where = os.fspath(path)
    value = as_object(decode(read_text(path), path), where)
    if value.get("format") != FORMAT or value.get("version") != VERSION:
        raise InputError(
            f"{where}: it is no correction of relations; give a file that write_correction wrote, "
            f"or one of {', '.join(NAMED)}"
        )
    check_keys(value, ("format", "version", "weights", "constants", "learned"), where)
    weights, constants = (_numbers_of_labels(value, key, where) for key in ("weights", "constants"))
    return RelationCorrection(Path(where).name, scaling=VectorScaling(weights, constants))


def _numbers_of_labels(value: Mapping[str, Any], key: str, where: str) -> tuple[float, ...]:
    """The number of each label under a key of a file.

    Raises:
        InputError: if one is missing, or none that a scaling can have.
    """
    by_label = as_object(value.get(key), f"{where}: key {key!r}")
    check_keys(by_label, _LABELS, f"{where}: key {key!r}")
    numbers = []
    for label in _LABELS:
        number = by_label.get(label)
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        # The comparison also refuses NaN, and integers that no float holds.
        if not is_number or not -_LARGEST <= number <= _LARGEST:
            raise InputError(
                f"{where}: key {key!r}: {label} is {shown(number)}; give a number from "
                f"-{_LARGEST:,} to {_LARGEST:,} for each of {', '.join(_LABELS)}, or write the "
                "file again with fit --relations"
            )
        numbers.append(float(number))
    return tuple(numbers)
