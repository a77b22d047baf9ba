"""Tables and figure of what selection changes in labelled responses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.evaluators.selection_study import QUANTITIES, SelectionStudy, factuality_figure
from experiments.findings.artefacts import PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column


def study_tables(study: SelectionStudy) -> dict[str, Table]:
    """Claims by sentence, and each of `QUANTITIES` by relative position."""
    positions = [
        {
            "quantity": quantity.replace("_", " "),
            "claims": name,
            **{
                f"p{cell}{part}": float(values[cell])
                for cell in range(len(table.positions))
                for part, values in (
                    ("", table[quantity].estimate),
                    ("_lower", table[quantity].lower),
                    ("_upper", table[quantity].upper),
                )
            },
        }
        for quantity in QUANTITIES
        for name, table in (("all", study.before), ("selected", study.after))
    ]
    before = study.before["factuality"]
    by_sentence = Table(
        study.rows,
        (
            Column("sentence", "sentence", right=True),
            *(Column(name, name, digits=0) for name in ("responses", "before", "after")),
            Column("survival", "share left", digits=2),
            Column("true_before", "true before", digits=2),
            Column("true_after", "true after", digits=2),
        ),
        "Claims by the place of their sentence, before and after selection.",
    )
    by_position = Table(
        data_frame(positions),
        (
            Column("claims", "claims"),
            *(
                interval_column(f"p{cell}", position, 2)
                for cell, position in enumerate(study.before.positions)
            ),
        ),
        "Claims by relative position, before and after selection.",
        group="quantity",
        note=f"In brackets: {100 * before.level:g}% intervals over responses.",
    )
    return {"sentences": by_sentence, "positions": by_position}


def study_figures(study: SelectionStudy) -> dict[str, PaperFigure]:
    """Factuality by relative position."""
    rows = [
        {"claims": name, **row}
        for name, table in (("all", study.before), ("selected", study.after))
        for row in table.rows()
        if row["quantity"] == "factuality"
    ]
    title = "Factuality by relative position, before and after selection"
    return {"selection": PaperFigure(factuality_figure(study), data_frame(rows), title)}


def uncertain_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows as a table, and last their means."""
    own = [{**row, "proved": float(row["proved"])} for row in rows]
    mean = dict(data_frame(own).drop(columns="response").mean())
    last = {**mean, "response": "mean", "lower": math.nan, "upper": math.nan}
    return Table(
        data_frame([*own, last]),
        (
            Column("response", "response"),
            Column("claims", "claims", digits=0),
            Column("plain_count", "plain", digits=1),
            Column("plain_precision", "Pr", digits=2),
            Column("expected_count", "expected", digits=1),
            Column("expected_precision", "Pr", digits=2),
            Column("gain", "gain", digits=2),
            Column("proved", "proved", digits=2),
            Column("sampled_precision", "sampled Pr", digits=2, lower="lower", upper="upper"),
        ),
        "Plain program, expected weight, sampled redundancy graphs.",
        note="gain: of expected weight; proved: 1 where the set is the best; in brackets the "
        "central 95% of the samples.",
    )
