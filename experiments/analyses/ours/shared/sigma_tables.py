"""Tables of sigma beside the factuality: in sample, over thresholds, ahead, in transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from experiments.findings.table import Column, Table, interval_column, text_columns
from experiments.findings.text import p_value

if TYPE_CHECKING:
    import pandas as pd

SHARES = {"self_known": "SK", "self_unknown": "SU", "sigma": "σ", "factuality": "F"}
PREDICTORS = {"sigma": "σ", "factuality": "F here", "rogan_gladen": "Rogan-Gladen", "emq": "EMQ"}
RIVALS = {
    "sigma_less_factuality": "σ less F",
    "emq_less_factuality": "EMQ less F",
    "sigma_less_emq": "σ less EMQ",
}


def sigma_tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, Table]:
    """The tables of a study of sigma, by the name of their frames."""
    shares = [interval_column(name, title, 3) for name, title in SHARES.items()]
    p = Column("clustered", "p", show=p_value, right=True)
    subject, whole = Column("subject", "subject"), partial(Column, digits=0)
    columns: dict[str, Sequence[Column]] = {
        "in-sample": (
            *(subject, Column("position", "position"), *shares),
            Column("informedness", "SK + SU - 1", digits=3),
            *(whole("false_positives", "FP"), whole("false_negatives", "FN"), p),
            Column("reading", "σ = F"),
        ),
        "thresholds": (
            *(subject, Column("threshold", "threshold", digits=2), *shares, p),
            interval_column("gap", "out of sample", 3),
        ),
        "prediction": (
            *(subject, Column("position", "position")),
            *(interval_column(f"rmse_{name}", title, 3) for name, title in PREDICTORS.items()),
            *(interval_column(name, title, 3) for name, title in RIVALS.items()),
        ),
        "transfer": (
            *(Column("here", "learned on"), Column("there", "used on")),
            Column("target", "F there", digits=3),
            *(interval_column(name, title, 3) for name, title in PREDICTORS.items()),
        ),
        "association": (
            *text_columns("over", "first", "second"),
            Column("correlation", "correlation", digits=2, lower="lower", upper="upper"),
            whole("n_cells", "cells"),
        ),
    }
    return {
        name: Table(frames[name], tuple(shown), *SAID[name][:1], note=SAID[name][1])
        for name, shown in columns.items()
    }


SAID = {
    "in-sample": (
        "Sigma and the factuality of the same claims, by position and over all.",
        "p: McNemar's test of FP = FN clustered by response. The reading takes the exact test over "
        "responses where few differ, by position corrected by Holm.",
    ),
    "thresholds": (
        "The same at other thresholds, over all positions.",
        "Out of sample: σ of half of the responses less the factuality of the other.",
    ),
    "prediction": (
        "Root mean square errors of predictions of the factuality of half of the responses from "
        "the other half.",
        "Over the same splits, with 95 % intervals over responses (jackknife). F here is the "
        "factuality of the labelled half; the last three columns are paired.",
    ),
    "transfer": (
        "Prediction less factuality where the labels are of other subjects or positions.",
        "σ and F here use labels here alone; Rogan-Gladen and EMQ also the judgements there. "
        "Percentile intervals over responses.",
    ),
    "association": (
        "Whether SK goes with the factuality, and SU with the share of unsupported claims.",
        "Pearson's correlation over cells, with percentile intervals over responses.",
    ),
}
"""What each table shows, and the note below it."""
