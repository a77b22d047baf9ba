"""Results of a study of networks: tables, figure and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.findings.artifacts import (
    Artifacts,
    Origin,
    PaperFigure,
    write_artifacts,
    write_parquet,
)
from experiments.findings.markup import write_csv
from experiments.findings.table import data_frame, with_note
from experiments.findings.venues import venue_named
from experiments.networks.data import facts_of
from experiments.networks.design import Measurement, NetworkDesign
from experiments.networks.frontier_figure import frontier_figure
from experiments.networks.maxima import maxima_table
from experiments.networks.measure import ABSENT, FAILED, REFUSED
from experiments.networks.summary import (
    WITHOUT_ANSWER,
    failures,
    summarize,
    warnings,
    with_brackets,
)
from experiments.networks.tables import accuracy_table, cost_table, network_table
from experiments.study.files import MANIFEST, REPORT, ROWS, publish
from experiments.study.manifest import manifest, manifest_text
from factormodels.io.json import plain_hash
from factormodels.io.source.files import unfinished_folder, write_text
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

WritePage = Callable[[Path, str, Artifacts], None]
"""Function of a file, the name of the study and findings that writes the page to the file."""

_CAPTION = (
    "Accuracy against time of backends: the time of a repeated call. Above: mean errors of "
    "marginals against the reference, those below 1e-12 drawn there, and gray steps along the "
    "frontier if it has several backends. Below: log Z as reported, and certified brackets as "
    "lines, distances below 1e-12 drawn at 0; a hollow triangle is a certified bound on one "
    "side. A backend without log Z has no point below"
)

Rows = Mapping[str, Mapping[str, Any]]
"""Measurements by key."""


@dataclass(frozen=True)
class NetworkResults:
    """Results of a study of networks.

    Attributes:
        artifacts: its tables, figures and remarks.
        measured: every measurement, a row each.
        failed: True if a measurement failed, not counting refusals.
        files: the files, the manifest last.
    """

    artifacts: Artifacts
    measured: pd.DataFrame
    failed: bool
    files: tuple[Path, ...]


def write_networks(
    planned: NetworkDesign,
    folder: Path,
    rows: Rows,
    code: Sequence[str],
    write_page: WritePage | None,
) -> NetworkResults:
    """Write the results of a study of networks into a folder, all of them or none.

    Args:
        planned: the study.
        folder: the folder of the results.
        rows: its measurements.
        code: versions of the code that measured them.
        write_page: function that writes the page; None for no page.

    Raises:
        InputError: if the folder cannot be written.
    """
    study, every = planned.loaded.study, planned.measurements()
    measured = with_brackets(data_frame(_rows_of(planned, every, rows)))
    searched = data_frame(_searched(planned, every, rows))
    statuses = [row["status"] for row in rows.values()]
    present, absent = _present(measured), _names_of_absent(measured, searched)
    overall = summarize(present, planned.base, study.seed)
    tables = {
        "accuracy": accuracy_table(overall),
        "costs": cost_table(overall, planned.base),
        **({"maxima": maxima_table(_present(searched), study.seed)} if len(searched) else {}),
        "networks": network_table(present),
    }
    if absent:
        note = f"Left out, because they are not installed: {', '.join(absent)}."
        tables = {name: with_note(table, note) for name, table in tables.items()}
    figure = PaperFigure(frontier_figure(overall), overall, _CAPTION)
    remarks = (
        *_sentences(measured, searched, len(every)),
        *warnings(measured),
        *(failures(searched) if len(searched) else ()),
    )
    artifacts = Artifacts(tables, {"frontier": figure}, remarks).with_points()
    artifacts = artifacts.renamed(study.rename)
    plain = study.plain()
    origin = Origin(study.study, plain_hash(plain))
    with unfinished_folder(folder) as unfinished:
        files = list(write_artifacts(artifacts, unfinished, origin, venue_named(study.venue)))
        parquet = unfinished / ROWS
        write_parquet(parquet, measured, origin.metadata())
        rounds = measured["round_seconds"].map(lambda each: " ".join(map(repr, each)))
        write_csv(parquet.with_suffix(".csv"), measured.assign(round_seconds=rounds))
        files += [parquet, parquet.with_suffix(".csv")]
        if write_page is not None:
            files.append(unfinished / REPORT)
            write_page(files[-1], study.study, artifacts)
        document = manifest(
            *(study.study, plain, facts_of(planned.sources), (study.seed, *study.all_seeds), files),
            units=dict(sorted(Counter(statuses).items())),
            units_missing=len(every) - len(rows),
            code_of_units=list(code),
            remarks=list(artifacts.remarks),
        )
        files.append(unfinished / MANIFEST)
        write_text(files[-1], manifest_text(document))
        publish(files, folder)
    written = tuple(folder / file.name for file in files)
    return NetworkResults(artifacts, measured, FAILED in statuses, written)


def _rows_of(
    planned: NetworkDesign, every: Iterable[Measurement], rows: Rows
) -> Iterator[dict[str, Any]]:
    """Yield measurements of backends, each with its dataset, network and cell."""
    for measurement in every:
        if isinstance(measurement.what, str) or measurement.key not in rows:
            continue
        algorithm = planned.cells[measurement.what].algorithm
        yield {
            **_source_names(planned, measurement),
            "backend": planned.label(algorithm),
            "algorithm": algorithm.name,
            "setting": algorithm.setting,
            "seed": algorithm.seed,
            **rows[measurement.key],
        }


def _searched(
    planned: NetworkDesign, every: Iterable[Measurement], rows: Rows
) -> Iterator[dict[str, Any]]:
    """Yield searches of the most probable states, each with its dataset and network."""
    for measurement in every:
        if isinstance(measurement.what, str) and measurement.key in rows:
            source = _source_names(planned, measurement)
            yield {**source, "backend": measurement.what, **rows[measurement.key]}


def _present(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of installed backends; all rows if none is installed."""
    present = frame[frame["status"] != ABSENT] if len(frame) else frame
    return present.reset_index(drop=True) if len(present) else frame


def _names_of_absent(*frames: pd.DataFrame) -> list[str]:
    """Distinct names of backends and programs that are not installed."""
    return list(
        dict.fromkeys(
            str(name)
            for frame in frames
            if len(frame)
            for name in frame.loc[frame["status"] == ABSENT, "backend"]
        )
    )


def _source_names(planned: NetworkDesign, measurement: Measurement) -> dict[str, Any]:
    source = planned.sources[measurement.network]
    return {"dataset": source.dataset, "network": source.name}


def _sentences(measured: pd.DataFrame, searched: pd.DataFrame, total: int) -> Iterator[str]:
    """Sentences on measurements and missing results."""
    statuses = [*measured["status"], *(searched["status"] if len(searched) else ())]
    n_networks = len(measured.drop_duplicates(["dataset", "network"]))
    made = len(statuses) - statuses.count(ABSENT)
    answered = sum(status not in WITHOUT_ANSWER for status in statuses)
    backends, searches = (
        frame.loc[frame["status"] != ABSENT, "backend"].nunique() if len(frame) else 0
        for frame in (measured, searched)
    )
    beside = (
        f" and {counted(searches, 'search', 'searches')} for the best states" if searches else ""
    )
    yield (
        f"{counted(n_networks, 'network')}, {counted(backends, 'backend')}{beside}: "
        f"{answered:,} of {counted(made, 'measurement')} answered, "
        f"{statuses.count(REFUSED):,} refused"
    )
    if total > len(statuses):
        missing = counted(total - len(statuses), "measurement")
        yield f"{missing} not made yet; continue with --resume"
    for frame in (measured, searched):
        if len(frame):
            absent = frame[frame["status"] == ABSENT].drop_duplicates("backend")
            for backend, why in zip(absent["backend"], absent["remark"], strict=True):
                yield f"{backend} is absent: {why}."
