"""Views of real graphs: scores by encoding and backend, what learned strengths gain, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.validation import Floats
from experiments.analyses.posteriors import LabelledAtoms, score_change, scores_with_intervals
from experiments.findings.interval_values import Value, tiny
from experiments.findings.table import Column, Table, columns_as, named

if TYPE_CHECKING:
    import pandas as pd

EXACT, CERTIFIED = "exact", "exact or certified"

LEARNED = ", learned"
"""What follows the name of an encoding where strengths are learned."""

Found = dict[tuple[str, str, str], Floats]
"""Posteriors of labelled atoms by view, encoding and backend."""


def case_rows(found: Found, atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """Scores of every case with intervals, and their differences from the first's, paired."""
    # What differs by rounding alone is tied.
    first = next(iter(found.values())).round(9)
    rows = []
    for (view, encoding, backend), posterior in found.items():
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        p = posterior.round(9)
        for name in ("brier", "log_loss", "auroc", "entropy"):
            row |= scores_with_intervals(p, atoms, (name,), seed)
            row |= named(f"{name}_change", score_change(name, p, first, atoms, seed))
        rows.append(row)
    return rows


def learned_rows(found: Found, atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """What strengths learned under an encoding gain: over those stated, others, and over FR1.

    One row for each view with learned strengths, or for each approximation where its posteriors
    are not known. Its Brier score less that of the same view as stated under the same encoding; of
    the same view learned under *implication*; and of FR1 learned under the same encoding: by the
    same approximation where there is one, else by the first.
    """
    first: dict[tuple[str, str], str] = {}
    for view, encoding, backend in found:
        first.setdefault((view, encoding), backend)

    def change(p: Floats, view: str, encoding: str, backend: str) -> Value:
        same = (view, encoding, backend)
        other = same if same in found else (view, encoding, first.get((view, encoding), ""))
        if other not in found:
            return (np.nan,) * 3
        return score_change("brier", p, found[other].round(9), atoms, seed)

    rows = []
    for (view, encoding, backend), posterior in found.items():
        known = first[view, encoding] in (EXACT, CERTIFIED)
        if not encoding.endswith(LEARNED) or (known and backend != first[view, encoding]):
            continue
        p = posterior.round(9)
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        row |= scores_with_intervals(p, atoms, ("brier", "auroc"), seed)
        row |= named("stated", change(p, view, encoding.removesuffix(LEARNED), backend))
        row |= named("implication", change(p, view, f"implication{LEARNED}", backend))
        row |= named("stars", change(p, "FR1", encoding, EXACT))
        rows.append(row)
    return rows


MADE: Mapping[str, Callable[[Found, LabelledAtoms, int], list[dict[str, Any]]]] = {
    "cases": case_rows,
    "learned": learned_rows,
}
"""Tables that are made of all posteriors of a dataset."""

CASE = "encoding | backend | "

CHANGES = {"stated": "as stated", "implication": "implication", "stars": "FR1"}

COLUMNS: Mapping[str, Sequence[Column]] = {
    "graphs": columns_as(
        "encoding | responses:0 | cycles:0 | frustrated:3 | unbalanced:0 | width:0 | widest:0 | "
        "certified:0 | interval>",
        interval=tiny,
    ),
    "cases": columns_as(
        f"{CASE}brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC | entropy:4± E | "
        "brier_change:4± Brier less the first"
    ),
    "learned": columns_as(
        f"{CASE}brier:4± Brier | auroc:3± AUROC | "
        + " | ".join(f"{name}:4± less {title}" for name, title in CHANGES.items())
    ),
    "errors": columns_as(
        f"{CASE}error> mean |Δp| | largest> | verdicts:4 | moved:6± Δ Brier | digit> moves digit",
        error=tiny,
        largest=tiny,
    ),
}

SAID = {
    "graphs": (
        "Cycles and width of real graphs",
        "Frustrated: share of the cycles of a basis. Unbalanced: responses with a frustrated "
        "cycle. Width: median induced width. Certified: responses on which exact inference is "
        "predicted to take too long. Interval: the widest certified one of an atom.",
    ),
    "cases": (
        "Posteriors of real graphs by view, encoding and backend",
        "Intervals: 95 % over responses. Less the first: paired with the first row of the same "
        "data; the file has the other scores' differences too.",
    ),
    "learned": (
        "Strengths learned under each encoding",
        "Every approximation where posteriors are not known. Less: Brier score less that of the "
        "same view as stated, learned under implication, and of FR1 learned under the same "
        "encoding, by the same backend. Intervals: 95 % over responses, paired.",
    ),
    "errors": (
        "What approximate inference moves on real graphs",
        "Against exact inference, and certified intervals where it does not fit. Verdicts: share "
        "of claims on the other side of 1/2. Moves digit: the first digit of the Brier score that "
        "is printed differently. Intervals: 95 % over responses, paired.",
    ),
}
"""What each table shows, and the note below it."""


def view_table(name: str, frame: pd.DataFrame) -> Table:
    """The table of one of `SAID`, in blocks by dataset and view."""
    headed = frame.assign(head=frame["dataset"] + ", " + frame["variant"])
    # A study may have none of what learned strengths would be compared with.
    columns = (
        column
        for column in COLUMNS[name]
        if column.name not in CHANGES or frame[column.name].fillna(0.0).any()
    )
    caption, note = SAID[name]
    return Table(headed, tuple(columns), caption, group="head", note=note)
