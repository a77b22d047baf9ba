"""The runner: every unit of a study, each safe once it is finished, wherever it is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.agenda import Agenda
from experiments.assembly import Finished
from experiments.config import Study
from experiments.config_file import LoadedStudy
from experiments.design import Algorithm, Cell, algorithms, cells
from experiments.journal import Journal
from experiments.outputs import Results, write_results
from experiments.report.subject import Watch
from experiments.rows import FAILED
from experiments.run_folder import Plan, open_run, read_finished
from experiments.study_data import StudyData, load_data
from experiments.units import UnitResult, decode, encode
from experiments.warm_up import warm_up
from experiments.workers import (
    Outcomes,
    at_first_here,
    in_processes,
    in_this_process,
    on_dask,
)
from factormodels.errors import InputError, nearest
from inference import Backend

_ONLY = {
    "dataset": "dataset",
    "variant": "variant",
    "encoding": "encoding",
    "prior": "prior",
    "strength": "strength",
    "backend": "backend_label",
    "seed": "seed",
}
"""Keys of --only, and the column that each restricts."""


@dataclass(frozen=True)
class Design:
    """A study with everything that is needed to run it.

    Attributes:
        study: the study.
        algorithms: its algorithms, built and not yet warm.
        cells: its cells.
        data: its datasets.
    """

    study: Study
    algorithms: tuple[Algorithm, ...]
    cells: tuple[Cell, ...]
    data: tuple[StudyData, ...]

    @property
    def sizes(self) -> list[int]:
        """Number of responses of every cell's dataset."""
        by_name = {dataset.name: len(dataset.graphs) for dataset in self.data}
        return [by_name[cell.dataset] for cell in self.cells]

    @property
    def backends(self) -> tuple[Backend, ...]:
        """The backends that can be run."""
        return tuple(one.backend for one in self.algorithms if one.backend is not None)

    def plan(self) -> Plan:
        """Return what its run computes."""
        return Plan.of(self.study, self.cells, self.data)


@dataclass(frozen=True)
class Where:
    """Where the units are run.

    Attributes:
        workers: number of processes; 1: this one; None: this one, then as many as there are
            processors once that pays.
        dask: address of a Dask scheduler, in their place.
    """

    workers: int | None = None
    dask: str | None = None


@dataclass(frozen=True)
class Failure:
    """A unit that failed.

    Attributes:
        cell: its cell.
        response: id of its response.
        error: why.
    """

    cell: Cell
    response: str
    error: str


@dataclass(frozen=True)
class Progress:
    """What has become of some units.

    Attributes:
        n_units: how many.
        failures: those of them that failed.
    """

    n_units: int
    failures: tuple[Failure, ...]


Monitor = Callable[[int, int], AbstractContextManager[Callable[[Progress], None]]]
"""(units to be run, units kept) -> a context with what is to be called as units are finished."""


def design(loaded: LoadedStudy) -> Design:
    """Return the design of a study.

    Raises:
        InputError: for a setting that a backend does not have or take, or bad data.
    """
    chosen = algorithms(loaded)
    return Design(loaded.study, chosen, cells(loaded.study, chosen), load_data(loaded))


def select(chosen: Sequence[Cell], only: Iterable[str]) -> list[int]:
    """Return the positions of the cells that texts like "backend=exact,lbp" select.

    Of texts with one key any must hold, of different keys all.

    Raises:
        InputError: for an unknown key, or a value that no cell has; it names the nearest.
    """
    wanted: dict[str, set[str]] = {}
    for text in only:
        key, equals, values = text.partition("=")
        if not equals or key not in _ONLY:
            near = nearest(key, _ONLY)
            hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(_ONLY)}"
            raise InputError(f"--only {text!r}: it is no KEY=VALUE of a study's cells; {hint}")
        present = list(dict.fromkeys(_text(cell, key) for cell in chosen))
        # A whole value may hold commas: labels of backends do.
        for value in [values] if values in present else values.split(","):
            if value not in present:
                near = nearest(value, present)
                hint = f" (did you mean {near!r}?)" if near else ""
                raise InputError(
                    f"--only {text!r}: no cell has the {key} {value!r}{hint}; use some of "
                    f"{', '.join(present)}"
                )
            wanted.setdefault(key, set()).add(value)
    selected = [
        position
        for position, cell in enumerate(chosen)
        if all(_text(cell, key) in values for key, values in wanted.items())
    ]
    if not selected:
        raise InputError("--only: no cell has all that is asked for; ask for less")
    return selected


def n_finished(folder: Path, planned: Design) -> list[int]:
    """Return how many units of each cell a folder holds.

    Raises:
        InputError: if it holds another run.
    """
    finished = read_finished(folder, planned.plan(), planned.sizes)
    return [int(count) for count in np.diff(finished.starts)]


def run_study(
    planned: Design,
    folder: Path,
    where: Where,
    *,
    only: Iterable[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    monitor: Monitor | None = None,
    watch: Watch | None = None,
) -> tuple[Results, Finished]:
    """Run the units of a study and write its results; what is finished is never lost.

    Args:
        planned: the study.
        folder: the folder of the results.
        where: where the units are run.
        only: which cells, as `select` takes them.
        resume: go on with the units that the folder holds.
        overwrite: drop whatever run the folder holds.
        monitor: shows how far it is.
        watch: shows how far the report is.

    Raises:
        InputError: if the folder holds what may not be dropped, or the rows cannot be scored.
        WorkerError: if the processes that should run the units cannot.
    """
    wanted = select(planned.cells, only)
    sizes = planned.sizes
    with open_run(folder, planned.plan(), sizes, resume=resume, overwrite=overwrite) as run:
        done = _done(planned, run.finished)
        agenda = Agenda(planned.data, planned.cells, wanted, done)
        watched = (monitor or _unwatched)(agenda.left, run.finished.table.num_rows)
        with watched as report:
            if agenda.left:
                _run_units(planned, agenda, where, run.journal, report)
        finished = read_finished(folder, planned.plan(), sizes)
        results = write_results(
            planned.study, planned.data, planned.cells, finished, run.code, folder, watch
        )
    return results, finished


def failures_of(planned: Design, finished: Finished) -> list[Failure]:
    """Return the units that failed, in the order of the study."""
    import pyarrow.compute as pc

    failed = finished.table.filter(pc.equal(finished.table["status"], FAILED))
    return _failures(planned, failed)


@contextmanager
def _unwatched(*_: int) -> Iterator[Callable[[Progress], None]]:
    yield lambda _: None


def _run_units(
    planned: Design,
    agenda: Agenda,
    where: Where,
    journal: Journal,
    report: Callable[[Progress], None],
) -> None:
    with closing(_outcomes(planned, agenda, where)) as outcomes:
        for task, answer in outcomes:
            if answer is None:
                if not agenda.died(task):
                    continue
                lost = UnitResult(task.cells[0][0], task.responses[0], FAILED, error=_DIED)
                answer = encode([lost])
                batch = decode(answer)
            else:
                batch = decode(answer)
                units = (batch[name].to_pylist() for name in ("cell", "response"))
                agenda.settle(task, zip(*units, strict=True))
            journal.append(answer)
            report(Progress(batch.num_rows, tuple(_failures_in(planned, batch))))


_DIED = (
    "the process that ran it ended without an answer, twice: it was killed, as for want of "
    "memory, or crashed"
)


def _outcomes(planned: Design, agenda: Agenda, where: Where) -> Outcomes:
    backends = planned.backends
    if where.dask is not None:
        return on_dask(agenda.take, where.dask, backends)
    processors = len(os.sched_getaffinity(0))
    if where.workers is not None and where.workers > 1:
        return in_processes(agenda.take, where.workers, backends)
    # After that no unit's seconds hold the loading of a library or the compilation of a kernel.
    for backend in backends:
        warm_up(backend)
    if where.workers == 1 or processors == 1:
        return in_this_process(agenda.take)
    return at_first_here(agenda.take, lambda: agenda.left, processors, backends)


def _done(planned: Design, finished: Finished) -> list[np.ndarray]:
    """Return whether each unit is done, per dataset bool (n_cells, n_responses)."""
    done = [
        np.zeros((len(planned.cells), len(dataset.graphs)), dtype=np.bool_)
        for dataset in planned.data
    ]
    number = {dataset.name: position for position, dataset in enumerate(planned.data)}
    for position, cell in enumerate(planned.cells):
        done[number[cell.dataset]][position, finished.responses[finished.of_cell(position)]] = True
    return done


def _failures_in(planned: Design, batch: Any) -> list[Failure]:
    if batch["error"].null_count == batch.num_rows:
        return []
    return _failures(planned, batch.filter(batch["error"].is_valid()))


def _failures(planned: Design, table: Any) -> list[Failure]:
    graphs: Mapping[str, StudyData] = {dataset.name: dataset for dataset in planned.data}
    columns = (table[name].to_pylist() for name in ("cell", "response", "error"))
    result = []
    for number, response, error in zip(*columns, strict=True):
        cell = planned.cells[number]
        result.append(Failure(cell, graphs[cell.dataset].graphs[response].id, error))
    return result


def _text(cell: Cell, key: str) -> str:
    value = cell.key()[_ONLY[key]]
    return f"{value:g}" if isinstance(value, float) else str(value)
