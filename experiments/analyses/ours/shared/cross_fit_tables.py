"""Tables of what cross-fitted methods are worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.findings.table import Table, columns_as

if TYPE_CHECKING:
    import pandas as pd

_SCORES = "brier:4± Brier | log_loss:3± log loss | auroc:3± AUROC"
TABLES: Mapping[str, tuple[str, str, str, str]] = {
    "scores": (
        f"method | {_SCORES} | slope:2± slope",
        "Every method on responses it has not seen",
        "data",
        "Intervals: 95 % over responses. AUROC: of pairs within a fold. Slope: of calibration, 1 "
        "where log odds are right.",
    ),
    "differences": (
        f"method | other less | {_SCORES}",
        "Every method less some others on the same responses",
        "data",
        "Intervals: 95 %, paired over responses. Below 0 the first is better, but for AUROC.",
    ),
    "across": (
        f"method | {_SCORES} | trees:4± less trees with neighbours",
        "What is learned on one dataset, used on another",
        "where",
        "Intervals: 95 % over responses of the second, whose labels serve to score alone.",
    ),
    "curve": (
        "labelled:0 labelled responses | brier:4± Brier | spread:4 of draws",
        "How many labelled responses",
        "method",
        "On responses of other folds; mean and standard deviation over draws of those learned "
        "from. Intervals: 95 % over the former.",
    ),
    "ablations": (
        "left_out left out | brier:4± Brier less the whole",
        "What each cause, group of columns and column buys the linear field",
        "kind",
        "On responses not seen, everything learned anew; paired over responses.",
    ),
}
"""Columns, caption, groups and note of each table."""


def table_of(name: str, frame: pd.DataFrame) -> Table:
    """A table by its name, of what `cross_fit_rows` made."""
    columns, caption, group, note = TABLES[name]
    return Table(frame, columns_as(columns), caption, group=group, note=note)
