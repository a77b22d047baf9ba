"""Tables of views of real graphs: their shape, scores, learned strengths and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.analyses.interval_values import tiny
from experiments.findings.table import Column, Table, interval_column

if TYPE_CHECKING:
    import pandas as pd

CASE = (Column("encoding", "encoding"), Column("backend", "backend"))

CHANGES = {"stated": "as stated", "implication": "implication", "stars": "FR1"}

COLUMNS: Mapping[str, Sequence[Column]] = {
    "graphs": (
        Column("encoding", "encoding"),
        *(
            Column(name, name, digits=digits)
            for name, digits in (
                *(("responses", 0), ("cycles", 0), ("frustrated", 3), ("unbalanced", 0)),
                *(("width", 0), ("widest", 0), ("certified", 0)),
            )
        ),
        Column("interval", "interval", show=tiny, right=True),
    ),
    "cases": (
        *(*CASE, interval_column("brier", "Brier", 4), interval_column("log_loss", "log loss", 3)),
        *(interval_column("auroc", "AUROC", 3), interval_column("entropy", "E", 4)),
        interval_column("brier_change", "Brier less the first", 4),
    ),
    "learned": (
        *(*CASE, interval_column("brier", "Brier", 4), interval_column("auroc", "AUROC", 3)),
        *(interval_column(name, f"less {title}", 4) for name, title in CHANGES.items()),
    ),
    "errors": (
        *(*CASE, Column("error", "mean |Δp|", show=tiny, right=True)),
        *(Column("largest", "largest", show=tiny, right=True),),
        *(Column("verdicts", "verdicts", digits=4), interval_column("moved", "Δ Brier", 6)),
        Column("digit", "moves digit", right=True),
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
