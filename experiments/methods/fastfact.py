"""FaStfact's evaluation as findings: one page of all its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table
from experiments.findings.text import ABSENT, counted

if TYPE_CHECKING:
    import pandas as pd

    from experiments.assess.fastfact import FastFactEvaluation


def fastfact_findings(
    found: FastFactEvaluation, source: str, settings: Mapping[str, Any]
) -> Findings:
    """What FaStfact says of responses, with what is missing in words; empty tables left out.

    Args:
        found: the evaluation.
        source: what the responses are called.
        settings: what was asked, as JSON can hold it.
    """
    missing = int(found.responses["missing"].sum())
    sentences = [
        f"{counted(len(found.responses), 'response')}, {counted(len(found.claims), 'claim')}, of "
        f"which {missing:,} have no verdict."
    ]
    if not found.responses["k_prime"].notna().any():
        sentences.append("Nobody counted K', so that there is no F1@K'; the curve says more.")
    sentences += [f"{name} failed: {reason}." for name, reason in found.failures]
    tables = {
        name: Table(
            frame,
            tuple(_column(frame, column) for column in frame.columns),
            f"FaStfact: {name.replace('_', ' ')}.",
        )
        for name, frame in found.tables().items()
        if len(frame)
    }
    return Findings("fastfact", source, tuple(sentences), tables, settings)


def _column(frame: pd.DataFrame, name: str) -> Column:
    title, values = name.replace("_", " "), frame[name]
    if values.dtype.kind == "f":
        whole = (values.dropna() % 1 == 0).all()
        return Column(name, title, digits=0 if whole else 3)
    if values.dtype.kind in "iu":
        return Column(name, title, digits=0)
    return Column(
        name, title, show=lambda value: ABSENT if value is None or value != value else str(value)
    )
