"""The files of a run: made whole beside their folder, then moved into it, the manifest last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from experiments.paper import study_table as tables
from experiments.paper import table as paper_table
from experiments.paper.artefacts import Origin
from experiments.results import significance
from experiments.results.best import significantly_best
from experiments.results.diagrams import write_diagrams
from experiments.results.files import MANIFEST, REPORT, ROWS, frame_text, publish, temporary_folder
from experiments.results.manifest import file_hash, manifest, manifest_text
from experiments.results.rows import (
    CELL,
    RowsFile,
    write_csv,
    write_rows,
)
from experiments.results.summary import TIMES, StudySummary, summarise_study
from experiments.run.assembly import Finished, row_tables
from experiments.run.cross_fits import CrossFit, priors_table
from experiments.run.selections import Selections, remarks_of, selections_table
from experiments.run.text_answers import TextUse, facts_of
from experiments.study.config import Study, config_hash
from experiments.study.data import StudyData
from experiments.study.design import StudyCell
from factormodels.io.files import write_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Results:
    """What a run has written.

    Attributes:
        summary: its summary.
        tests: its significance tests.
        selections: which atoms count, and where that could not be settled.
        files: the files, in order.
        texts: what relation models and assessors were asked.
    """

    summary: StudySummary
    tests: pd.DataFrame
    selections: Selections
    files: tuple[Path, ...]
    texts: tuple[TextUse, ...] = ()


@dataclass(frozen=True, eq=False)
class RunContents:
    """A run with its results.

    Attributes:
        study: the study.
        data: its datasets, with the relations that were found for them and are known.
        cells: its cells.
        rows: its tidy rows.
        summary: its summary, one row per cell and selection.
        tests: its significance tests.
        manifest: its manifest.
        fits: its learned priors that are known.
        remarks: what is to be said of selections, by dataset and response.
    """

    study: Study
    data: tuple[StudyData, ...]
    cells: tuple[StudyCell, ...]
    rows: RowsFile
    summary: pd.DataFrame
    tests: pd.DataFrame
    manifest: dict[str, Any]
    fits: tuple[CrossFit, ...] = ()
    remarks: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


Pages = Callable[[RunContents, Path], Sequence[Path]]
"""(a run, an empty folder) -> the pages of its report, written there."""


def write_results(
    study: Study,
    data: Sequence[StudyData],
    cells: Sequence[StudyCell],
    finished: Finished,
    code: Sequence[str],
    folder: Path,
    *,
    fits: Sequence[CrossFit] = (),
    selected: Selections | None = None,
    texts: Sequence[TextUse] = (),
    relations: Mapping[str, Any] = MappingProxyType({}),
    pages: Pages | None = None,
) -> Results:
    """Write every file of a run.

    Args:
        study: the study.
        data: its datasets, with the relations that were found for them.
        cells: its cells.
        finished: its finished units.
        code: versions of the code that they were computed with.
        folder: where the files go; other files in it are left alone.
        fits: its learned priors.
        selected: which atoms count; None: every one.
        texts: what its relation models and assessors were asked.
        relations: hashes of the relations that they found, by dataset, model and variant.
        pages: writes the pages of the report, if the study asks for one; None: there is none.

    Raises:
        InputError: if the folder cannot be written, or the rows cannot be scored as asked.
    """
    selections = selected or Selections()
    origin = Origin(study.study, config_hash(study))
    with temporary_folder(folder) as place:
        files: list[Path] = []

        def file(name: str) -> Path:
            files.append(place / name)
            return files[-1]

        row_groups = row_tables(study.study, data, cells, finished, selections)
        write_rows(row_groups, file(ROWS), origin.metadata())
        rows = RowsFile(place / ROWS)
        if "csv" in study.outputs:
            write_csv(rows, file("rows.csv"))
        summary = whole_summary(study, rows, selections.titles)
        _write_frame(summary.cells.drop(columns=list(TIMES)), file("summary.csv"))
        # The selections of a cell share its posteriors, and so their times.
        _write_frame(summary.cells[[*CELL, *TIMES]].drop_duplicates(list(CELL)), file("times.csv"))
        if fits:
            _write_frame(priors_table(fits), file("priors.csv"))
        if selections.titles:
            _write_frame(selections_table(selections, data), file("selections.csv"))
        tests = significance.significance_table(study, rows)
        if study.significance.pairs:
            _write_frame(tests, file("significance.csv"))
        papers = {
            "table": tables.paper(summary.cells, study.description or study.study, study.measures)
        }
        if study.significance.pairs:
            papers["significance"] = significance.paper(tests, study)
        for stem, table in papers.items():
            if "latex" in study.outputs:
                write_text(file(f"{stem}.tex"), paper_table.latex(table, origin.comments()))
            if "markdown" in study.outputs:
                write_text(file(f"{stem}.md"), paper_table.markdown(table, origin.comments()))
        if "reliability" in study.outputs:
            files += write_diagrams(
                rows,
                place,
                policy=study.unlabelled,
                binning=study.reliability,
                seed=study.seed,
                origin=origin,
            )
        sizes = {dataset.name: len(dataset.graphs) for dataset in data}
        missing = sum(sizes[cell.dataset] for cell in cells) - finished.table.num_rows
        document = manifest(
            study,
            data,
            finished.statuses(),
            missing,
            code,
            files,
            facts_of(texts),
            relations,
        )
        if pages is not None and "report" in study.outputs:
            (place / REPORT).mkdir()
            run = RunContents(
                study,
                tuple(data),
                tuple(cells),
                rows,
                summary.cells,
                tests,
                dict(document),
                tuple(fits),
                remarks_of(selections_table(selections, data).to_dict("records")),
            )
            written = pages(run, place / REPORT)
            document["files"] |= {f"{REPORT}/{page.name}": file_hash(page) for page in written}
            files.append(place / REPORT)
        file(MANIFEST).write_text(manifest_text(document), encoding="utf-8")
        publish(files, folder)
    paths = tuple(folder / file.name for file in files)
    return Results(summary, tests, selections, paths, tuple(texts))


def whole_summary(study: Study, rows: RowsFile, selections: Sequence[str] = ()) -> StudySummary:
    """Return the summary of a study's rows with what is significantly the best (MEASURE_best)."""
    summary = summarise_study(rows, policy=study.unlabelled, k=study.k, selections=selections)
    best = significantly_best(study, rows, summary.cells)
    return replace(summary, cells=summary.cells.join(best))


def _write_frame(frame: pd.DataFrame, path: Path) -> None:
    path.write_text(frame_text(frame), encoding="utf-8", newline="")
