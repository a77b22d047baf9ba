"""Tables of views of real graphs: their shape, scores, learned strengths and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.analyses.interval_values import tiny
from experiments.findings.table import Column, Table, columns_as

if TYPE_CHECKING:
    import pandas as pd

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
