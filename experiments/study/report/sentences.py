"""Three or four sentences on the findings of a study, from its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.cells import SAME_POSTERIORS
from experiments.columns.cell_names import CELL, NO_GRAPH, cell_words
from experiments.findings.table import ENDS
from experiments.findings.text import duration, number, small
from experiments.study.report.scores import COMPARED, REFERENCE, AgreeingCells
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

_VIEW = ("variant", "relation_model", "encoding", "prior", "strength", "seed")
_TITLES = {
    "precision_mae": "the MAE", "f1": "F1", "accuracy": "accuracy", "brier": "the Brier score",
    "log_loss": "log loss",
}  # fmt: skip
_WORDS = {
    "variant": "variant", "relation_model": "relation model", "encoding": "encoding",
    "prior": "priors", "strength": "strength", "seed": "seed", "selection": "selection",
}  # fmt: skip
_EQUAL = 1e-12
"""Smallest difference of scores that is not rounding."""

_NO_MATTER = 0.1
"""Share of an interval's width below which a shift changes no conclusion."""


def sentences(
    cells: pd.DataFrame, groups: Sequence[AgreeingCells], *, times: bool = True
) -> list[str]:
    """Sentences on the findings of a study.

    Args:
        cells: its summary.
        groups: groups of cells with equal posteriors.
        times: True to include times, which differ between runs.
    """
    lines = [*_agreement(cells, groups), *_backends(cells), *_views(cells)]
    if times:
        lines += _times(cells)
    return lines + _not_converged(cells)


def _agreement(cells: pd.DataFrame, groups: Sequence[AgreeingCells]) -> list[str]:
    # Without two agreeing cells there is no sentence on agreement.
    if all(np.isnan(group.apart) for group in groups):
        return []
    answered = [group for group in groups if group.answered]
    together: dict[str, int] = {}
    for group in answered:
        together[group.dataset] = together.get(group.dataset, 0) + 1
    alike = [name for name, count in together.items() if count == 1]
    everywhere = ""
    if alike and len(together) > 1:
        everywhere = f"; on {_listed(alike)} no choice makes a difference"
    answers = f"have {len(answered):,} different sets of posteriors"
    if len(answered) == 1:
        answers = "all have the same posteriors"
    count = sum(len(group.rows) for group in answered)
    which = "" if count == len(cells) else f" of {len(cells):,} that have posteriors"
    return [
        f"The {counted(count, 'cell')}{which} (a dataset, variant, encoding and algorithm each) "
        f"{answers}; cells that differ nowhere by more than {SAME_POSTERIORS:g} share a "
        f"row{everywhere}."
    ]


def _questions(cells: pd.DataFrame) -> list[tuple[dict[Any, Any], list[dict[Any, Any]]]]:
    """The exact backend's row for every question, with the rows of the other backends."""
    by = [name for name in (*CELL, "selection") if name in cells and name != "backend_label"]
    numbers = ["max_difference", *(f"{name}{end}" for name in COMPARED for end in ENDS)]
    # A column without numbers contains None instead of NaN.
    cells = cells[[*by, "backend_label", "backend", *numbers]].astype(dict.fromkeys(numbers, float))
    questions = []
    for _, group in cells.groupby(by, sort=False, dropna=False):
        records = group.to_dict("records")
        exact = [record for record in records if record["backend"] == REFERENCE]
        others = [record for record in records if record["backend"] != REFERENCE]
        if exact and exact[0]["variant"] != NO_GRAPH:
            questions.append((exact[0], others))
    return questions


def _backends(cells: pd.DataFrame) -> list[str]:
    """Sentence on the differences of other backends' scores from the exact backend's."""
    shifts: dict[str, tuple[float, str, dict[Any, Any], dict[Any, Any]]] = {}
    moved: dict[str, float] = {}
    for exact, others in _questions(cells):
        for row in others:
            label = str(row["backend_label"])
            if not np.isnan(row["max_difference"]):
                moved[label] = max(moved.get(label, 0.0), row["max_difference"])
            for name in COMPARED:
                width = exact[f"{name}_upper"] - exact[f"{name}_lower"]
                shift = abs(row[name] - exact[name]) / width if width > 0 else np.nan
                if np.isfinite(shift) and shift >= shifts.get(label, (0.0,))[0]:
                    shifts[label] = (shift, name, exact, row)
    same = [label for label, value in moved.items() if value < 1e-6]
    parts = []
    if same:
        verb = "agrees" if len(same) == 1 else "agree"
        largest = max(moved[label] for label in same)
        parts.append(f"{_listed(same)} {verb} with exact to {small(max(largest, 1e-12))}.")
    by_shift: dict[tuple[str, ...], list[str]] = {}
    for label, (shift, name, exact, _) in shifts.items():
        if label not in same:
            key = (f"{100 * shift:.1g}" if shift < _NO_MATTER else f"{shift:.2f}", name)
            by_shift.setdefault((*key, *(str(exact[part]) for part in CELL)), []).append(label)
    for labels in by_shift.values():
        shift, name, exact, row = shifts[labels[0]]
        verb = "moves" if len(labels) == 1 else "move"
        where = f"{exact['dataset']}, {cell_words(exact, _VIEW[:3])}"
        if shift < _NO_MATTER:
            parts.append(
                f"{_listed(labels)} {verb} no score by more than {100 * shift:.1g}% of the width "
                f"of its interval ({_TITLES[name]} on {where})."
            )
        else:
            parts.append(
                f"{_listed(labels)} {verb} {_TITLES[name]} from {number(exact[name])} to "
                f"{number(row[name])} on {where}: {100 * shift:.0f}% of the width of its interval."
            )
    return parts


def _views(cells: pd.DataFrame) -> list[str]:
    """Sentence on the effect of the view on the Brier score, under exact inference."""
    exact = cells[(cells["backend"] == REFERENCE) & cells["brier"].notna()]
    names = [name for name in (*_VIEW, "selection") if name in cells and cells[name].nunique() > 1]
    # Exact inference is deterministic: a seed matters only if it generated the input.
    if "seed" in names:
        kept = ["dataset", *(name for name in names if name != "seed")]
        by_view = exact.groupby(kept, sort=False, dropna=False)["brier"]
        if (by_view.max() - by_view.min()).max() < _EQUAL:
            names.remove("seed")
            exact = exact.drop_duplicates(kept)
    ranges = []
    for dataset, group in exact[["dataset", "brier", *names]].groupby("dataset", sort=False):
        if len(group) > 1:
            records: list[dict[Any, Any]] = sorted(
                group.to_dict("records"), key=lambda record: record["brier"]
            )
            best, worst = records[0], records[-1]
            ranges.append((float(worst["brier"] - best["brier"]), str(dataset), best, worst))
    if not ranges:
        return []
    gap, dataset, best, worst = max(ranges, key=lambda entry: entry[0])
    rest = [entry[0] for entry in ranges if entry[1] != dataset]
    most = number(max(rest, default=0.0))
    little = "less than 0.001" if most == "0.000" else f"at most {most}"
    others = "dataset" if len(rest) == 1 else "datasets"
    elsewhere = f", and by {little} on the other {others}" if rest else ""
    choice = _listed([_WORDS[name] for name in names]) or "run"
    if number(gap) == "0.000":
        return [
            f"Under exact inference the choice of {choice} moves the Brier score by less than "
            f"0.001 on {dataset if len(ranges) == 1 else 'every dataset'}."
        ]
    if number(best["brier"]) == number(worst["brier"]):
        return [
            f"Under exact inference the choice of {choice} moves the Brier score by {number(gap)} "
            f"on {dataset}{elsewhere}."
        ]
    return [
        f"Under exact inference the choice of {choice} moves the Brier score by {number(gap)} on "
        f"{dataset}, from {number(best['brier'])} ({cell_words(best, names)}) to "
        f"{number(worst['brier'])} ({cell_words(worst, names)}){elsewhere}."
    ]


def _times(cells: pd.DataFrame) -> list[str]:
    medians = cells.groupby("backend_label", sort=False)["seconds_median"].median().dropna()
    texts = [f"{label} {duration(float(seconds))}" for label, seconds in medians.items()]
    return [f"A response took, in the median of the cells: {', '.join(texts)}."] if texts else []


def _not_converged(cells: pd.DataFrame) -> list[str]:
    once = cells.drop_duplicates(list(CELL))
    counts = once.groupby("backend_label", sort=False)[["n_not_converged", "n_responses"]].sum()
    texts = [
        f"{label} on {int(failed):,} of {int(total):,}"
        for label, (failed, total) in zip(counts.index, counts.to_numpy(), strict=True)
        if failed
    ]
    return [f"Not converged: {', '.join(texts)}."] if texts else []


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
