"""Learned potentials on real labels: every way to learn, held against every other, graph or none.

All are cross-fitted in the same folds of responses; what a method chooses, it chooses inside the
folds that it learns from. Then the learning curve, what each cause and group of columns buys, and
what is learned on one dataset, used on another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.figures.claim_parts import claim_parts_figure
from calibration.figures.panels import PAGE, draw_interval, panels
from calibration.learned_potentials.columns import COLUMN_GROUPS
from calibration.learned_potentials.field_parts import field_parts
from calibration.learned_potentials.fitting import FieldSettings
from calibration.learned_potentials.methods import (
    FIELDS,
    METHODS,
    ColumnMethod,
    CrossFitTask,
    cross_fit_task,
    learning_parts,
)
from calibration.learned_potentials.rivals import field
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.analyses.interval_values import mean_of_clusters, named
from experiments.analyses.posteriors import LabelledAtoms, score_change, scores_with_intervals
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.study.config import STRICT, Count, DatasetChoice
from factormodels.errors import unknown_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_PENALTY = 30.0
_SCORES = ("brier", "log_loss", "auroc")
FIELD, TREES = "with causes of biographies", "boosted trees, neighbours"
NEAR = "linear, neighbours"


@dataclass(frozen=True)
class Settings:
    """On what, and which methods.

    Attributes:
        datasets: labelled responses; curves and ablations are of the first.
        methods: names of methods of the ladder; empty: all of them.
        less: methods that every other is compared with.
        curve: methods of the learning curve.
        sizes: numbers of labelled responses of the learning curve.
        draws: how often these are drawn.
        folds: folds of the cross-fitting, the same for all.
    """

    __pydantic_config__: ClassVar = STRICT

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    methods: tuple[str, ...] = ()
    less: tuple[str, ...] = ("default", "ranks, causes", TREES, FIELD)
    curve: tuple[str, ...] = ("Platt", "logistic regression", "boosted trees", TREES, FIELD, NEAR)
    sizes: tuple[Count, ...] = (5, 10, 20, 40, 80, 125)
    draws: Count = 1
    folds: Annotated[int, Field(ge=2)] = 5

    def __post_init__(self) -> None:
        for name in (*self.methods, *self.less, *self.curve):
            if name not in METHODS:
                raise ValueError(unknown_name(f"the method {name!r}", name, METHODS))


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every method and their differences, curves, ablations and transfer."""
    loaded = context.load(settings.datasets)
    tasks = {d.name: cross_fit_task(d.graphs, settings.folds, context.seed) for d in loaded}
    names = settings.methods or tuple(METHODS)
    rows: dict[str, list[dict[str, Any]]] = {"scores": [], "differences": [], "across": []}
    first = next(iter(tasks))
    curves = len(settings.curve) * len(settings.sizes)
    pairs = list(permutations(tasks, 2))
    with context.track("methods", len(names) * len(tasks) + curves + 1 + len(pairs)) as step:
        for data, task in tasks.items():
            found: dict[str, Floats] = {}
            for name in names:
                if METHODS[name].suits(task):
                    found[name] = METHODS[name](task)
                step()
            atoms, seed = labelled(task), context.seed
            head = {"data": data}
            rows["scores"] += [head | row for row in score_rows(found, task, seed)]
            rows["differences"] += [
                head | row for row in difference_rows(found, settings.less, task, seed)
            ]
        curve = []
        for name in settings.curve:
            for size in settings.sizes:
                curve.append(curve_row(name, size, tasks[first], settings, context.seed))
                step()
        ablations = ablation_rows(tasks[first], context.seed)
        step()
        for source, target in pairs:
            used = across(tasks[source], tasks[target], names)
            atoms = labelled(tasks[target])
            for name, p in used.items():
                row: dict[str, Any] = {"where": f"{source} to {target}", "method": name}
                row |= scores_with_intervals(p, atoms, ("brier", "log_loss", "auroc"), context.seed)
                if TREES in used:
                    change = score_change("brier", p, used[TREES], atoms, context.seed)
                    row |= named("trees", change)
                rows["across"].append(row)
            step()
    frames = {name: data_frame(own) for name, own in rows.items() if own}
    frames |= {"curve": data_frame(curve), "ablations": data_frame(ablations)}
    shown = frames["scores"][frames["scores"]["data"] == first]
    biography, parts = one_response(tasks[first])
    return Artefacts(
        tables={name: table_of(name, frame) for name, frame in frames.items()},
        figures={
            "ladder": PaperFigure(ladder_figure(shown), shown, "Brier score of every method"),
            "curves": PaperFigure(curve_figure(frames["curve"]), frames["curve"], "curves"),
            "biography": PaperFigure(biography, parts, "one biography before and after"),
        },
    )


def labelled(task: CrossFitTask) -> LabelledAtoms:
    """The labelled claims of a task."""
    table, kept = task.table, ~np.isnan(task.table.labels)
    ids = np.array([response for response, _ in table.ids])
    return LabelledAtoms(table.labels[kept], ids[kept], kept)


def score_rows(found: Mapping[str, Floats], task: CrossFitTask, seed: int) -> list[dict[str, Any]]:
    """Scores of every method with intervals over responses, AUROC within folds."""
    atoms, rows = labelled(task), []
    for name, whole in found.items():
        p = whole[atoms.kept]
        row: dict[str, Any] = {"method": name, "n_atoms": len(p)}
        row |= scores_with_intervals(p, atoms, _SCORES, seed, task.fold[atoms.kept])
        row |= {"slope": np.nan, "slope_lower": np.nan, "slope_upper": np.nan}
        if float(np.ptp(p)) > 0.05:
            row |= scores_with_intervals(p, atoms, ("calibration_slope",), seed)
        rows.append(row | {"mean": float(p.mean())})
    return rows


def difference_rows(
    found: Mapping[str, Floats], less: Sequence[str], task: CrossFitTask, seed: int
) -> list[dict[str, Any]]:
    """Every method less some others, paired over responses."""
    atoms, rows = labelled(task), []
    fold = task.fold[atoms.kept]
    for other in (name for name in less if name in found):
        for name, p in found.items():
            if name != other:
                row: dict[str, Any] = {"method": name, "other": other}
                for score in _SCORES:
                    pair = (p[atoms.kept], found[other][atoms.kept])
                    row |= named(score, score_change(score, *pair, atoms, seed, fold))
                rows.append(row)
    return rows


def curve_row(
    name: str, size: int, task: CrossFitTask, settings: Settings, seed: int
) -> dict[str, Any]:
    """The Brier score of a method that learns from so many responses, mean over draws."""
    atoms = labelled(task)
    losses = np.zeros(len(atoms.labels))
    for draw in range(settings.draws):
        p = METHODS[name](task, learning_parts(task, size, seed + draw))
        losses += (p[atoms.kept] - atoms.labels) ** 2 / settings.draws
    index = atoms.grouping.index
    sums = np.bincount(index, losses), np.bincount(index)
    return {"method": name, "labelled": size} | named("brier", mean_of_clusters(*sums, seed))


def ablation_rows(task: CrossFitTask, seed: int) -> list[dict[str, Any]]:
    """The linear field without each cause and each group of columns, less the whole."""
    # One penalty for all, as inner folds choose it, so that it makes no difference.
    method, atoms = ColumnMethod(field(FieldSettings(penalty=_PENALTY))), labelled(task)
    whole = FIELDS[FIELD].table(task)
    p = method.fitted(task, whole)[atoms.kept]
    groups: dict[str, Sequence[str]] = {f"cause of the {name}": (name,) for name in whole.groups}
    rows = []
    for left, names in {**groups, **COLUMN_GROUPS}.items():
        kept = [name for name in whole.names if name not in names]
        causes = [name for name in whole.groups if name not in names]
        without = method.fitted(task, whole.of(kept, causes))[atoms.kept]
        change = score_change("brier", without, p, atoms, seed)
        rows.append({"left_out": left} | named("brier", change))
    return rows


def across(source: CrossFitTask, target: CrossFitTask, names: Sequence[str]) -> dict[str, Floats]:
    """Probability of each labelled claim of the target by what all of the source teaches."""
    kept = labelled(target).kept
    found = {}
    for name in names:
        method = METHODS[name]
        if isinstance(method, ColumnMethod):
            (predict,) = method.learner(method.table(source), [source.table.labelled])
            found[name] = predict(method.table(target))[kept]
    return found


def one_response(task: CrossFitTask) -> tuple[Figure, pd.DataFrame]:
    """The response whose Brier score the field moves by the median, before and after."""
    atoms, parts = labelled(task), field_parts(FIELDS[FIELD].table(task), task.fold)
    gains = (task.default - np.nan_to_num(task.table.labels)) ** 2
    gains -= (parts.after - np.nan_to_num(task.table.labels)) ** 2
    index = task.table.responses
    means = np.bincount(index, np.where(atoms.kept, gains, 0.0)) / np.bincount(index)
    chosen = np.flatnonzero(index == int(np.argsort(means)[len(means) // 2]))
    frame = data_frame(
        [
            {
                "claim": place + 1,
                "label": task.table.labels[at],
                "before": task.default[at],
                "after": parts.after[at],
                **{name: own[at] for name, own in parts.log_odds.items()},
            }
            for place, at in enumerate(chosen.tolist())
        ]
    )
    return claim_parts_figure(frame, tuple(parts.log_odds)), frame


_SCORE_COLUMNS = (
    interval_column("brier", "Brier", 4),
    interval_column("log_loss", "log loss", 3),
    interval_column("auroc", "AUROC", 3),
)

_TABLES: Mapping[str, tuple[tuple[Column, ...], str, str, str]] = {
    "scores": (
        (Column("method", "method"), *_SCORE_COLUMNS, interval_column("slope", "slope", 2)),
        "Every method on responses it has not seen",
        "data",
        "Intervals: 95 % over responses. AUROC: of pairs within a fold. Slope: of calibration, 1 "
        "where log odds are right.",
    ),
    "differences": (
        (Column("method", "method"), Column("other", "less"), *_SCORE_COLUMNS),
        "Every method less some others on the same responses",
        "data",
        "Intervals: 95 %, paired over responses. Below 0 the first is better, but for AUROC.",
    ),
    "across": (
        (
            Column("method", "method"),
            *_SCORE_COLUMNS,
            interval_column("trees", "less trees with neighbours", 4),
        ),
        "What is learned on one dataset, used on another",
        "where",
        "Intervals: 95 % over responses of the second, whose labels serve to score alone.",
    ),
    "curve": (
        (
            Column("labelled", "labelled responses", digits=0),
            interval_column("brier", "Brier", 4),
        ),
        "How many labelled responses",
        "method",
        "Brier score on responses of the other folds, mean over draws of those that are learned "
        "from; intervals: 95 % over the former.",
    ),
    "ablations": (
        (Column("left_out", "left out"), interval_column("brier", "Brier less the whole", 4)),
        "What each cause and each group of columns buys the linear field",
        "",
        "On responses not seen, everything learned anew; paired over responses.",
    ),
}
"""Columns, caption, groups and note of each table."""


def table_of(name: str, frame: pd.DataFrame) -> Table:
    """A table of the study by its name."""
    columns, caption, group, note = _TABLES[name]
    return Table(frame, columns, caption, group=group, note=note)


def ladder_figure(scores: pd.DataFrame) -> Figure:
    """The Brier score of every method of one dataset."""
    names = scores["method"].tolist()
    with panels(1, 1, (PAGE, 0.7 + 0.19 * len(names))) as (figure, ((place,),)):
        for height, row in zip(reversed(range(len(names))), scores.to_dict("records"), strict=True):
            ends = row["brier"], row["brier_lower"], row["brier_upper"]
            draw_interval(place, height, ends, color="0.2", marker="o")
        place.set_yticks(range(len(names) - 1, -1, -1), names)
        place.set_xlabel("Brier score on responses not seen")
    return figure


def curve_figure(frame: pd.DataFrame) -> Figure:
    """The Brier score of each method against the number of labelled responses."""
    return line_figure(frame, "labelled", {"brier": "Brier score"}, "method")
