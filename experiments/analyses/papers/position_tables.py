"""Tables over relative positions, of one or several models."""

from __future__ import annotations

from collections.abc import Mapping

from calibration.self_knowledge import PositionTable
from experiments.analyses.positions import TITLES
from experiments.paper.table import PaperColumn, PaperTable


def position_table(found: Mapping[str, PositionTable], caption: str) -> PaperTable:
    """Return the estimates of tables by what they are of, one row per quantity and position."""
    import pandas as pd

    frame = pd.DataFrame(
        [{"of": name, **row} for name, table in found.items() for row in table.rows()]
    )
    frame["title"] = [TITLES.get(name, name) for name in frame["quantity"]]
    first = next(iter(found.values()))
    level = 100 * next(iter(first.quantities.values())).level
    columns = (
        PaperColumn("title", "quantity"),
        PaperColumn("position", "position"),
        PaperColumn("estimate", "estimate", digits=3, lower="lower", upper="upper"),
    )
    group = "of" if len(found) > 1 else ""
    note = f"In brackets: {level:g}% intervals over responses."
    return PaperTable(frame, columns, caption, group=group, note=note)
