"""Claims per generation and share of refusals by model, in the form of Self-Known's table 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibration.self_knowledge import filter_refusals
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.loading import load
from experiments.analyses.papers.shared.published import (
    Published,
    printed_rows,
    with_published,
)
from experiments.analyses.papers.shared.sources import SourceName
from experiments.findings.artefacts import Artefacts
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.study.config import STRICT
from experiments.study.data import StudyData
from factormodels.errors import InputError


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of the generations, by model or of one.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName
    published: tuple[Published, ...] = ()
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """The table."""
    loaded = load(settings.data, context, settings.data_file)
    remark = loaded.remark
    rows = [_row(name, part) for name, part in loaded.parts.items()]
    rows += printed_rows("self_known_table_1", "model", "claims", "filtered")
    frame = data_frame(rows)
    columns = (
        *text_columns("origin", "model"),
        Column("claims", "claims per generation", digits=1),
        Column("filtered", "filtered rate (%)", digits=1),
    )
    tables = {"table-1": Table(frame, columns, f"Self-Known, table 1. {remark}")}
    return with_published(tables, settings.published, remark)


def _row(name: str, data: StudyData) -> dict[str, Any]:
    found = filter_refusals({graph.id: graph.response for graph in data.graphs})
    kept = set(found.kept)
    sizes = [len(graph.atoms) for graph in data.graphs if graph.id in kept]
    if not sizes:
        raise InputError(f"{name}: every generation is a refusal; give some that answer")
    return {
        "origin": "ours",
        "model": name,
        "claims": float(np.mean(sizes)),
        "filtered": 100 * found.rate,
    }
