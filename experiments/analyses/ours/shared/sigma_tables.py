"""Tables of sigma beside the factuality: in sample, over thresholds, and ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.findings.table import Table, columns_as
from experiments.findings.text import p_value

if TYPE_CHECKING:
    import pandas as pd

SHARES = {"self_known": "SK", "self_unknown": "SU", "sigma": "σ", "factuality": "F"}
PREDICTORS = {"sigma": "σ", "factuality": "F here", "rogan_gladen": "Rogan-Gladen"}
RIVALS = {"sigma_less_factuality": "σ less F"}


def _intervals(titles: Mapping[str, str], before: str = "") -> str:
    return " | ".join(f"{before}{name}:3± {title}" for name, title in titles.items())


TABLES = {
    "in-sample": (
        f"subject | position | {_intervals(SHARES)} | informedness:3 SK + SU - 1 | "
        "false_positives:0 FP | false_negatives:0 FN | clustered> p | reading σ = F",
        "Sigma and the factuality of the same claims, by position and over all.",
        "p: McNemar's test of FP = FN clustered by response. The reading takes the exact test over "
        "responses where few differ, by position corrected by Holm.",
    ),
    "thresholds": (
        f"subject | threshold:2 | {_intervals(SHARES)} | clustered> p | gap:3± out of sample",
        "The same at other thresholds, over all positions.",
        "Out of sample: σ of half of the responses less the factuality of the other.",
    ),
    "prediction": (
        f"subject | position | {_intervals(PREDICTORS, 'rmse_')} | {_intervals(RIVALS)}",
        "Root mean square errors of predictions of the factuality of half of the responses from "
        "the other half.",
        "Over the same splits, with 95 % intervals over responses (jackknife). F here is the "
        "factuality of the labelled half; the last column is paired.",
    ),
}
"""Columns, caption and note of each table."""


def sigma_tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, Table]:
    """The tables of a study of sigma, by the name of their frames."""
    return {
        name: Table(frames[name], columns_as(columns, clustered=p_value), caption, note=note)
        for name, (columns, caption, note) in TABLES.items()
    }
