"""Probabilities of relations from several answers, of models drawn too sure and too unsure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from scipy.special import softmax

from calibration.recalibration.relation_law import fit_relations
from calibration.scores import corp_decomposition
from calibration.validation import Floats, Integers
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.limits import Count
from experiments.study.config import STRICT
from factormodels.extraction.relation_models.consensus import (
    KINDS,
    ConsensusLaw,
    SampledAnswer,
    relation_probabilities,
)
from factormodels.nouns import counted

_SPREAD = 2.0
"""Standard deviation of the true log odds of relations."""


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Which models are drawn.

    Attributes:
        sharpness: what a model multiplies the true log odds by: 1 is calibrated, more too sure.
        pairs: pairs that are judged.
        labels: numbers of other pairs with labels, from which a law is learned.
        samples: answers per pair.
    """

    sharpness: tuple[Annotated[float, Field(gt=0)], ...] = (0.5, 1.0, 2.0, 4.0)
    pairs: Count = 4000
    labels: tuple[Count, ...] = (50, 500)
    samples: Count = 8


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnPairs:
    """Pairs, their true relations, and what a model says of them.

    Attributes:
        kinds: (n,) the relations.
        stated: (n, 3) probabilities that the model has: those of its tokens.
        columns: (n, 3, k) columns of its answers.
    """

    kinds: Integers
    stated: Floats
    columns: Floats


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of each way to a probability, by how sharp the model is."""
    rows = []
    with context.track("models", len(settings.sharpness)) as step:
        for sharpness in settings.sharpness:
            rows += list(score_rows(sharpness, settings, context.seed))
            step()
    frame = data_frame(rows)
    columns = columns_as("way | log_loss:3 log loss | brier:4 Brier, entailment | mcb:4 MCB")
    caption = "Probabilities of relations by where they come from, of drawn models."
    note = (
        f"{counted(settings.pairs, 'pair')}, {counted(settings.samples, 'answer')} each. "
        "Sharpness: what a model "
        "multiplies the true log odds by. Log loss of the three relations; MCB: miscalibration."
    )
    shown = frame.assign(sharpness=frame["sharpness"].map("{:g}".format))
    figure = line_figure(shown, "sharpness", {"log_loss": "log loss"}, by="way")
    return Artefacts(
        {"ways": Table(shown, columns, caption, group="sharpness", note=note)},
        {"losses": PaperFigure(figure, shown, "log loss against sharpness")},
    )


def score_rows(sharpness: float, settings: Settings, seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each way to a probability."""
    law = ConsensusLaw(samples=settings.samples, likeness="none")
    rng = np.random.default_rng(seed)
    judged = drawn_pairs(settings.pairs, sharpness, law, rng)
    found = {
        "log-probabilities": judged.stated,
        "votes": relation_probabilities(judged.columns, np.array((0.0, 0.0, *law.weights))),
    }
    for n in settings.labels:
        known = drawn_pairs(n, sharpness, law, rng)
        learned = fit_relations(known.columns, known.kinds).coefficients
        found[f"law of {counted(n, 'label')}"] = relation_probabilities(judged.columns, learned)
    truth = (judged.kinds == 0).astype(np.float64)
    for way, p in found.items():
        own = np.clip(p[np.arange(len(p)), judged.kinds], 1e-6, 1.0)
        entails = np.clip(p[:, 0], 1e-6, 1.0 - 1e-6)
        yield {
            "sharpness": sharpness,
            "way": way,
            "log_loss": float(-np.log(own).mean()),
            "brier": float(((entails - truth) ** 2).mean()),
            "mcb": corp_decomposition(entails, truth).miscalibration,
        }


def drawn_pairs(
    n: int, sharpness: float, law: ConsensusLaw, rng: np.random.Generator
) -> DrawnPairs:
    """Pairs with normal log odds, relations drawn from these, and answers from sharper ones.

    An answer at a temperature is drawn from the model's log odds divided by it.
    """
    odds = rng.normal(scale=_SPREAD, size=(n, len(KINDS)))
    kinds = drawn(softmax(odds, axis=1), rng)
    columns = np.empty((n, len(KINDS), 1 + len(law.temperatures)))
    heat = [law.temperature_of(sample) for sample in range(law.samples)]
    said = np.stack([drawn(softmax(sharpness * odds / each, axis=1), rng) for each in heat], axis=1)
    for pair in range(n):
        answers = [
            SampledAnswer(at, KINDS[kind], "")
            for at, kind in zip(heat, said[pair].tolist(), strict=True)
        ]
        columns[pair] = law.columns(answers)
    return DrawnPairs(kinds, softmax(sharpness * odds, axis=1), columns)


def drawn(p: Floats, rng: np.random.Generator) -> Integers:
    """One place of each row, drawn by its probabilities."""
    above = rng.random(len(p))[:, None] > p.cumsum(axis=1)
    places: Integers = np.minimum(above.sum(axis=1), p.shape[1] - 1)
    return places
