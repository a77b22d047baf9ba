"""What padding gains beside selection, by what the relation model knows: its table and figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.analyses.figures import estimate_figure
from experiments.findings.table import Column, Table, interval_column

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

KNOWN, BLIND = "templates known", "words alone"
"""Whether the relation model sees through the templates of padding, or judges its words."""

GAINS: Mapping[str, str] = {
    "plain": "gain without Core",
    "core": "gain with Core",
    "kept_off": "kept off by Core",
}
"""What padding gains in precision, and what the table calls it."""


def padding_table(gains: pd.DataFrame, remark: str) -> Table:
    """The table of gains, with a remark on the data."""
    note = (
        "Gain: mean precision by human labels less that of the response as it was, with or without "
        "Core for both. Intervals: 95 % over responses, paired. Words alone: the relation model "
        "judges the words of the padding; templates known: it sees through them."
    )
    columns = (interval_column(name, title, 3) for name, title in GAINS.items())
    caption = f"What padding gains in precision. {remark}"
    return Table(gains, (Column("kind", "padding"), *columns), caption, group="judge", note=note)


def gains_figure(gains: pd.DataFrame) -> Figure:
    """Gains of padding in precision with and without Core, of the table of gains."""
    appended = gains[(gains["judge"] == BLIND) & gains["kind"].str.endswith("appended")]
    return estimate_figure(appended, "kind", GAINS, ideals=dict.fromkeys(GAINS, 0.0))
