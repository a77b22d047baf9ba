"""What cross-fitted methods are worth: scores, differences, curves, ablations, transfer, parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.learned_potentials.columns import COLUMN_GROUPS, FAMILIES
from calibration.learned_potentials.fitting import FieldSettings, fit_fields
from calibration.learned_potentials.methods import (
    METHODS,
    ColumnMethod,
    CrossFitTask,
    cross_fitted,
    field,
    learning_parts,
)
from calibration.validation import Floats
from experiments.analyses.posteriors import LabelledAtoms, score_change, scores_with_intervals
from experiments.findings.interval_values import mean_of_clusters
from experiments.findings.table import Table, columns_as, named

if TYPE_CHECKING:
    import pandas as pd

_PENALTY = 30.0
_SCORES = ("brier", "log_loss", "auroc")

_COLUMNS = "brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC"
TABLES: Mapping[str, tuple[str, str, str, str]] = {
    "scores": (
        f"method | {_COLUMNS} | slope:2± slope",
        "Every method on responses it has not seen",
        "data",
        "Intervals: 95 % over responses. AUROC: of pairs within a fold. Slope: of calibration, 1 "
        "where log odds are right.",
    ),
    "differences": (
        f"method | other less | {_COLUMNS}",
        "Every method less some others on the same responses",
        "data",
        "Intervals: 95 %, paired over responses. Below 0 the first is better, but for AUROC.",
    ),
    "across": (
        f"method | {_COLUMNS} | trees:4± less trees with neighbours",
        "What is learned on one dataset, used on another",
        "where",
        "Intervals: 95 % over responses of the second, whose labels serve to score alone.",
    ),
    "curve": (
        "labelled:0 labelled responses | brier:4± Brier | spread:4 of draws",
        "How many labelled responses",
        "method",
        "On responses of other folds; mean and standard deviation over draws of those learned "
        "from. Intervals: 95 % over the former.",
    ),
    "ablations": (
        "left_out left out | brier:4± Brier less the whole",
        "What each cause, group of columns and column buys the linear field",
        "kind",
        "On responses not seen, everything learned anew; paired over responses.",
    ),
}
"""Columns, caption, groups and note of each table."""


def table_of(name: str, frame: pd.DataFrame) -> Table:
    """A table by its name, of the rows below."""
    columns, caption, group, note = TABLES[name]
    return Table(frame, columns_as(columns), caption, group=group, note=note)


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
        row |= named("slope", [np.nan] * 3)
        if float(np.ptp(p)) > 0.05:
            row |= scores_with_intervals(p, atoms, ("calibration_slope",), seed)
        rows.append(row | {"mean": float(p.mean())})
    return rows


def difference_rows(
    found: Mapping[str, Floats],
    less: Sequence[str],
    task: CrossFitTask,
    seed: int,
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


def curve_row(name: str, size: int, task: CrossFitTask, n_draws: int, seed: int) -> dict[str, Any]:
    """The Brier score of a method that learns from so many responses, mean over draws.

    Its spread is the standard deviation of the draws' scores.
    """
    atoms, losses = labelled(task), []
    for draw in range(n_draws):
        p = METHODS[name](task, learning_parts(task, size, seed + draw))
        losses.append((p[atoms.kept] - atoms.labels) ** 2)
    index = atoms.grouping.index
    sums = np.bincount(index, np.mean(losses, axis=0)), np.bincount(index)
    row = {"method": name, "labelled": size} | named("brier", mean_of_clusters(*sums, seed))
    scores = np.mean(losses, axis=1)
    return row | {"spread": float(scores.std(ddof=1)) if n_draws > 1 else np.nan}


def ablation_rows(task: CrossFitTask, whole_of: ColumnMethod, seed: int) -> list[dict[str, Any]]:
    """A linear field without each cause, group of columns and column, less the whole."""
    # One penalty for all, as inner folds choose it, so that it makes no difference.
    learner, atoms = field(FieldSettings(penalty=_PENALTY)), labelled(task)
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
    source: CrossFitTask, target: CrossFitTask, names: Sequence[str], less: str, seed: int
) -> list[dict[str, Any]]:
    """Scores on the target of what all of the source teaches, and the difference from one."""
    atoms, predictions, rows = labelled(target), {}, []
    for name in names:
        method = METHODS[name]
        if isinstance(method, ColumnMethod) and method.suits(source) and method.suits(target):
            (predict,) = method.learner(method.table(source), [source.table.labelled])
            predictions[name] = predict(method.table(target))[atoms.kept]
    for name, p in predictions.items():
        row: dict[str, Any] = {"method": name}
        row |= scores_with_intervals(p, atoms, _SCORES, seed)
        if less in predictions:
            row |= named("trees", score_change("brier", p, predictions[less], atoms, seed))
        rows.append(row)
    return rows


def median_response(task: CrossFitTask, method: ColumnMethod) -> list[dict[str, Any]]:
    """Claims of the response whose Brier score a linear field moves by the median.

    A row has the claim's place from 1 on, its label, its posterior before and after by a field of
    the other folds, and by name of a family of columns, or "causes", what it adds to the posterior
    log odds beyond those of a claim whose columns are all at their means.
    """
    table, fold = method.table(task), task.fold
    labelled, labels, index = table.labelled, table.labels, table.responses
    parts = [labelled[fold[labelled] != left_out] for left_out in range(task.n_folds)]
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
