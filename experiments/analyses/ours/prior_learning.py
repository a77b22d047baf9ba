"""Default against learned priors: what learning wins on responses it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from calibration.figures.panels import PAGE, draw_interval, nth_look, panels
from experiments.analyses.context import AnalysisContext
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.study import learning
from experiments.study.config import STRICT, DatasetChoice, Encoding
from experiments.study.data import StudyData
from experiments.study.learning import Learning
from factormodels.claims import ATOM_PRIOR, CONTEXT_PRIOR

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LearnOrKeep = Literal["learn", "keep"]


@dataclass(frozen=True)
class Settings:
    """What is learned, and on what.

    Attributes:
        datasets: labelled responses; what is wrong with synthetic ones is known from their
            arguments, and what is learned is held against it.
        atom_prior: whether one prior of all atoms is learned.
        context_prior: whether one prior of all contexts is learned.
        relations: whether a temperature (a factor on the log odds) of the relations is learned.
        encoding: encoding of the relations.
        folds: folds of the cross-validation.
    """

    __pydantic_config__: ClassVar = STRICT

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    atom_prior: LearnOrKeep = "learn"
    context_prior: LearnOrKeep = "learn"
    relations: Literal["temperature", "keep"] = "temperature"
    encoding: Encoding = "conditional"
    folds: Annotated[int, Field(ge=2)] = 5


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Held-out scores under default and learned priors, and what was learned."""
    data = context.load(settings.datasets)
    scores: list[dict[str, Any]] = []
    values: list[dict[str, Any]] = []
    with context.track("datasets", len(data)) as step:
        for choice, each in zip(settings.datasets, data, strict=True):
            found = learn(each, settings, context.seed)
            scores += [{"dataset": each.name, **row} for row in score_rows(found)]
            known = truth(choice.synthetic)
            values += [{"dataset": each.name, **row} for row in value_rows(found, known)]
            step()
    table, learned = data_frame(scores), data_frame(values)
    return Artefacts(
        tables={"scores": _scores_table(table), "values": _values_table(learned)},
        figures={
            "learned": PaperFigure(_figure(table), table, "held-out scores, learned less default")
        },
    )


def learn(data: StudyData, settings: Settings, seed: int) -> Learning:
    """What labels teach, and the comparison on held-out responses."""
    specification = learning.specification(
        settings.atom_prior, settings.context_prior, settings.relations, None, settings.encoding
    )
    chosen = learning.LearningSettings(folds=settings.folds, seed=seed)
    return learning.analyse(data.graphs, specification, chosen)


def score_rows(found: Learning) -> list[dict[str, Any]]:
    """One row per score: under the default, as learned, and the difference.

    Scores are the Brier score and the log loss, means over atoms, and minus the log probability
    of all labels of a response, mean over responses. Differences are learned less default, with
    intervals of the paired bootstrap over responses.
    """
    validated = found.validated
    if validated is None:
        return []
    rows = []
    for name, title in (
        ("brier", "Brier"),
        ("log_loss", "log loss"),
        ("log_likelihood", "-log P(labels)"),
    ):
        test = validated.comparisons[name]
        if name == "log_likelihood":
            pair = -validated.log_likelihood.mean(), -validated.default_log_likelihood.mean()
        else:
            pair = validated.score(name)
        rows.append(
            {
                "score": title,
                "default": float(pair[1]),
                "learned": float(pair[0]),
                "difference": test.value,
                "lower": test.lower,
                "upper": test.upper,
                "n": test.n,
                **{
                    rival: np.nan
                    if name == "log_likelihood"
                    else validated.rival_score(rival, name)
                    for rival in validated.rivals
                },
            }
        )
    return rows


def value_rows(found: Learning, known: Mapping[str, float]) -> list[dict[str, Any]]:
    """One row per learned number with its interval and, where it is known, the truth."""
    return [
        {
            "parameter": row.name,
            "stated": row.start,
            "learned": row.estimate,
            "lower": row.lower,
            "upper": row.upper,
            "truth": known.get(row.name, np.nan),
            "status": str(row.status),
        }
        for row in found.learned.table()
    ]


def truth(synthetic: Mapping[str, Any] | None) -> dict[str, float]:
    """The numbers that synthetic responses were drawn with, by name of the parameter.

    The prior of atoms is the rate of true ones; that of contexts their reliability; the
    temperature is what takes the stated log odds of relations back to those of the error rate.
    What has no single true value is left out.
    """
    if synthetic is None:
        return {}
    known: dict[str, float] = {}
    for name, rate, prior, default in (
        ("atom_prior", "truth_rate", "atom_prior", ATOM_PRIOR),
        ("context_prior", "reliability", "context_prior", CONTEXT_PRIOR),
    ):
        value = synthetic.get(rate, synthetic.get(prior, default))
        if isinstance(value, int | float):
            known[name] = float(value)
    if not synthetic.get("log_odds_noise") and synthetic.get("error_rate") is None:
        known["temperature"] = 1.0 / synthetic.get("log_odds_factor", 1.0)
    if synthetic.get("copied"):
        # Of correlated evidence no temperature is the true one.
        known.pop("temperature", None)
    return known


def _scores_table(table: pd.DataFrame) -> Table:
    return Table(
        table.assign(
            default_best=table["lower"] > 0,
            learned_best=table["upper"] < 0,
        ),
        (
            Column("dataset", "data"),
            Column("score", "score"),
            Column("default", "default", digits=4, bold="default_best"),
            Column("learned", "learned", digits=4, bold="learned_best"),
            Column("difference", "difference", digits=4, lower="lower", upper="upper"),
            Column("platt", "Platt", digits=4),
            Column("base_rate", "base rate", digits=4),
        ),
        "Held-out responses under default and learned priors",
        note=(
            "Difference: learned less default, below 0 where learning helps; bootstrap over "
            "responses. Platt (of the default) and base rate: from the same folds. "
            "Bold: the better where the interval excludes 0."
        ),
    )


def _values_table(learned: pd.DataFrame) -> Table:
    return Table(
        learned,
        (
            Column("parameter", "parameter"),
            Column("stated", "stated", digits=3),
            Column("learned", "learned", digits=3, lower="lower", upper="upper"),
            Column("truth", "truth", digits=3),
            Column("status", "status"),
        ),
        "What was learned from all labels, and what is known to be true",
        group="dataset",
        note="Intervals: 95 %, clustered by response.",
    )


def _figure(table: pd.DataFrame) -> Figure:
    titles = list(dict.fromkeys(table["score"]))
    names = list(dict.fromkeys(table["dataset"]))
    size = (PAGE, 0.9 + 0.22 * len(names))
    with panels(1, len(titles), size, sharey=True) as (figure, (axes,)):
        heights = dict(zip(names, range(len(names) - 1, -1, -1), strict=True))
        for place, title in zip(axes, titles, strict=True):
            place.axvline(0.0, color="0.6", linewidth=0.7)
            for row in table[table["score"] == title].to_dict("records"):
                ends = row["difference"], row["lower"], row["upper"]
                draw_interval(place, heights[row["dataset"]], ends, **nth_look(0))
            place.set_xlabel(title)
        axes[0].set_yticks(list(heights.values()), names)
        figure.suptitle("score on responses not seen, learned less default", fontsize=8.5)
        return figure
