"""Quantities of claims by relative position: names in tables, a table and a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.self_knowledge import (
    ClaimRecord,
    IntervalSettings,
    PositionTable,
    Setting,
    in_sample_balance,
    self_knowledge,
)
from calibration.validation import Floats
from experiments.findings.claim_scores import LabeledAtoms
from experiments.findings.figures import line_figure
from experiments.findings.interval_values import difference_of_clusters, mean_of_clusters
from experiments.findings.table import (
    ENDS,
    Column,
    Table,
    columns_as,
    data_frame,
    interval_column,
    named,
)
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TITLES: Mapping[str, str] = {
    "supported_share": "supported, share",
    "unsupported_share": "unsupported, share",
    "irrelevant_share": "irrelevant, share",
    "supported_number": "supported per sentence",
    "unsupported_number": "unsupported per sentence",
    "irrelevant_number": "irrelevant per sentence",
    "factuality": "factuality, S/(S + NS)",
    "judged_correct": "judged correct",
    "self_known": "Self-Known",
    "self_unknown": "Self-Unknown",
    "sigma": "sigma",
    "rogan_gladen": "Rogan-Gladen",
}
"""Name of each quantity in a table."""


def position_table(estimates: Mapping[str, PositionTable], caption: str) -> Table:
    """Estimates of tables by subject, one row per quantity and position."""
    frame = data_frame(
        [{"of": name, **row} for name, table in estimates.items() for row in table.rows()]
    )
    frame["title"] = [TITLES.get(name, name) for name in frame["quantity"]]
    first = next(iter(estimates.values()))
    level = 100 * next(iter(first.quantities.values())).level
    columns = columns_as("title quantity | position | estimate:3[]")
    group = "of" if len(estimates) > 1 else ""
    note = f"In brackets: {level:g}% intervals over responses."
    return Table(frame, columns, caption, group=group, note=note)


FIFTHS = ("0-20%", "20-40%", "40-60%", "60-80%", "80-100%")

CHANGE = "last minus first"


def mean_by_fifth(
    graphs: Sequence[FactGraph], values: Mapping[str, Floats], atoms: LabeledAtoms, seed: int
) -> pd.DataFrame:
    """The means of values by fifth, a row for each, and the change from the first to the last.

    A position is the number of the sentence divided by the number of sentences; a position on an
    edge belongs to the fifth below it. Every sentence has the same weight, as in Self-Known's
    figure 1. The columns are `of` and, for each of `FIFTHS` and `CHANGE`, the mean and the ends of
    its interval.

    Args:
        graphs: the responses.
        values: by name, one of each labeled atom, (n,).
        atoms: the labeled atoms.
        seed: seed of the bootstrap over responses.
    """
    places = []
    for graph in graphs:
        stated = graph.metadata.get("sentences")
        last = stated if isinstance(stated, int) else max(a.sentence or 1 for a in graph.atoms)
        places += [(f"{graph.id} {a.sentence}", (a.sentence or 1) / last) for a in graph.atoms]
    kept = [position for position, labeled in zip(places, atoms.kept, strict=True) if labeled]
    _, sentence, counts = np.unique(
        [name for name, _ in kept], return_inverse=True, return_counts=True
    )
    weight = 1.0 / counts[sentence]
    fifth = np.ceil(np.array([at for _, at in kept]) * 5 - 1e-9).astype(np.int64) - 1
    masks = [np.where(fifth == at, weight, 0.0) for at in range(len(FIFTHS))]
    rows: list[dict[str, Any]] = []
    for name, each in values.items():
        sums = [(atoms.grouping.sums(mask * each), atoms.grouping.sums(mask)) for mask in masks]
        row: dict[str, Any] = {"of": name}
        for title, fifth_sums in zip(FIFTHS, sums, strict=True):
            row |= named(title, mean_of_clusters(*fifth_sums, seed))
        rows.append(row | named(CHANGE, difference_of_clusters(sums[-1], sums[0], seed)))
    return data_frame(rows)


def fifths_table(frame: pd.DataFrame) -> Table:
    """The table of means by fifth."""
    columns = (interval_column(title, title, 3) for title in (*FIFTHS, CHANGE))
    caption = "Truth and posteriors by position, every sentence counting the same"
    note = "Intervals: 95% over responses."
    return Table(frame, (Column("of", "of"), *columns), caption, note=note)


def decline_figure(frame: pd.DataFrame) -> Figure:
    """Means by fifth, a panel for each encoding, with the share of true claims in every panel.

    Args:
        frame: the means; the means of an encoding have names of the form "VIEW, ENCODING".
    """
    records = frame.to_dict("records")
    parts = [str(row["of"]).partition(", ") for row in records]
    encodings = list(dict.fromkeys(encoding for _, _, encoding in parts if encoding))
    long = [
        {"of": view, "encoding": encoding, "position": title}
        | named("mean", (row[f"{title}{end}"] for end in ENDS))
        for encoding in encodings
        for row, (view, _, row_encoding) in zip(records, parts, strict=True)
        if row_encoding in ("", encoding)
        for title in FIFTHS
    ]
    values = {"mean": "share true, or mean posterior"}
    return line_figure(data_frame(long), "position", values, by="of", panel="encoding")


SHARES = ("self_known", "self_unknown", "sigma", "factuality")


def balance_rows(
    records: Sequence[ClaimRecord],
    n_bins: int,
    intervals: IntervalSettings,
    setting: Setting = Setting.DIRECT_ASKING,
) -> list[dict[str, Any]]:
    """Rows per position: SK, SU, sigma and factuality with intervals, and the test of sigma = F.

    Args:
        records: the claims of a model.
        n_bins: number of bins of relative position; the last row is over all.
        intervals: settings of the intervals.
        setting: setting in which the model was asked.
    """
    known = self_knowledge(records, setting, n_positions=n_bins, intervals=intervals)
    tested = in_sample_balance(records, setting, n_positions=n_bins).rows()
    rows = []
    for cell, row in enumerate(tested):
        for name in ("judged_correct", *SHARES):
            of = known[name]
            row |= named(name, (float(x[cell]) for x in (of.estimate, of.lower, of.upper)))
        # How much a judgment tells (Youden's J): the slope that Rogan-Gladen divides by.
        row["informedness"] = row["self_known"] + row["self_unknown"] - 1
        reading = "rejected" if row["corrected"] < 0.05 else "not rejected"
        rows.append(row | {"reading": reading if row["corrected"] >= 0 else "--"})
    return rows
