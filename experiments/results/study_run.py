"""A study that has been run: its summary, its rows, its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.findings.table import Column
from experiments.paper.study_table import AGREEMENT, chosen, keys, troubles
from experiments.results.rows import read_rows
from experiments.study.config import Study
from factormodels.object_repr import Preview, Previewed, counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class StudyRun(Previewed):
    """What a study found; shown as its table of measures.

    Attributes:
        study: the study.
        folder: the folder of its results.
        summary: a row per cell, as `experiments.results.summary.StudySummary` has them: what tells
            the cell apart, numbers of responses and atoms, measures with the ends of their
            intervals, times.
    """

    study: Study
    folder: Path
    summary: pd.DataFrame

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The tidy rows, one per claim and cell; read when they are asked for first."""
        return read_rows(self.folder)

    def preview(self, most: int) -> Preview:
        """The name and folder of the study, and the first of its cells."""
        cells = self.summary
        columns = (
            Column("dataset", "dataset"),
            *keys(cells),
            *chosen(self.study.measures),
            *AGREEMENT,
            *troubles(cells),
        )
        rows = [
            [column.text(record[column.name]) for column in columns]
            for record in cells.head(most).to_dict("records")
        ]
        heading = f"StudyRun {self.study.study!r}: {counted(len(cells), 'row')}, in {self.folder}"
        return Preview(heading, [column.title for column in columns], rows, len(cells))
