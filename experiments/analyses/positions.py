"""Quantities of claims by relative position: what tables call them, and their table."""

from __future__ import annotations

from collections.abc import Mapping

from calibration.self_knowledge import PositionTable
from experiments.findings.table import Table, columns_as, data_frame

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
"""What a table calls each quantity."""


def position_table(found: Mapping[str, PositionTable], caption: str) -> Table:
    """The estimates of tables by what they are of, one row per quantity and position."""
    frame = data_frame(
        [{"of": name, **row} for name, table in found.items() for row in table.rows()]
    )
    frame["title"] = [TITLES.get(name, name) for name in frame["quantity"]]
    first = next(iter(found.values()))
    level = 100 * next(iter(first.quantities.values())).level
    columns = columns_as("title quantity | position | estimate:3[]")
    group = "of" if len(found) > 1 else ""
    note = f"In brackets: {level:g}% intervals over responses."
    return Table(frame, columns, caption, group=group, note=note)
