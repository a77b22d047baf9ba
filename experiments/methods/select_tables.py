"""Tables and figure of what selection changes in labelled responses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.evaluators.selection_study import QUANTITIES, SelectionStudy, factuality_figure
from experiments.findings.artefacts import PaperFigure
from experiments.findings.table import Column, Table, columns_as, data_frame, interval_column


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
            *columns_as(
                "survival:2 share left | true_before:2 true before | true_after:2 true after"
            ),
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
        columns_as(
            "response | claims:0 | plain_count:1 plain | plain_precision:2 Pr | "
            "expected_count:1 expected | expected_precision:2 Pr | gain:2 | proved:2 | "
            "sampled_precision:2[] sampled Pr"
        ),
        "Plain program, expected weight, sampled redundancy graphs.",
        note="gain: of expected weight; proved: 1 where the set is the best; in brackets the "
        "central 95% of the samples.",
    )
