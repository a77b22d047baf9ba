"""Judgements of own claims drawn at known rates, for where no model was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibration.self_knowledge import ClaimLabel, ClaimRecord, ModelJudgement, Setting
from experiments.study.config import STRICT, DatasetChoice, Probability


@dataclass(frozen=True)
class DrawnModel:
    """A model that does not exist: labelled claims, and the rates at which it judges them.

    Attributes:
        name: what tables call it.
        data: the labelled claims.
        self_known: by setting, the share of supported claims that it judges correct.
        self_unknown: by setting, the share of unsupported claims that it judges incorrect.
    """

    __pydantic_config__: ClassVar = STRICT

    name: str
    data: DatasetChoice
    self_known: Mapping[Setting, Probability]
    self_unknown: Mapping[Setting, Probability]


def drawn(records: Iterable[ClaimRecord], model: DrawnModel, seed: int) -> list[ClaimRecord]:
    """Return records with judgements in every setting for which the model has rates.

    One uniform number is drawn per claim, so that a claim judged correct in the stricter of two
    settings is judged correct in the other.
    """
    generator = np.random.default_rng(seed)
    found = []
    for record in records:
        draw = float(generator.random())
        said = {}
        for setting in model.self_known.keys() & model.self_unknown.keys():
            correct = (
                model.self_known[setting]
                if record.label is ClaimLabel.SUPPORTED
                else 1.0 - model.self_unknown[setting]
            )
            other = (
                ModelJudgement.NEITHER
                if setting is Setting.NONE_OF_THE_ABOVE
                else ModelJudgement.FALSE
            )
            said[setting.value] = ModelJudgement.TRUE if draw < correct else other
        found.append(
            replace(
                record,
                direct_asking=said.get(Setting.DIRECT_ASKING.value),
                question_answering=said.get(Setting.QUESTION_ANSWERING.value),
                none_of_the_above=said.get(Setting.NONE_OF_THE_ABOVE.value),
            )
        )
    return found
