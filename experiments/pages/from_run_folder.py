"""The subject of a report, read from the folder of a finished run and the data that it judged."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from experiments.findings.markup import csv_records, csv_text
from experiments.findings.page import write_page
from experiments.pages.report_settings import AS_PLANNED, ReportSettings
from experiments.pages.reported_datasets import Watch
from experiments.pages.study_page import study_page
from experiments.settings.cells import chosen_cells
from experiments.study.cell_choice import select
from experiments.study.data import StudyData, load_data
from experiments.study.design import algorithms, cells
from experiments.study.files import MANIFEST, REPORT, ROWS, judges_claims, read_manifest
from experiments.study.manifest import file_hash, manifest_text
from experiments.study.outputs import RunContents
from experiments.study.parts import PRIORS, TEXTS, read_kept
from experiments.study.prepared.learned_priors import (
    CrossFittedPriors,
    PriorRequest,
    kept_fits,
    prior_requests,
    priors_table,
)
from experiments.study.prepared.selections import remarks_of
from experiments.study.prepared.text_models import RELATIONS, TextAnswers, content_hashes
from experiments.study.reading import LoadedStudy, study_of_plain
from experiments.study.report.scores import TESTS, study_scores
from experiments.study.rows import RowsFile
from factormodels.decoded_values import shown
from factormodels.errors import InputError, unknown_name
from factormodels.io.source.files import write_text

if TYPE_CHECKING:
    import pandas as pd

_TEXTS = ("dataset", "first", "second", "elsewhere", "measure", "stars", "status", "reason")


def read_subject(
    folder: Path,
    files: Iterable[str] = (),
    chosen: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> RunContents:
    """Read the subject of a report of a finished run.

    Args:
        folder: the folder of the run's results.
        files: texts NAME=PATH: current locations of the data that the run read from files.
        chosen: names of the cells to show by dimension, as `select` takes them.

    Raises:
        InputError: if the folder holds no finished run, or its data are missing or have changed.
    """
    manifest = read_manifest(folder)
    where = str(folder / MANIFEST)
    if "analysis" in manifest["config"]:
        raise InputError(
            f"{where}: this is a run of the analysis {manifest['config']['analysis']!r}, which "
            "judges no responses; name the folder of a comparison of backends"
        )
    if not judges_claims(manifest["config"]):
        raise InputError(
            f"{where}: this is a run on networks, which have no responses; its page is "
            f"{folder / REPORT}"
        )
    raw = _with_files(manifest["config"], _by_name(files), folder)
    # The study is read twice: this reading finds the files at their current locations.
    loaded = LoadedStudy(study_of_plain(raw, where), Path(), where)
    all_cells = cells(loaded.study, algorithms(loaded))
    data = load_data(loaded)
    for dataset in data:
        before = manifest["data"][dataset.name]["sha256"]
        if dataset.sha256 != before:
            raise InputError(
                f"{folder}: {dataset.name!r} is not what the run judged (SHA-256 "
                f"{dataset.sha256[:12]}, then {before[:12]}); give the data of the run, or run "
                "the study again"
            )
    # The original study, which does not include the current locations of its files.
    study = study_of_plain(manifest["config"], where)
    rows = RowsFile(folder / ROWS)
    # Priors are only looked up for cells with rows, which an incomplete run partly lacks.
    keys_with_rows = {located.key for located in rows.cells()}
    asked = prior_requests(
        loaded, [cell for cell in all_cells if tuple(cell.key().values()) in keys_with_rows], data
    )
    return RunContents(
        study=study,
        data=with_kept_relations(data, folder, manifest),
        cells=tuple(all_cells[position] for position in select(all_cells, chosen)),
        rows=rows,
        summary=study_scores(study, rows).cells,
        tests=_tests(folder / "significance.csv"),
        manifest=manifest,
        fits=kept_priors(asked, data, study.seed, folder, manifest),
        remarks=remarks_of(csv_records(folder / "selections.csv")) if study.selected else {},
    )


def make_report(
    folder: Path, target: Path, shown: ReportSettings = AS_PLANNED, watch: Watch | None = None
) -> tuple[bytes, int]:
    """Write the page of a finished run; a page within the run's folder is listed in its manifest.

    Args:
        folder: the folder of the run's results.
        target: the file of the page.
        shown: settings of the page.
        watch: shows progress.

    Returns:
        The page, and the number of responses that it lists.

    Raises:
        InputError: as `read_subject` and `study_page`, and if the page cannot be written.
    """
    subject = read_subject(folder, shown.data, chosen_cells(shown))
    if shown.rename:
        names = {**subject.study.rename, **shown.rename}
        subject = replace(subject, study=subject.study.model_copy(update={"rename": names}))
    content, listed = study_page(subject, shown, watch)
    write_page(target, content)
    if target.resolve() == (folder / REPORT).resolve():
        manifest = read_manifest(folder)
        manifest["files"][REPORT] = file_hash(target)
        write_text(folder / MANIFEST, manifest_text(manifest))
    return content, listed


def _by_name(files: Iterable[str]) -> dict[str, str]:
    paths = {}
    for text in files:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise InputError(f"--data {text!r}: give NAME=PATH, the dataset and its file")
        paths[name] = path
    return paths


def _with_files(
    config: Mapping[str, Any], files: Mapping[str, str], folder: Path
) -> dict[str, Any]:
    """The study's plain form, with the current paths of its files."""
    datasets = []
    read = {}
    for dataset in config["datasets"]:
        if dataset["path"] is None:
            datasets.append(dataset)
            continue
        name = dataset["name"] or Path(dataset["path"]).stem
        read[name] = dataset["path"]
        path = files.get(name) or _found_again(dataset["path"], folder)
        if path is None:
            raise InputError(
                f"{folder}: the run read {name!r} from {dataset['path']}, which is neither in the "
                "current folder nor in one above the results; say where the file is with --data "
                f"{name}=PATH"
            )
        datasets.append({**dataset, "name": name, "path": path})
    for name in files:
        if name not in read:
            subject = f"--data names {name!r}, which among the files that the run read"
            raise InputError(unknown_name(subject, name, read))
    return {**config, "datasets": datasets}


def _found_again(path: str, folder: Path) -> str | None:
    """A file of a run, relative to the current folder or else to a folder above the results.

    A manifest names no folder; the hash of the content shows whether this is the file of the run.
    """
    start = folder.resolve()
    places = (Path(), start, *start.parents)
    return next((str(root / path) for root in places if (root / path).is_file()), None)


def _tests(path: Path) -> pd.DataFrame:
    """The rows of significance.csv; none if the study has no tests."""
    import pandas as pd

    if not path.exists():
        return pd.DataFrame(columns=list(TESTS))
    records = [
        {
            # Every column has a fixed type, number or text; pandas would guess it from the values.
            name: text if name in _TEXTS else _number(text, path)
            for name, text in record.items()
        }
        for record in csv_records(path)
    ]
    return pd.DataFrame(records, columns=list(TESTS))


def _number(text: str, path: Path) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        raise InputError(f"{path}: {shown(text)} is not a number; run the study again") from None


logger = logging.getLogger(__name__)


def with_kept_relations(
    data: Sequence[StudyData], folder: Path, manifest: Mapping[str, Any]
) -> tuple[StudyData, ...]:
    """The data of a run with the relations that it found, if they still exist.

    Relations that do not match the manifest, as after a restarted run that died, are left out.

    Args:
        data: its datasets.
        folder: the folder of its results.
        manifest: its manifest.
    """
    answers = TextAnswers.of(_read(folder, TEXTS).items())
    # The manifest was written with the rows, but the store may have changed since: only answers
    # whose hash is in the manifest belong to these rows.
    hashes = content_hashes(answers)
    judged = {
        (dataset, model, variant)
        for dataset, facts in manifest["data"].items()
        for model, by_variant in facts.get("relations", {}).items()
        for variant, digest in by_variant.items()
        if hashes.get(dataset, {}).get(model, {}).get(variant) == digest
    }
    vouched = {
        request: answer
        for request, answer in answers.by_request.items()
        if request.key == RELATIONS and (request.dataset, request.title, request.variant) in judged
    }
    return TextAnswers(vouched).related(data)


def kept_priors(
    asked: Sequence[PriorRequest],
    data: Sequence[StudyData],
    seed: int,
    folder: Path,
    manifest: Mapping[str, Any],
) -> tuple[CrossFittedPriors, ...]:
    """Priors that a run learned, if they still exist; none if they do not match their file.

    Args:
        asked: the requested priors.
        data: its datasets.
        seed: seed of the folds.
        folder: the folder of its results.
        manifest: its manifest.
    """
    if not asked:
        return ()
    fits = kept_fits(asked, data, seed, _read(folder, PRIORS))
    # priors.csv is a function of the fits, so its hash in the manifest vouches for them.
    text = csv_text(priors_table(fits))
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return fits if digest == manifest["files"].get("priors.csv") else ()


def _read(folder: Path, kind: str) -> dict[str, Any]:
    try:
        return read_kept(folder, kind)
    except InputError as error:
        # Cached content is not part of the results: without it, the pages show less.
        logger.warning("%s", error)
        return {}
