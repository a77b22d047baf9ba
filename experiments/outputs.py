"""The files of a run: made whole beside their folder, then moved into it, the manifest last."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from experiments import tables
from experiments.config import Study, config_hash
from experiments.figures import write_diagrams
from experiments.manifest import manifest
from experiments.rows import as_frame, as_table, write_csv, write_parquet
from experiments.study_data import StudyData
from experiments.summary import StudySummary, summarise_study
from factormodels.errors import InputError

MANIFEST = "manifest.json"


@contextmanager
def results_folder(folder: Path) -> Iterator[None]:
    """Make the folder of results; if the block fails, remove again the folders that were made.

    Raises:
        InputError: if it cannot be made or written.
    """
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        prepare_folder(folder)
        yield
    except BaseException:
        for place in absent:
            # A folder that holds something by now is not this run's alone.
            with suppress(OSError):
                place.rmdir()
        raise


def prepare_folder(folder: Path) -> None:
    """Make the folder of results, or fail before anything was computed.

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


def write_results(
    study: Study,
    data: Sequence[StudyData],
    rows: Iterable[Mapping[str, Any]],
    statuses: Iterable[str],
    folder: Path,
) -> tuple[StudySummary, list[Path]]:
    """Write every file of a run and return its summary and the paths, in order.

    Args:
        study: the study.
        data: its datasets.
        rows: its rows.
        statuses: how each of its units ended.
        folder: where the files go; other files in it are left alone.

    Raises:
        InputError: if the folder cannot be written, or the rows cannot be scored as asked.
    """
    prepare_folder(folder)
    origin = {"study": study.study, "config_sha256": config_hash(study)}
    with _workshop(folder) as workshop:
        table = as_table(rows, origin)
        frame = as_frame(table)
        summary = summarise_study(frame, policy=study.unlabelled, k=study.k)
        write_parquet(table, workshop / "rows.parquet")
        write_csv(table, workshop / "rows.csv")
        summary.cells.to_csv(workshop / "summary.csv", index=False, lineterminator="\n")
        files = [workshop / name for name in ("rows.parquet", "rows.csv", "summary.csv")]
        if "latex" in study.outputs:
            comment = f"study {study.study}\nconfig sha256 {config_hash(study)}"
            files.append(workshop / "table.tex")
            files[-1].write_text(tables.latex(summary.cells, comment), encoding="utf-8")
        if "markdown" in study.outputs:
            files.append(workshop / "table.md")
            files[-1].write_text(tables.markdown(summary.cells, study.study), encoding="utf-8")
        if "reliability" in study.outputs:
            files += write_diagrams(
                frame,
                workshop,
                policy=study.unlabelled,
                binning=study.reliability,
                seed=study.seed,
                metadata=origin,
            )
        units = dict(sorted(Counter(statuses).items()))
        document = manifest(study, data, units, files)
        files.append(workshop / MANIFEST)
        files[-1].write_text(
            json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        _publish(files, folder)
    return summary, [folder / file.name for file in files]


@contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
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


def _publish(files: Sequence[Path], folder: Path) -> None:
    # A folder with a manifest is complete: it goes first and comes last.
    (folder / MANIFEST).unlink(missing_ok=True)
    for file in files:
        file.replace(folder / file.name)
