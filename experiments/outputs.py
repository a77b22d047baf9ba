"""The files of a run: made whole beside their folder, then moved into it, the manifest last."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from experiments import paper_table, significance, tables
from experiments.artefacts import Origin
from experiments.assembly import Finished, row_tables
from experiments.best import significantly_best
from experiments.config import Study, config_hash
from experiments.cross_fits import CrossFit, priors_table
from experiments.design import Cell
from experiments.figures import write_diagrams
from experiments.manifest import file_hash, manifest, manifest_text
from experiments.report.subject import Subject, Watch
from experiments.report.writing import FOLDER, move_into_place, write_pages
from experiments.rows import CELL, RowsFile, write_csv, write_rows
from experiments.selections import Selections, remarks_of, selections_table
from experiments.study_data import StudyData
from experiments.summary import TIMES, StudySummary, summarise_study
from experiments.text_answers import TextUse
from factormodels.errors import InputError
from factormodels.io.files import write_text

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "manifest.json"
ROWS = "rows.parquet"


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


def prepare_folder(folder: Path) -> None:
    """Make a folder for results, or fail before anything was computed.

    Raises:
        InputError: if it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: the folder cannot be made ({error.strerror}); give another with --out"
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: the folder cannot be written; give another with --out")


@contextmanager
def results_folder(folder: Path) -> Iterator[None]:
    """Make a folder of results; if the block fails, remove again the folders that were made.

    Raises:
        InputError: if it cannot be made or written.
    """
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        prepare_folder(folder)
        yield
    except BaseException:
        remove_empty(absent)
        raise


def remove_empty(places: Sequence[Path]) -> None:
    """Remove the folders that hold nothing, the innermost first."""
    for place in places:
        # A folder that holds something by now is not this run's alone.
        with suppress(OSError):
            place.rmdir()


def write_results(
    study: Study,
    data: Sequence[StudyData],
    cells: Sequence[Cell],
    finished: Finished,
    code: Sequence[str],
    folder: Path,
    *,
    fits: Sequence[CrossFit] = (),
    selected: Selections | None = None,
    texts: Sequence[TextUse] = (),
    relations: Mapping[str, Any] = MappingProxyType({}),
    watch: Watch | None = None,
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
        watch: shows how far the pages of the report are.

    Raises:
        InputError: if the folder cannot be written, or the rows cannot be scored as asked.
    """
    selections = selected or Selections()
    origin = Origin(study.study, config_hash(study))
    with workshop(folder) as place:
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
            study, data, finished.statuses(), missing, code, files, texts, relations
        )
        if "report" in study.outputs:
            (place / FOLDER).mkdir()
            subject = Subject(
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
            pages = write_pages(subject, place / FOLDER, watch=watch)
            document["files"] |= {f"{FOLDER}/{page.name}": file_hash(page) for page in pages}
            files.append(place / FOLDER)
        file(MANIFEST).write_text(manifest_text(document), encoding="utf-8")
        publish(files, folder)
    written = tuple(folder / file.name for file in files)
    return Results(summary, tests, selections, written, tuple(texts))


def whole_summary(study: Study, rows: RowsFile, selections: Sequence[str] = ()) -> StudySummary:
    """Return the summary of a study's rows with what is significantly the best (MEASURE_best)."""
    summary = summarise_study(rows, policy=study.unlabelled, k=study.k, selections=selections)
    best = significantly_best(study, rows, summary.cells)
    return replace(summary, cells=summary.cells.join(best))


def frame_text(frame: pd.DataFrame) -> str:
    """Return a table as the text of its CSV file."""
    return str(frame.to_csv(index=False, lineterminator="\n"))


def _write_frame(frame: pd.DataFrame, path: Path) -> None:
    path.write_text(frame_text(frame), encoding="utf-8", newline="")


@contextmanager
def workshop(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`, on the same file system; it is gone after."""
    try:
        name = tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.")
    except OSError as error:
        raise InputError(
            f"{folder.parent}: cannot be written ({error.strerror}); give another --out"
        ) from None
    try:
        yield Path(name)
    finally:
        shutil.rmtree(name, ignore_errors=True)


def publish(files: Sequence[Path], folder: Path) -> None:
    """Move the files of a run, of which the manifest is the last, into their folder.

    What the manifest there lists is removed where this run does not make it.
    """
    before = _listed(folder / MANIFEST)
    # A folder with a manifest is whole: it goes first and comes last.
    (folder / MANIFEST).unlink(missing_ok=True)
    for name in before - {file.name for file in files}:
        # An artefact of the run before that this one does not make would pass for its own.
        if name == FOLDER:
            shutil.rmtree(folder / FOLDER, ignore_errors=True)
        else:
            (folder / name).unlink(missing_ok=True)
    for file in files:
        if file.is_dir():
            move_into_place(file, folder / file.name)
        else:
            file.replace(folder / file.name)


def _listed(path: Path) -> set[str]:
    """Return what a manifest lists in its own folder, the report as one; none if there is none."""
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    names = {str(name) for name in files}
    reports = {FOLDER for name in names if name.startswith(f"{FOLDER}/")}
    return {name for name in names if Path(name).name == name} | reports
