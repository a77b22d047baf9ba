"""Output files of a run, from finished units: rows, summary, tests, tables and manifest.

They are written next to their folder, then moved into it, the manifest last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from experiments.columns.cell_names import CELL, UNANSWERED
from experiments.findings.artifacts import Origin
from experiments.findings.latex import latex
from experiments.findings.markup import csv_text
from experiments.findings.table import markdown, presented
from experiments.findings.venues import venue_named
from experiments.study.cells import StudyCell, absent_backends
from experiments.study.config import EVERYTHING, Study, config_hash
from experiments.study.data import StudyData
from experiments.study.files import MANIFEST, REPORT, ROWS, publish
from experiments.study.manifest import file_hash, manifest_of_units, manifest_text
from experiments.study.packed_graphs import KnownClaims
from experiments.study.parts import FinishedUnits
from experiments.study.prepared.learned_priors import CrossFittedPriors, priors_table
from experiments.study.prepared.selections import Selections, remarks_of, selections_table
from experiments.study.prepared.text_models import TextUse, facts_of
from experiments.study.report.diagrams import Diagram, diagrams, write_diagrams
from experiments.study.report.scores import (
    TIMES,
    AgreeingCells,
    StudySummary,
    agreeing_cells,
    response_means,
    study_scores,
    study_tests,
)
from experiments.study.report.sentences import sentences
from experiments.study.report.tables import (
    cells_table,
    conventions_note,
    means_table,
    short_table,
    significance_table,
)
from experiments.study.rows import GROUP_ROWS, SCHEMA, RowsFile, write_csv, write_rows
from factormodels.io.source.files import unfinished_folder, write_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Results:
    """Results of a run.

    Attributes:
        summary: its summary.
        groups: groups of cells with equal posteriors.
        tests: its significance tests.
        means: means and standard deviations over responses, if the conventions require them.
        selections: the atoms that count, and unsettled selections.
        files: the files, in order.
        texts: calls of relation models and assessors.
        remarks: reasons for missing reliability diagrams.
    """

    summary: StudySummary
    groups: tuple[AgreeingCells, ...]
    tests: pd.DataFrame
    means: pd.DataFrame
    selections: Selections
    files: tuple[Path, ...]
    texts: tuple[TextUse, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class RunContents:
    """A run with its results.

    Attributes:
        study: the study.
        data: its datasets, with known new relations.
        cells: its cells.
        rows: its tidy rows.
        summary: its summary, one row per cell and selection.
        tests: its significance tests.
        manifest: its manifest.
        fits: its known learned priors.
        remarks: remarks on selections, by dataset and response.
        diagrams: its reliability diagrams, if already drawn.
    """

    study: Study
    data: tuple[StudyData, ...]
    cells: tuple[StudyCell, ...]
    rows: RowsFile
    summary: pd.DataFrame
    tests: pd.DataFrame
    manifest: dict[str, Any]
    fits: tuple[CrossFittedPriors, ...] = ()
    remarks: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    diagrams: tuple[Diagram, ...] | None = None


WritePage = Callable[[RunContents, Path], None]
"""Function of a run and a file that writes the run's page there."""


def write_results(
    study: Study,
    data: Sequence[StudyData],
    cells: Sequence[StudyCell],
    finished: FinishedUnits,
    code: Sequence[str],
    folder: Path,
    *,
    fits: Sequence[CrossFittedPriors] = (),
    selected: Selections | None = None,
    texts: Sequence[TextUse] = (),
    relations: Mapping[str, Any] = MappingProxyType({}),
    write_page: WritePage | None = None,
) -> Results:
    """Write every file of a run.

    Args:
        study: the study.
        data: its datasets, with new relations.
        cells: its cells.
        finished: its finished units.
        code: versions of the code that they were computed with.
        folder: output folder; other files in it are not changed.
        fits: its learned priors.
        selected: the atoms that count; None for every atom.
        texts: calls of its relation models and assessors.
        relations: hashes of the relations that they found, by dataset, model and variant.
        write_page: writes the page of the run, if the study has one; None for no page.

    Raises:
        InputError: if the folder cannot be written, or the rows cannot be scored as requested.
    """
    # Without selections every atom counts, which is written as "all".
    selections = selected or Selections()
    origin = Origin(study.study, config_hash(study))
    with unfinished_folder(folder) as unfinished:
        files: list[Path] = []

        # Record every file when it is named, so that neither the manifest nor the move misses one.
        def file(name: str) -> Path:
            files.append(unfinished / name)
            return files[-1]

        # A generator, so that only a group of a cell's rows is in memory at a time.
        row_groups = row_tables(study.study, data, cells, finished, selections)
        write_rows(row_groups, file(ROWS), origin.metadata())
        # From here on, compute everything from the written file, as its readers do.
        rows = RowsFile(unfinished / ROWS)
        drawn = tuple(diagrams(rows, study)) if "reliability" in study.outputs else None
        # Draw before the report, which puts the titles of its diagrams into captions.
        figures = write_diagrams(drawn or (), unfinished, origin, venue_named(study.venue))
        if "csv" in study.outputs:
            write_csv(rows, file("rows.csv"))
        summary = study_scores(study, rows)
        # Leave times out, so that two runs of a study write identical summary.csv files.
        _write_frame(summary.cells.drop(columns=list(TIMES)), file("summary.csv"))
        # The selections of a cell share its posteriors and therefore its times.
        _write_frame(summary.cells[[*CELL, *TIMES]].drop_duplicates(list(CELL)), file("times.csv"))
        if fits:
            _write_frame(priors_table(fits), file("priors.csv"))
        if selections.titles:
            _write_frame(selections_table(selections, data), file("selections.csv"))
        tests = study_tests(study, rows)
        if study.significance.pairs:
            _write_frame(tests, file("significance.csv"))
        means = response_means(study, rows)
        if len(means):
            _write_frame(means, file("means.csv"))
        groups = tuple(agreeing_cells(rows, summary.cells))
        # Leave times out, because they differ between runs.
        summary_sentences = sentences(summary.cells, groups, times=False)
        # A table of a paper has a caption even if the study has no description.
        caption = (
            " ".join(filter(None, (study.description.strip(), *summary_sentences))) or study.study
        )
        papers = {
            "short": short_table(
                summary.cells,
                groups,
                caption,
                study.measures,
                conventions=conventions_note(study),
            ),
            # The same table in both formats, so that LaTeX and Markdown cannot differ.
            "table": cells_table(
                summary.cells,
                study.description or study.study,
                study.measures,
                absent_backends(cells),
                conventions=conventions_note(study),
            ),
        }
        if study.significance.pairs:
            papers["significance"] = significance_table(tests, study)
        if len(means):
            papers["means"] = means_table(means, study, study.description or study.study)
        for stem, plain_table in papers.items():
            table = presented(plain_table, study.rename)
            if "latex" in study.outputs:
                text = latex(table, stem, origin.comments(), venue_named(study.venue))
                write_text(file(f"{stem}.tex"), text)
            if "markdown" in study.outputs:
                write_text(file(f"{stem}.md"), markdown(table, origin.comments()))
        sizes = {dataset.name: len(dataset.graphs) for dataset in data}
        missing = sum(sizes[cell.dataset] for cell in cells) - finished.n_units
        # Before the report, whose pages show the manifest; the files' hashes are added later.
        document = manifest_of_units(
            study, data, finished.statuses, missing, code, facts_of(texts), relations
        )
        if write_page is not None and "report" in study.outputs:
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
                drawn,
            )
            write_page(run, file(REPORT))
        files += figures
        document["files"] = {str(path.relative_to(unfinished)): file_hash(path) for path in files}
        # The manifest lists all other files and is moved last, so its presence implies theirs.
        write_text(file(MANIFEST), manifest_text(document))
        publish(files, folder)
    paths = tuple(folder / file.name for file in files)
    remarks = tuple(filter(None, (diagram.remark for diagram in drawn or ())))
    return Results(summary, groups, tests, means, selections, paths, tuple(texts), remarks)


def row_tables(
    study: str,
    data: Sequence[StudyData],
    cells: Sequence[StudyCell],
    finished: FinishedUnits,
    selections: Selections | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of each cell's finished responses, a row group at a time.

    Args:
        study: name of the study.
        data: its datasets.
        cells: its cells.
        finished: the finished units.
        selections: the atoms that count; None for every atom.
    """
    kept = selections or Selections()
    claims = {dataset.name: _Claims.of(dataset, kept) for dataset in data}
    for number, cell in enumerate(cells):
        if finished.counts[number]:
            yield from _cell_rows(study, cell, claims[cell.dataset], finished.of_cell(number))


def _write_frame(frame: pd.DataFrame, path: Path) -> None:
    write_text(path, csv_text(frame))


@dataclass(frozen=True)
class _Claims:
    """Columns of a dataset's rows that all its cells share.

    Attributes:
        columns: columns of its claims.
        selections: texts (n_rows,), like `columns.atom`; None if every atom counts.
    """

    columns: KnownClaims
    selections: pa.ChunkedArray | None

    @staticmethod
    def of(dataset: StudyData, kept: Selections) -> _Claims:
        columns = dataset.claims
        if not kept.titles:
            return _Claims(columns, None)
        texts: list[str | None] = []
        for selected in kept.of_atoms(dataset):
            texts += selected or [None]
        return _Claims(columns, pa.chunked_array([pa.array(texts, pa.string())]))

    def of_rows(self, name: str, rows: NDArray[np.int64]) -> pa.Array:
        """Values of a column, atom, label, annotation or selections, in some of its rows."""
        column = self.selections if name == "selections" else getattr(self.columns, name)
        if column is None:
            atoms = self.of_rows("atom", rows)
            everything = pa.repeat(pa.scalar(EVERYTHING), len(rows))
            return pc.if_else(atoms.is_valid(), everything, pa.scalar(None, pa.string()))
        return _taken(column, rows)


def _taken(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> pa.Array:
    """Some adjacent rows of a column, taken from a small slice of a large column."""
    first = int(rows.min())
    stretch = column.slice(first, int(rows.max()) - first + 1).combine_chunks()
    return stretch.take(pa.array(rows - first))


def _cell_rows(study: str, cell: StudyCell, claims: _Claims, units: pa.Table) -> Iterator[pa.Table]:
    """Yield the tidy rows of a cell, a row group at a time.

    A cell that was not run has no rows instead of rows without results.
    """
    responses = np.asarray(units["response"].to_numpy(), dtype=np.int64)
    ends = np.cumsum(np.maximum(claims.columns.n_atoms[responses], 1))
    for start in range(0, int(ends[-1]) if len(ends) else 0, GROUP_ROWS):
        stop = min(start + GROUP_ROWS, int(ends[-1]))
        # The units of these rows; the first and the last may be partial.
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left"))
        piece_units = units.slice(first, last - first + 1).combine_chunks()
        table = _unit_rows(study, cell, claims, piece_units, responses[first : last + 1])
        before = int(ends[first - 1]) if first else 0
        yield table.slice(start - before, stop - start)


def _unit_rows(
    study: str,
    cell: StudyCell,
    claims: _Claims,
    units: pa.Table,
    responses: NDArray[np.int64],
) -> pa.Table:
    """The rows of some units of a cell: their results, expanded over the judged claims."""
    # A row per claim: `owner` is its unit, `within` its index in the response.
    n_atoms = claims.columns.n_atoms[responses]
    n_rows = np.maximum(n_atoms, 1)
    owner = np.repeat(np.arange(len(responses)), n_rows)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    rows = claims.columns.starts[responses][owner] + within
    failed = np.isin(units["status"].to_pylist(), UNANSWERED)
    judged = ~(failed | (n_atoms == 0))[owner]
    p = np.zeros(len(owner))
    # A failed unit and a response without atoms have empty lists, so the flat list runs over
    # exactly the judged rows.
    p[judged] = units["p"].combine_chunks().flatten().to_numpy()
    shared = {"study": study, **cell.key(), "backend": cell.algorithm.name}
    shared["setting"] = cell.algorithm.setting
    # Every row repeats the values of its unit, such as the seconds.
    repeated = pa.array(owner)
    # A claim without a verdict of an assessor is NaN.
    columns: dict[str, Any] = {
        "p": pa.array(p, mask=~judged | np.isnan(p)),
        "response": _taken(claims.columns.response, responses).take(repeated),
    }
    for name in SCHEMA.names:
        if name in shared:
            columns[name] = pa.repeat(pa.scalar(shared[name], SCHEMA.field(name).type), len(owner))
        elif name in _OF_CLAIMS:
            columns[name] = claims.of_rows(name, rows)
        elif name not in columns:
            columns[name] = units[name].combine_chunks().take(repeated)
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


_OF_CLAIMS = ("atom", "label", "annotation", "selections")
