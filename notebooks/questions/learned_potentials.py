"""Learned potentials on real labels: how much does each way of learning gain?

All methods are cross-fitted in the same folds of responses, and choose their settings within the
folds that they learn from. The other tables are the learning curve, the gain of each cause and
column, transfer between datasets, and one response before and after.

Question: does a field of linear potentials with hidden causes judge claims better than methods
without graphs do, and from how many labeled responses?
Data: factscore (curves and ablations are of it) and factcheck-bench, embedded, with their labels.
Rival: every other method: Platt and beta calibration, logistic regression, boosted trees.

    python notebooks/questions/learned_potentials.py --out docs/results/learned-potentials

It takes 14 minutes of processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.figures.claim_parts import claim_parts_figure
from calibration.learned_potentials.columns import COLUMN_GROUPS, FAMILIES
from calibration.learned_potentials.fitting import FieldSettings, fit_fields
from calibration.learned_potentials.methods import (
    FIELDS,
    METHODS,
    ColumnMethod,
    CrossFitTask,
    cross_fit_task,
    cross_fitted,
    field,
    learning_parts,
)
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.claim_scores import (
    RANKED,
    LabeledAtoms,
    difference_rows,
    score_change,
    score_rows,
    scores_with_intervals,
)
from experiments.findings.figures import estimate_figure, line_figure
from experiments.findings.interval_values import mean_of_clusters
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.settings.inputs import read_graphs
from factormodels.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIELD, TEXTS = "with causes of biographies", "with texts"
TREES = "boosted trees, neighbors"
RIVAL = f"{TREES}, texts"

LADDER = (
    "default",
    "base rate",
    "Platt",
    "beta",
    "logistic regression",
    "boosted trees",
    "boosted trees, neighbors",
    "field: columns",
    "with position",
    "with causes of sentences",
    "with causes of biographies",
    "with passages of other claims",
    "linear, neighbors",
    "with a module",
    "module, neighbors",
    "logistic regression, texts",
    "boosted trees, neighbors, texts",
    "with texts",
    "neighbors, texts",
    "module, texts",
)
"""The methods; "six classes" is among the views of `real_graphs.py --learned`, on FR2 too."""

_PENALTY = 30.0
_COLUMNS = "brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC"
TABLES: Mapping[str, tuple[str, str, str, str]] = {
    "scores": (
        f"method | {_COLUMNS} | slope:2± slope",
        "Every method on responses it has not seen",
        "data",
        "Intervals: 95% over responses. AUROC: of pairs within a fold. Slope: of calibration, 1 "
        "where log odds are right.",
    ),
    "differences": (
        f"method | other minus | {_COLUMNS}",
        "Differences between methods on the same responses",
        "data",
        "Intervals: 95%, paired over responses. Below 0 the first is better, but for AUROC.",
    ),
    "across": (
        f"method | {_COLUMNS} | trees:4± difference from trees with neighbors",
        "Methods learned on one dataset and used on another",
        "where",
        "Intervals: 95% over responses of the second, whose labels serve to score alone.",
    ),
    "curve": (
        "labeled:0 labeled responses | brier:4± Brier | spread:4 of draws",
        "Brier score by number of labeled responses",
        "method",
        "On responses of other folds; mean and standard deviation over draws of the responses "
        "learned from. Intervals: 95% over the responses of other folds.",
    ),
    "ablations": (
        "left_out left out | brier:4± Brier minus the whole",
        "Gain of the linear field by each cause, group of columns and column",
        "kind",
        "On responses not seen, everything learned anew; paired over responses.",
    ),
}
"""Columns, caption, groups and note of each table."""


def learned_potentials(
    *,
    data: tuple[Path, ...] = (Path("factscore"), Path("factcheck-bench")),
    methods: tuple[str, ...] = LADDER,
    references: tuple[str, ...] = ("default", TREES, FIELD, RIVAL, TEXTS),
    curve: tuple[str, ...] = ("Platt", "logistic regression", TREES, FIELD, RIVAL, TEXTS),
    sizes: tuple[int, ...] = (5, 10, 20, 40, 80, 125),
    draws: int = 3,
    folds: int = 5,
    seed: int = 0,
) -> Artifacts:
    """Return scores of every method and their differences, curves, ablations and transfer.

    Args:
        data: files or embedded datasets of labeled responses; curves and ablations are of the
            first.
        methods: names of methods of the ladder.
        references: methods that every other is compared with.
        curve: methods of the learning curve.
        sizes: its numbers of labeled responses.
        draws: how often these are drawn.
        folds: folds of the cross-fitting, the same for all.
        seed: seed of the folds, of the draws and of the bootstrap over responses.
    """
    for name in (*methods, *references, *curve):
        if name not in METHODS:
            raise InputError(unknown_name(f"the method {name!r}", name, METHODS))
    tasks = {path.stem: cross_fit_task(read_graphs(path), folds, seed) for path in data}
    first = next(iter(tasks.values()))
    pairs = list(permutations(tasks, 2))
    learners = [name for name in curve if METHODS[name].suits(first)]
    points = [(name, size) for name in learners for size in sizes]
    whole = FIELDS[TEXTS if FIELDS[TEXTS].suits(first) else FIELD]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for name, task in tasks.items():
        predictions = {}
        for method in methods:
            if METHODS[method].suits(task):
                predictions[method] = METHODS[method](task)
        atoms, fold = labeled(task), task.fold
        known = {method: p[atoms.kept] for method, p in predictions.items()}
        scores = score_rows(known, atoms, fold[atoms.kept], seed)
        rows["scores"] += [{"data": name} | row for row in scores]
        changes = difference_rows(known, references, atoms, fold[atoms.kept], seed)
        rows["differences"] += [{"data": name} | row for row in changes]
    for name, size in points:
        rows["curve"].append(curve_row(name, size, first, draws, seed))
    rows["ablations"] = ablation_rows(first, whole, seed)
    for source, target in pairs:
        transferred = transfer_rows(tasks[source], tasks[target], methods, TREES, seed)
        rows["across"] += [{"where": f"{source} to {target}"} | row for row in transferred]
    frames = {name: data_frame(records) for name, records in rows.items() if records}
    by_size, ladder = frames["curve"], frames["scores"].query(f"data == {data[0].stem!r}")
    parts = data_frame(median_response(first, whole))
    moved = claim_parts_figure(parts, tuple(parts.columns[4:]))
    return Artifacts(
        tables={name: table_of(name, frame) for name, frame in frames.items()},
        figures={
            "ladder": PaperFigure(ladder_figure(ladder), ladder, "Brier score of every method"),
            "curves": PaperFigure(
                curve_figure(by_size), by_size, "Brier score by labeled responses"
            ),
            "biography": PaperFigure(moved, parts, "One response before and after"),
        },
    )


def ladder_figure(scores: pd.DataFrame) -> Figure:
    """The Brier score of every method of one dataset."""
    return estimate_figure(scores, "method", {"brier": "Brier score on responses not seen"})


def curve_figure(frame: pd.DataFrame) -> Figure:
    """The Brier score of each method against the number of labeled responses."""
    return line_figure(frame, "labeled", {"brier": "Brier score"}, "method")


def table_of(name: str, frame: pd.DataFrame) -> Table:
    """A table by its name, of the rows below."""
    columns, caption, group, note = TABLES[name]
    return Table(frame, columns_as(columns), caption, group=group, note=note)


def labeled(task: CrossFitTask) -> LabeledAtoms:
    """The labeled claims of a task."""
    table, kept = task.table, ~np.isnan(task.table.labels)
    ids = np.array([response for response, _ in table.ids])
    return LabeledAtoms(table.labels[kept], ids[kept], kept)


def curve_row(name: str, size: int, task: CrossFitTask, n_draws: int, seed: int) -> dict[str, Any]:
    """The Brier score of a method that learns from a number of responses, mean over draws.

    Its spread is the standard deviation of the draws' scores.
    """
    atoms, losses = labeled(task), []
    for draw in range(n_draws):
        p = METHODS[name](task, learning_parts(task, size, seed + draw))
        losses.append((p[atoms.kept] - atoms.labels) ** 2)
    index = atoms.grouping.index
    sums = np.bincount(index, np.mean(losses, axis=0)), np.bincount(index)
    row = {"method": name, "labeled": size} | named("brier", mean_of_clusters(*sums, seed))
    scores = np.mean(losses, axis=1)
    return row | {"spread": float(scores.std(ddof=1)) if n_draws > 1 else np.nan}


def ablation_rows(task: CrossFitTask, whole_of: ColumnMethod, seed: int) -> list[dict[str, Any]]:
    """A linear field without each cause, group of columns and column, minus the whole field."""
    # One penalty for all, as inner folds choose it, so that it makes no difference.
    learner, atoms = field(FieldSettings(penalty=_PENALTY)), labeled(task)
    whole = whole_of.table(task)
    p = cross_fitted(learner, whole, task.fold)[atoms.kept]
    left: dict[tuple[str, str], Sequence[str]] = {
        **{("cause", f"cause of the {name}"): (name,) for name in whole.groups},
        **{("group of columns", name): names for name, names in COLUMN_GROUPS.items()},
        **{("column", name): (name,) for name in chain(*COLUMN_GROUPS.values())},
    }
    left = {key: names for key, names in left.items() if {*whole.names, *whole.groups} & {*names}}
    rows = []
    for (kind, name), names in left.items():
        kept = [column for column in whole.names if column not in names]
        causes = [cause for cause in whole.groups if cause not in names]
        without = cross_fitted(learner, whole.of(kept, causes), task.fold)[atoms.kept]
        change = score_change("brier", without, p, atoms, seed)
        rows.append({"kind": kind, "left_out": name} | named("brier", change))
    return rows


def transfer_rows(
    source: CrossFitTask, target: CrossFitTask, names: Sequence[str], reference: str, seed: int
) -> list[dict[str, Any]]:
    """Scores on the target of methods learned on the source, and their difference from one."""
    atoms, predictions, rows = labeled(target), {}, []
    for name in names:
        method = METHODS[name]
        if isinstance(method, ColumnMethod) and method.suits(source) and method.suits(target):
            (predict,) = method.learner(method.table(source), [source.table.labeled])
            predictions[name] = predict(method.table(target))[atoms.kept]
    for name, p in predictions.items():
        row: dict[str, Any] = {"method": name}
        row |= scores_with_intervals(p, atoms, RANKED, seed)
        if reference in predictions:
            row |= named("trees", score_change("brier", p, predictions[reference], atoms, seed))
        rows.append(row)
    return rows


def median_response(task: CrossFitTask, method: ColumnMethod) -> list[dict[str, Any]]:
    """Claims of the response whose Brier score a linear field moves by the median.

    A row has the claim's place from 1 on, its label, its posterior before and after by a field of
    the other folds, and by name of a family of columns, or "causes", what it adds to the posterior
    log odds beyond those of a claim whose columns are all at their means.
    """
    table, fold = method.table(task), task.fold
    labeled, labels, index = table.labeled, table.labels, table.responses
    parts = [labeled[fold[labeled] != left_out] for left_out in range(task.n_folds)]
    families = {
        family: [column for column, name in enumerate(table.names) if name in names]
        for family, names in FAMILIES.items()
    }
    families = {family: places for family, places in families.items() if places}
    after = np.empty(len(fold))
    log_odds = {name: np.empty(len(fold)) for name in (*families, "causes")}
    for left_out, fitted in enumerate(fit_fields(table, parts)):
        in_fold = fold == left_out
        p = fitted.probabilities(table)
        after[in_fold] = p[in_fold]
        weighed = fitted.scale(table.values) * fitted.parameters[0, :-1]
        for family, places in families.items():
            log_odds[family][in_fold] = weighed[in_fold][:, places].sum(axis=1)
        moved = np.log(p) - np.log1p(-p) - fitted.log_odds(table)
        log_odds["causes"][in_fold] = moved[in_fold]
    gains = (task.default - labels) ** 2 - (after - labels) ** 2
    means = np.bincount(index, np.nan_to_num(gains)) / np.bincount(index)
    chosen = np.flatnonzero(index == int(np.argsort(means)[len(means) // 2]))
    return [
        {
            "claim": number + 1,
            "label": labels[at],
            "before": task.default[at],
            "after": after[at],
            **{name: odds[at] for name, odds in log_odds.items()},
        }
        for number, at in enumerate(chosen.tolist())
    ]


if __name__ == "__main__":
    answer_question(learned_potentials, __file__)
