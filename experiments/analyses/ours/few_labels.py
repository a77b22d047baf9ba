"""Estimates from few labels: how often intervals hold what all labels say, and their width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from calibration.estimation import (
    QUANTITIES,
    Unit,
    difference,
    draw,
    estimate,
    inclusion_probabilities,
    spread,
)
from calibration.figures.panels import PAGE, nth_look, panels
from calibration.grouping import Grouping
from calibration.learned_potentials.methods import METHODS, cross_fit_task
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.posteriors import LabelledAtoms, labelled_atoms
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.study.config import STRICT, DatasetChoice

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BIAS = 0.6
"""What biased probabilities are, times the good ones."""

Design = Literal["responses", "claims", "chosen responses", "chosen claims"]
"""What is labelled: a random sample, or what `estimate --choose` would choose."""


@dataclass(frozen=True)
class Settings:
    """On what, how many labels, and how often they are drawn.

    Attributes:
        dataset: labelled responses whose labels are hidden but for those that are drawn.
        labels: numbers of responses, or of claims, that are labelled.
        designs: what is labelled: responses or claims, at random or chosen.
        quantities: what is estimated.
        draws: how often labels are drawn.
        folds: folds from which the good posteriors are learned.
        method: the method of `learned-potentials` that gives them.
    """

    __pydantic_config__: ClassVar = STRICT

    dataset: DatasetChoice
    labels: tuple[Annotated[int, Field(ge=3)], ...] = (10, 20, 40, 80)
    designs: tuple[Design, ...] = ("responses", "claims", "chosen claims")
    quantities: tuple[Literal["share", "mean-share", "brier", "f1-at-k"], ...] = ("share", "brier")
    draws: Annotated[int, Field(ge=1)] = 500
    folds: Annotated[int, Field(ge=2)] = 5
    method: str = "six classes"


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Coverage and width by design, posteriors, quantity and number of labels."""
    (data,) = context.load([settings.dataset], "dataset")
    task = cross_fit_task(data.graphs, settings.folds, context.seed)
    atoms = labelled_atoms(task.graphs, data.name)
    good = METHODS[settings.method](task)[atoms.kept]
    shuffled = np.random.default_rng(context.seed).permutation(good)
    posteriors = {
        "good": good,
        "another model's": task.default[atoms.kept],
        "biased": _BIAS * good,
        "useless": shuffled,
    }
    rows: list[dict[str, Any]] = []
    with context.track("designs", len(settings.designs) * len(settings.labels)) as step:
        for design in settings.designs:
            for n in settings.labels:
                rows += coverage_rows(posteriors, atoms, design, n, settings, context.seed)
                step()
    frame = data_frame(rows)
    figure = PaperFigure(_figure(frame), frame, "width of intervals against labels")
    return Artefacts(tables={"coverage": _table(frame)}, figures={"widths": figure})


def coverage_rows(
    posteriors: Mapping[str, Floats],
    atoms: LabelledAtoms,
    design: Design,
    n: int,
    settings: Settings,
    seed: int,
) -> list[dict[str, Any]]:
    """A row per posteriors and quantity: how often intervals hold the truth, and their width.

    Of the Brier score also the difference between the first two posteriors.

    The truth is what all labels say. Intervals are about responses like these, so that they may
    hold that of these more often than their level.
    """
    labels, responses = atoms.labels, np.asarray(atoms.grouping.index)
    names = [q for q in settings.quantities if q != "f1-at-k" or design.endswith("responses")]
    judged: list[tuple[str, tuple[Floats, ...], str]] = [
        (kind, (p,), name) for kind, p in posteriors.items() for name in names
    ]
    if "brier" in names and len(posteriors) > 1:
        (one, p), (other, q) = [*posteriors.items()][:2]
        judged.append((f"{one} less {other}", (p, q), "brier"))
    asked = [(*each, [_truth(each[2], p, labels, responses) for p in each[1]]) for each in judged]
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for number in range(settings.draws):
        drawn = {kind: _drawn(p, atoms.grouping, design, n, seed + number)
                 for kind, p in posteriors.items()}  # fmt: skip
        for kind, those, name, truths in asked:
            # Of a difference, both are of the labels that the first would choose.
            kept, weights = drawn.get(kind) or next(iter(drawn.values()))
            known = np.where(kept, labels, np.nan)
            each = [estimate(QUANTITIES[name](p, known, responses, weights=weights))
                    for p in those]  # fmt: skip
            told = each[0] if len(each) == 1 else difference(*each)
            truth = truths[0] - sum(truths[1:])
            found.setdefault((kind, name), []).append((
                told.lower <= truth <= told.upper,
                told.labels_lower <= truth <= told.labels_upper,
                told.upper - told.lower,
                told.labels_upper - told.labels_lower,
            ))  # fmt: skip
    rows = []
    for (kind, quantity), draws in found.items():
        values = np.array(draws, dtype=np.float64)
        covers, labels_cover, width, labels_width = values.mean(axis=0)
        rows.append(
            {
                "design": design,
                "posteriors": kind,
                "quantity": quantity,
                "n": n,
                "covers": covers,
                "width": width,
                "labels_cover": labels_cover,
                "labels_width": labels_width,
                "widest_ratio": float((values[:, 2] / values[:, 3]).max()),
                "draws": settings.draws,
            }
        )
    return rows


def _truth(name: str, p: Floats, labels: Floats, responses: Any) -> float:
    whole = QUANTITIES[name](p, labels, responses)
    return float(whole.observed.sum() / whole.size.sum())


def _drawn(p: Floats, grouping: Grouping, design: Design, n: int, seed: int) -> tuple[Any, Floats]:
    """Which claims are labelled, and how many each stands for."""
    unit = Unit.RESPONSE if design.endswith("responses") else Unit.CLAIM
    size = len(grouping.responses) if unit is Unit.RESPONSE else p.size
    if design.startswith("chosen"):
        minutes = np.ones(size) if unit is Unit.CLAIM else grouping.sizes.astype(np.float64)
        expected = spread(p, grouping, unit)
        chances = inclusion_probabilities(expected, minutes, n, np.ones(size, dtype=np.bool_))
        kept = draw(chances, seed)
    else:
        chances = np.full(size, n / size)
        kept = np.zeros(size, dtype=np.bool_)
        kept[np.random.default_rng(seed).choice(size, n, replace=False)] = True
    weights = np.where(kept, 1 / chances, 1.0)
    if unit is Unit.CLAIM:
        return kept, weights
    return kept[grouping.index], weights[grouping.index]


def _table(frame: pd.DataFrame) -> Table:
    designs = zip(frame["quantity"], frame["design"], strict=True)
    headed = frame.assign(heading=[f"{name}, {design} labelled" for name, design in designs])
    return Table(
        headed.sort_values(["quantity", "design"], kind="stable"),
        (
            Column("posteriors", "posteriors"),
            Column("n", "labelled", digits=0),
            Column("covers", "covers", digits=3),
            Column("width", "width", digits=3),
            Column("labels_cover", "labels alone cover", digits=3),
            Column("labels_width", "width of labels alone", digits=3),
        ),
        "How often nominal 95% intervals hold what all labels say, and how wide they are.",
        group="heading",
        note=f"{frame['draws'].iloc[0]} draws. Biased: {_BIAS:g} times the good posteriors; "
        "useless: these in random order; another model's: the default of the graphs as they are.",
    )


def _figure(frame: pd.DataFrame) -> Figure:
    first = frame[frame["quantity"] == frame["quantity"].iloc[0]]
    designs = list(dict.fromkeys(first["design"]))
    with panels(1, len(designs), (PAGE, 2.4), sharey=True) as (figure, (axes,)):
        for place, design in zip(axes, designs, strict=True):
            own = first[first["design"] == design]
            alone = own.groupby("n")["labels_width"].mean()
            place.plot(alone.index, alone, color="0.5", linewidth=1.0, label="labels alone")
            for look, (kind, part) in enumerate(own.groupby("posteriors", sort=False)):
                place.plot(part["n"], part["width"], label=str(kind), **nth_look(look))
            place.set_xscale("log")
            place.set_xticks(sorted(set(own["n"])), [str(n) for n in sorted(set(own["n"]))])
            place.set_xticks([], [], minor=True)
            place.set_title(f"{design} labelled", fontsize=8)
            place.set_xlabel("number labelled")
        axes[0].set_ylabel("width of the interval")
        axes[0].legend(fontsize=6)
        return figure
