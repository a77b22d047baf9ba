"""A study of networks from its design to its files; what is measured is never lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.findings.artefacts import (
    Artefacts,
    Origin,
    PaperFigure,
    write_artefacts,
    write_parquet,
)
from experiments.findings.markup import write_csv
from experiments.findings.table import data_frame
from experiments.findings.venues import venue_named
from experiments.networks.config import LoadedNetworks
from experiments.networks.data import NetworkSource, facts_of, sources
from experiments.networks.frontier_figure import frontier_figure
from experiments.networks.measure import (
    FAILED,
    NUMBERS,
    REFUSED,
    Clocking,
    NetworkTask,
    measure,
)
from experiments.networks.summary import (
    ABSENT,
    WITHOUT_ANSWER,
    remarks,
    summarise,
    with_brackets,
)
from experiments.networks.tables import accuracy_table, cost_table, network_table
from experiments.parallel_map import map_tasks, processes
from experiments.progress import watcher
from experiments.settings.backend_settings import build_backend
from experiments.study.cell_choice import select
from experiments.study.config import allows
from experiments.study.design import NO_VIEW, StudyAlgorithm, StudyCell, inference_algorithms
from experiments.study.files import MANIFEST, REPORT, ROWS, publish
from experiments.study.manifest import manifest, manifest_text
from experiments.study.parts import NETWORKS, RunPlan, open_run
from experiments.study.units import warm_up_units
from factormodels.errors import InputError, unknown_name
from factormodels.io.json import plain_hash
from factormodels.io.source.files import unfinished_folder, write_text
from factormodels.nouns import counted
from inference import Backend

if TYPE_CHECKING:
    import pandas as pd

WritePage = Callable[[Path, str, Artefacts], None]
"""(file, name of the study, what was found) -> its page, written to the file."""

_DIED = "the process that measured it ended without an answer, as for want of memory"

_PRECISE = ("round_seconds",)
"""Columns of rows that are lists, which CSV has as texts."""


@dataclass(frozen=True)
class NetworkDesign:
    """A study of networks with everything that is needed to run it.

    Attributes:
        loaded: the study.
        sources: its networks.
        cells: every combination of a dataset and a backend with its settings and seed.
        judge: what computes references.
    """

    loaded: LoadedNetworks
    sources: tuple[NetworkSource, ...]
    cells: tuple[StudyCell, ...]
    judge: Backend

    def label(self, algorithm: StudyAlgorithm) -> str:
        """What tables call an algorithm: with its seed, where it stands there once for each."""
        seeds = {
            cell.algorithm.seed for cell in self.cells if cell.algorithm.title == algorithm.title
        }
        return f"{algorithm.title} seed {algorithm.seed}" if len(seeds) > 1 else algorithm.title

    @property
    def base(self) -> str:
        """Label of the algorithm that times are divided by; of several seeds the first."""
        title = self.loaded.study.base
        algorithms = [cell.algorithm for cell in self.cells]
        return next((self.label(each) for each in algorithms if each.title == title), title)

    def measured(self) -> list[tuple[NetworkSource, int]]:
        """Every measurement: a network, and the position of a cell."""
        return [
            (source, position)
            for source in self.sources
            for position, cell in enumerate(self.cells)
            if cell.dataset == source.dataset
        ]

    def plan(self) -> RunPlan:
        """What its run computes."""
        return RunPlan(
            # Rows that lack a number of today's are of another run.
            study={**self.loaded.study.measured_part(), "numbers": list(NUMBERS)},
            cells=[{**cell.key(), "setting": cell.algorithm.setting} for cell in self.cells],
            data={f"{each.dataset}/{each.name}": each.sha256 for each in self.sources},
            models={},
        )


def design(loaded: LoadedNetworks) -> NetworkDesign:
    """The design of a study of networks.

    Raises:
        InputError: for a setting that a backend does not have or take, a dataset that is not there,
            or a network that cannot be read.
        MissingDependencyError: if the reference needs a library that is not installed.
    """
    study, blame = loaded.study, loaded.raw.blame
    chosen = inference_algorithms(study.backends, study.all_seeds, blame)
    ((_, settings),) = study.reference.settings_of_each()
    place = partial(study.reference.place_of, blame("reference"))
    judge = build_backend(study.reference.backend, settings, place)
    every = sources(loaded)
    datasets = list(dict.fromkeys(source.dataset for source in every))
    for position, choice in enumerate(study.backends):
        for name in choice.only.datasets or ():
            if name not in datasets:
                where = blame(f"backends[{position}].only.datasets")
                raise InputError(unknown_name(f"{where}: the dataset {name!r}", name, datasets))
    cells = tuple(
        StudyCell(dataset, NO_VIEW, algorithm)
        for dataset in datasets
        for algorithm in chosen
        if allows(study.backends[algorithm.choice], "datasets", dataset)
    )
    return NetworkDesign(loaded, every, cells, judge)


@dataclass(frozen=True)
class NetworkResults:
    """What a study of networks found.

    Attributes:
        artefacts: its tables and figures, and what a reader must know.
        measured: every measurement, a row each.
        failed: whether a measurement failed, other than that a backend refused the network.
        files: the files, the manifest last.
    """

    artefacts: Artefacts
    measured: pd.DataFrame
    failed: bool
    files: tuple[Path, ...]


def run_networks(
    planned: NetworkDesign,
    folder: Path,
    *,
    workers: int | None = None,
    chosen: Mapping[str, Sequence[str]],
    resume: bool = False,
    overwrite: bool = False,
    retry_failed: bool = False,
    write_page: WritePage | None = None,
) -> NetworkResults:
    """Measure the backends of a study on its networks, and write what was found.

    Args:
        planned: the study.
        folder: the folder of the results.
        workers: number of processes; this one alone if it is None or 1.
        chosen: names of the cells to run by dimension, as `select` takes them.
        resume: go on with the measurements that the folder holds.
        overwrite: drop whatever run the folder holds.
        retry_failed: with `resume`, do again the measurements that failed.
        write_page: writes the page of what was found; None: there is none.

    Raises:
        InputError: if the folder holds what may not be dropped, or cannot be written.
        WorkerError: if processes cannot run.
    """
    wanted = set(select(planned.cells, chosen))
    every = planned.measured()
    opened = open_run(
        *(folder, planned.plan(), []),
        resume=resume,
        overwrite=overwrite,
        n_measurements=len(every),
    )
    with opened as run:
        kept = run.store.values(NETWORKS)
        rows = dict(kept.items())
        again = {key for key, row in rows.items() if retry_failed and row["status"] == FAILED}
        todo: dict[int, list[int]] = {}
        place = {id(source): number for number, source in enumerate(planned.sources)}
        for source, cell in every:
            key = _key(place[id(source)], cell)
            if cell in wanted and (key not in rows or key in again):
                todo.setdefault(place[id(source)], []).append(cell)
        with watcher().steps("networks", len(todo)) as step:
            for number, cells, found in _measured(planned, todo, workers):
                for cell, row in zip(cells, found, strict=True):
                    kept.put(_key(number, cell), row)
                step()
        rows = dict(kept.items())
        frame = _frame(planned, [(*pair, rows.get(key)) for pair, key in _keyed(planned)])
        return _written(planned, folder, frame, run.code, write_page)


def _key(source: int, cell: int) -> str:
    return f"{source} {cell}"


def _keyed(planned: NetworkDesign) -> Iterator[tuple[tuple[NetworkSource, int], str]]:
    place = {id(source): number for number, source in enumerate(planned.sources)}
    for source, cell in planned.measured():
        yield (source, cell), _key(place[id(source)], cell)


def _measured(
    planned: NetworkDesign, todo: Mapping[int, Sequence[int]], workers: int | None
) -> Iterator[tuple[int, Sequence[int], list[dict[str, Any]]]]:
    """Yield networks and cells by position, with a row for each of the cells."""
    study = planned.loaded.study
    clocking = Clocking(study.rounds, study.budget, study.seed)
    left = iter(todo.items())
    under_way: dict[int, tuple[int, Sequence[int]]] = {}

    def take() -> NetworkTask | None:
        number, cells = next(left, (None, ()))
        if number is None:
            return None
        task = NetworkTask(
            planned.sources[number].load(),
            tuple(
                (str(cell), backend)
                for cell in cells
                if (backend := planned.cells[cell].algorithm.backend) is not None
            ),
            planned.judge,
            clocking,
        )
        under_way[id(task)] = number, cells
        return task

    backends = [planned.cells[cell].algorithm.backend for cells in todo.values() for cell in cells]
    built = {id(each): each for each in (*backends, planned.judge) if each is not None}
    # What compiles at the first call must not be in the first network's time.
    prepare = partial(warm_up_units, tuple(built.values()))
    if (workers or 1) > 1 and len(todo) > 1:
        with processes(workers or 1) as several:
            yield from _settled(planned, under_way, map_tasks(measure, take, several, prepare))
    else:
        yield from _settled(planned, under_way, map_tasks(measure, take, None, prepare))


def _settled(
    planned: NetworkDesign,
    under_way: dict[int, tuple[int, Sequence[int]]],
    outcomes: Iterator[tuple[NetworkTask, list[dict[str, Any]] | None]],
) -> Iterator[tuple[int, Sequence[int], list[dict[str, Any]]]]:
    for task, found in outcomes:
        number, cells = under_way.pop(id(task))
        by_label = {row.pop("backend"): row for row in found or ()}
        yield (
            number,
            cells,
            [by_label.get(str(cell)) or _without(planned, number, cell) for cell in cells],
        )


def _without(planned: NetworkDesign, number: int, cell: int) -> dict[str, Any]:
    """The row of a backend that could not be run."""
    error = planned.cells[cell].algorithm.error
    return {
        "status": ABSENT if error else FAILED,
        "log_z_kind": "",
        "remark": error or _DIED,
        **dict.fromkeys(NUMBERS, math.nan),
        "total_error": math.nan,
        "measurement": "",
        "variables": planned.sources[number].variables,
        "probabilities": 0,
        "reference": "",
        "round_seconds": [],
    }


def _frame(
    planned: NetworkDesign, rows: Sequence[tuple[NetworkSource, int, dict[str, Any] | None]]
) -> pd.DataFrame:
    """Rows of measurements, each with its dataset, network and cell."""
    made = []
    for source, position, row in rows:
        if row is None:
            continue
        algorithm = planned.cells[position].algorithm
        made.append(
            {
                "dataset": source.dataset,
                "network": source.name,
                "backend": planned.label(algorithm),
                "algorithm": algorithm.name,
                "setting": algorithm.setting,
                "seed": algorithm.seed,
                **row,
            }
        )
    return with_brackets(data_frame(made))


def _written(
    planned: NetworkDesign,
    folder: Path,
    frame: pd.DataFrame,
    code: Sequence[str],
    write_page: WritePage | None,
) -> NetworkResults:
    """What was found, written into the folder, all of it or none."""
    study = planned.loaded.study
    missing = len(planned.measured()) - len(frame)
    overall = summarise(frame, planned.base, study.seed)
    found = Artefacts(
        tables={
            "accuracy": accuracy_table(overall),
            "costs": cost_table(overall, planned.base),
            "networks": network_table(frame),
        },
        figures={
            "frontier": PaperFigure(
                frontier_figure(overall),
                overall,
                "Accuracy against time of backends. Above: mean errors of marginals, and their "
                "frontier. Below: log Z as reported, and certified brackets as lines; a hollow "
                "triangle is a certified bound on one side",
            )
        },
        remarks=tuple(_sentences(frame, missing)),
    ).with_points()
    plain = study.plain()
    origin = Origin(study.study, plain_hash(plain))
    with unfinished_folder(folder) as unfinished:
        files = list(write_artefacts(found, unfinished, origin, venue_named(study.venue)))
        rows = unfinished / ROWS
        write_parquet(rows, frame, origin.metadata())
        texts = {name: frame[name].map(lambda each: " ".join(map(repr, each))) for name in _PRECISE}
        write_csv(rows.with_suffix(".csv"), frame.assign(**texts))
        files += [rows, rows.with_suffix(".csv")]
        if write_page is not None:
            files.append(unfinished / REPORT)
            write_page(files[-1], study.study, found)
        document = manifest(
            *(study.study, plain, facts_of(planned.sources), (study.seed, *study.all_seeds), files),
            units=frame["status"].value_counts().to_dict(),
            units_missing=missing,
            code_of_units=list(code),
            remarks=list(found.remarks),
        )
        files.append(unfinished / MANIFEST)
        write_text(files[-1], manifest_text(document))
        publish(files, folder)
    failed = bool((frame["status"] == FAILED).any())
    return NetworkResults(found, frame, failed, tuple(folder / file.name for file in files))


def _sentences(frame: pd.DataFrame, missing: int) -> Iterator[str]:
    """What was measured, what is missing, and what a reader must know."""
    counts = frame["status"].value_counts()
    n_networks = len(frame.drop_duplicates(["dataset", "network"]))
    answered = len(frame) - sum(int(counts.get(status, 0)) for status in WITHOUT_ANSWER)
    yield (
        f"{counted(n_networks, 'network')}, {counted(frame['backend'].nunique(), 'backend')}: "
        f"{answered:,} of {counted(len(frame), 'measurement')} answered, "
        f"{int(counts.get(REFUSED, 0)):,} refused"
    )
    if missing:
        yield f"{counted(missing, 'measurement')} not made yet: --resume goes on with them"
    absent = frame[frame["status"] == ABSENT].drop_duplicates("backend")
    for backend, why in zip(absent["backend"], absent["remark"], strict=True):
        yield f"{backend} is absent: {why}."
    yield from remarks(frame)
