"""Learned potentials on real labels: every way to learn from them, held against every other.

All are cross-fitted in the same folds of responses; what a method chooses, it chooses inside the
folds that it learns from. Then the learning curve, what each cause and column buys, what is learned
on one dataset and used on another, and one response before and after.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration.figures.claim_parts import claim_parts_figure
from calibration.learned_potentials.methods import FIELDS, METHODS, cross_fit_task
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import estimate_figure, line_figure
from experiments.analyses.ours.shared.cross_fit_rows import (
    TABLES,
    ablation_rows,
    curve_row,
    difference_rows,
    median_response,
    score_rows,
    table_of,
    transfer_rows,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import data_frame
from experiments.settings.limits import Count, Folds
from experiments.study.config import STRICT, DatasetChoice
from factormodels.errors import unknown_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIELD, TEXTS = "with causes of biographies", "with texts"
TREES = "boosted trees, neighbours"
RIVAL = f"{TREES}, texts"


@dataclass(frozen=True, config=STRICT)
class Settings:
    """On what, and which methods.

    Attributes:
        datasets: labelled responses; curves and ablations are of the first.
        methods: names of methods of the ladder; empty: all of them.
        less: methods that every other is compared with.
        curve: methods of the learning curve.
        sizes: its numbers of labelled responses.
        draws: how often these are drawn.
        folds: folds of the cross-fitting, the same for all.
    """

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    methods: tuple[str, ...] = ()
    less: tuple[str, ...] = ("default", TREES, FIELD, RIVAL, TEXTS)
    curve: tuple[str, ...] = ("Platt", "logistic regression", TREES, FIELD, RIVAL, TEXTS)
    sizes: tuple[Count, ...] = (5, 10, 20, 40, 80, 125)
    draws: Count = 3
    folds: Folds = 5

    def __post_init__(self) -> None:
        for name in (*self.methods, *self.less, *self.curve):
            if name not in METHODS:
                raise ValueError(unknown_name(f"the method {name!r}", name, METHODS))


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every method and their differences, curves, ablations and transfer."""
    seed, names = context.seed, settings.methods or tuple(METHODS)
    loaded = context.load(settings.datasets)
    tasks = {d.name: cross_fit_task(d.graphs, settings.folds, seed) for d in loaded}
    first = next(iter(tasks.values()))
    pairs = list(permutations(tasks, 2))
    learners = [name for name in settings.curve if METHODS[name].suits(first)]
    points = [(name, size) for name in learners for size in settings.sizes]
    whole = FIELDS[TEXTS if FIELDS[TEXTS].suits(first) else FIELD]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    with context.track("methods", len(names) * len(tasks) + len(points) + 1 + len(pairs)) as step:
        for data, task in tasks.items():
            predictions = {}
            for name in names:
                if METHODS[name].suits(task):
                    predictions[name] = METHODS[name](task)
                step()
            rows["scores"] += [{"data": data} | row for row in score_rows(predictions, task, seed)]
            changes = difference_rows(predictions, settings.less, task, seed)
            rows["differences"] += [{"data": data} | row for row in changes]
        for name, size in points:
            rows["curve"].append(curve_row(name, size, first, settings.draws, seed))
            step()
        rows["ablations"] = ablation_rows(first, whole, seed)
        step()
        for source, target in pairs:
            transferred = transfer_rows(tasks[source], tasks[target], names, TREES, seed)
            rows["across"] += [{"where": f"{source} to {target}"} | row for row in transferred]
            step()
    frames = {name: data_frame(records) for name, records in rows.items() if records}
    curve, ladder = frames["curve"], frames["scores"].query(f"data == {loaded[0].name!r}")
    parts = data_frame(median_response(first, whole))
    moved = claim_parts_figure(parts, tuple(parts.columns[4:]))
    return Artefacts(
        tables={name: table_of(name, frame) for name, frame in frames.items()},
        figures={
            "ladder": PaperFigure(ladder_figure(ladder), ladder, "Brier score of every method"),
            "curves": PaperFigure(curve_figure(curve), curve, "Brier score by labelled responses"),
            "biography": PaperFigure(moved, parts, "One response before and after"),
        },
    )


def ladder_figure(scores: pd.DataFrame) -> Figure:
    """The Brier score of every method of one dataset."""
    return estimate_figure(scores, "method", {"brier": "Brier score on responses not seen"})


def curve_figure(frame: pd.DataFrame) -> Figure:
    """The Brier score of each method against the number of labelled responses."""
    return line_figure(frame, "labelled", {"brier": "Brier score"}, "method")
