"""Runner of a study's units, in any processes; finished units are never lost."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.columns.cell_names import FAILED, UNANSWERED
from experiments.parallel_map import Processes, dask_cluster, map_in_order, map_tasks, processes
from experiments.study.cell_choice import select
from experiments.study.cells import StudyAlgorithm, StudyCell
from experiments.study.config import Study, computed_part
from experiments.study.data import StudyData, load_data
from experiments.study.design import algorithms, cells
from experiments.study.outputs import Results, WritePage, write_results
from experiments.study.parts import (
    PRIORS,
    SELECTIONS,
    TEXTS,
    FinishedUnits,
    OpenRun,
    RunPlan,
    open_run,
    read_finished,
)
from experiments.study.prepared.learned_priors import (
    CrossFittedPriors,
    PriorRequest,
    fit_all,
    prior_requests,
)
from experiments.study.prepared.selections import SelectionSolver, select_all, selection_solvers
from experiments.study.prepared.text_models import (
    TextAnswers,
    TextModel,
    TextMonitor,
    TextRequest,
    ask_texts,
    check_texts,
    content_hashes,
    open_models,
    probe_request,
    probe_texts,
    text_models,
    text_request_of,
    uses,
)
from experiments.study.reading import LoadedStudy
from experiments.study.units import (
    Task,
    TaskQueue,
    TimedAnswer,
    UnitResult,
    decode,
    encode,
    run_task,
    warm_up_units,
)
from factormodels.extraction.language_model.accounting import Ledger
from inference import Backend

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

_TRIAL_SECONDS = 2.0
_PAYS_SECONDS = 10.0
"""Seconds of work from which starting processes, which takes seconds itself, pays off."""


@dataclass(frozen=True)
class StudyDesign:
    """A study with everything needed to run it.

    Attributes:
        study: the study.
        algorithms: its algorithms, built but not warmed up.
        cells: its cells.
        data: its datasets.
        prior_requests: the priors to learn.
        selection_solvers: solvers of its selections.
        loaded: the study with its origin.
        models: its relation models and assessors, not yet loaded.
    """

    study: Study
    algorithms: tuple[StudyAlgorithm, ...]
    cells: tuple[StudyCell, ...]
    data: tuple[StudyData, ...]
    prior_requests: tuple[PriorRequest, ...]
    selection_solvers: tuple[SelectionSolver, ...]
    loaded: LoadedStudy
    models: tuple[TextModel, ...]

    @property
    def sizes(self) -> list[int]:
        """Number of responses of every cell's dataset."""
        by_name = {dataset.name: len(dataset.graphs) for dataset in self.data}
        return [by_name[cell.dataset] for cell in self.cells]

    @property
    def backends(self) -> tuple[Backend, ...]:
        """The backends that can be run."""
        return tuple(
            algorithm.backend for algorithm in self.algorithms if algorithm.backend is not None
        )

    def plan(self) -> RunPlan:
        """Plan of its run."""
        return RunPlan(
            study=computed_part(self.study),
            # Include defaults, so that a changed default changes the plan.
            cells=[{**cell.key(), "setting": cell.algorithm.setting} for cell in self.cells],
            data={dataset.name: dataset.sha256 for dataset in self.data},
            models={model.identity: dict(model.facts) for model in self.models},
        )

    def text_requests(self, cells: Iterable[int], done: Sequence[np.ndarray]) -> list[TextRequest]:
        """Requests to text models before the unfinished units of some cells.

        Args:
            cells: positions of the cells.
            done: per cell, bool (n_responses,), True for finished units.
        """
        return [
            # `text_request_of` names no response; fill in each open one.
            request._replace(response=response)
            for cell in cells
            if (request := text_request_of(self.cells[cell])) is not None
            for response in np.flatnonzero(~done[cell]).tolist()
        ]


@dataclass(frozen=True)
class UnitFailure:
    """A unit that failed.

    Attributes:
        cell: its cell.
        response: id of its response.
        error: the reason.
    """

    cell: StudyCell
    response: str
    error: str


@dataclass(frozen=True)
class Progress:
    """Progress of some units.

    Attributes:
        n_units: number of units.
        failures: failed units, without units whose library is not installed.
    """

    n_units: int
    failures: tuple[UnitFailure, ...]


Monitor = Callable[[int, int], AbstractContextManager[Callable[[Progress], None]]]
"""Function of (units to run, kept units) that returns a context manager; its function is called as
units finish."""


def design(loaded: LoadedStudy, workers: Processes | None = None) -> StudyDesign:
    """Design a study.

    Args:
        loaded: the study.
        workers: processes that read large data; None for this process.

    Raises:
        InputError: for an unknown or invalid setting of a backend, or invalid data.
        MissingDependencyError: if a library for learning or selection is not installed.
    """
    chosen = algorithms(loaded)
    all_cells = cells(loaded.study, chosen)
    data = load_data(loaded, None if workers is None else partial(map_in_order, workers=workers))
    asked, models = prior_requests(loaded, all_cells, data), text_models(loaded)
    check_texts(loaded, models, data)
    return StudyDesign(
        loaded.study, chosen, all_cells, data, asked, selection_solvers(loaded), loaded, models
    )


def n_finished(folder: Path, planned: StudyDesign) -> list[int]:
    """Number of finished units of each cell in a folder.

    Raises:
        InputError: if it holds another run.
    """
    counts: list[int] = read_finished(folder, planned.plan(), planned.sizes).counts.tolist()
    return counts


def run_study(
    planned: StudyDesign,
    folder: Path,
    *,
    workers: int | Processes | None = None,
    dask: str | None = None,
    chosen: Mapping[str, Sequence[str]] = MappingProxyType({}),
    resume: bool = False,
    overwrite: bool = False,
    retry_failed: bool = False,
    monitor: Monitor | None = None,
    text_monitor: TextMonitor | None = None,
    ledger: Ledger | None = None,
    notice: Callable[[str], None] = logger.info,
    write_page: WritePage | None = None,
) -> tuple[Results, FinishedUnits]:
    """Run the units of a study and write its results; finished units are never lost.

    Args:
        planned: the study.
        folder: the folder of the results.
        workers: number of processes, or the workers passed to `design`; 1 for this process; None
            for this process first, then one per processor if the run is long.
        dask: address of a Dask scheduler to use instead.
        chosen: names of the cells to run by dimension, as for `select`.
        resume: continue with the units in the folder.
        overwrite: discard any run in the folder.
        retry_failed: with `resume`, repeat failed units.
        monitor: shows the progress.
        text_monitor: shows the progress of text models, which are asked first.
        ledger: ledger that counts the answers of language models.
        notice: called with a description of each step before the units.
        write_page: writes the page of the run, if the study has one; None for no page.

    Raises:
        InputError: if the folder has results that may not be discarded, a text model cannot be
            asked, priors cannot be learned from the data, or the rows cannot be scored.
        WorkerError: if worker processes cannot run the units.
    """
    wanted = select(planned.cells, chosen)
    sizes = planned.sizes
    with open_run(folder, planned.plan(), sizes, resume=resume, overwrite=overwrite) as run:
        # Failed units are hidden, not erased: they stay until a new result replaces them.
        done = _done(planned, run.finished, wanted if retry_failed else ())
        # The order matters: text models provide relations, priors are fitted to them, and units
        # need both.
        answers = _ask(
            planned,
            planned.text_requests(wanted, done),
            run,
            retry_failed,
            text_monitor or _unwatched,
            ledger or Ledger(),
        )
        data = answers.related(planned.data)
        fits = _learned(planned, data, wanted, run, retry_failed, notice)
        judging = [cell for cell in wanted if planned.cells[cell].algorithm.assessor]
        # An assessor's verdicts are its posteriors, so its units need no inference.
        judged = [
            answers.unit(cell, request)
            for cell in judging
            for request in planned.text_requests([cell], done)
        ]
        inferring = [cell for cell in wanted if cell not in set(judging)]
        queue = TaskQueue(data, planned.cells, inferring, done, fits)
        watched = (monitor or _unwatched)(
            queue.left + len(judged), sum(int(of_cell.sum()) for of_cell in done)
        )
        with watched as report:
            if judged:
                _keep(planned, encode(judged), run, report)
            if queue.left:
                _run_units(planned, queue, _outcomes(planned, queue, workers, dask), run, report)
        # Read units back from the store, so that uninterrupted and resumed runs write the same
        # results.
        finished = read_finished(folder, planned.plan(), sizes)
        # Use the original data, because selections use recorded relations, not new ones.
        selected = select_all(
            planned.selection_solvers, planned.data, run.store.values(SELECTIONS), notice=notice
        )
        results = write_results(
            planned.study,
            data,
            planned.cells,
            finished,
            run.code,
            folder,
            fits=fits,
            selected=selected,
            texts=uses(planned.models, answers, planned.data),
            relations=content_hashes(answers),
            write_page=write_page,
        )
    return results, finished


def _learned(
    planned: StudyDesign,
    data: Sequence[StudyData],
    wanted: Sequence[int],
    run: OpenRun,
    again: bool,
    notice: Callable[[str], None],
) -> tuple[CrossFittedPriors, ...]:
    """Learned priors of some cells, and of all cells with finished units."""
    # Include cells with finished units even if they are not requested now: priors.csv must list the
    # fits of every row.
    places = set(np.flatnonzero(run.finished.counts).tolist())
    views = [(cell.dataset, cell.view) for cell in planned.cells]
    finished = {views[number] for number in places}
    needed = finished | {views[number] for number in wanted}
    asked = [
        request
        for request in planned.prior_requests
        if any(request.matches(*view) for view in needed)
    ]
    if not asked:
        return ()
    return fit_all(
        asked,
        data,
        planned.study.seed,
        run.store.values(PRIORS),
        finished=finished,
        again=again,
        notice=notice,
    )


def bounded_of(planned: StudyDesign, finished: FinishedUnits) -> dict[str, int]:
    """Number of units that `auto` answered with bounds and estimates, by algorithm and dataset."""
    counts: dict[str, int] = {}
    for number, cell in enumerate(planned.cells):
        if cell.algorithm.name == "auto":
            answers = finished.of_cell(number)["answered_by"].to_pylist()
            if count := sum(by not in (None, "exact") for by in answers):
                where = f"{cell.algorithm.title} on {cell.dataset}"
                counts[where] = counts.get(where, 0) + count
    return counts


@contextmanager
def _unwatched(*_: int) -> Iterator[Callable[..., None]]:
    yield lambda *_: None


def _ask(
    planned: StudyDesign,
    requests: Sequence[TextRequest],
    run: OpenRun,
    again: bool,
    monitor: TextMonitor,
    ledger: Ledger,
) -> TextAnswers:
    """Ask text models for missing answers, and for failed ones if `again`."""
    if not planned.models:
        return TextAnswers()
    kept = run.store.values(TEXTS)
    answers = TextAnswers.of(kept.items())
    left = [request for request in requests if not answers.has(request, again=again)]
    # Loading a model may read weights or require a key, so load only models with open questions.
    needed = {(request.key, request.title) for request in left}
    models = [model for model in planned.models if (model.key, model.title) in needed]
    if models:
        opened = open_models(planned.loaded, models, ledger)
        unprobed = [
            each for each in opened if not answers.has(probe_request(each.model), again=True)
        ]
        for request, answer in probe_texts(unprobed):
            answers.keep(request, answer, kept)
        # Cells that share relations need the same answers; request each once.
        with monitor(len(set(left))) as report:
            for request, answer in ask_texts(left, planned.data, opened):
                answers.keep(request, answer, kept)
                report()
    answers.keep_means(planned.models, planned.data, kept)
    return answers


def _run_units(
    planned: StudyDesign,
    queue: TaskQueue,
    outcomes: Generator[tuple[Task, TimedAnswer | None]],
    run: OpenRun,
    report: Callable[[Progress], None],
) -> None:
    """Run the queue's units, and keep each result as it arrives."""
    # On an error or interrupt, the generator must clean up at once and end the worker processes.
    with closing(outcomes):
        for task, answer in outcomes:
            if answer is None:
                # Its units are back in the queue, to be run one at a time.
                if not queue.died(task):
                    continue
                # A task fails only if it consists of a single unit.
                lost = UnitResult(task.cells[0][0], task.responses[0], FAILED, error=_DIED)
                units = encode([lost])
            else:
                queue.settle(task, answer)
                units = answer.units
            _keep(planned, units, run, report)


def _keep(
    planned: StudyDesign, units: bytes, run: OpenRun, report: Callable[[Progress], None]
) -> None:
    """Keep encoded units, and report them to the watcher."""
    table = decode(units)
    run.keep(table)
    report(Progress(table.num_rows, tuple(failures_of(planned, [table], (FAILED,)))))


_DIED = (
    "the process that ran it ended twice without an answer: it was killed, for example for lack "
    "of memory, or crashed"
)


def _outcomes(
    planned: StudyDesign, queue: TaskQueue, workers: int | Processes | None, dask: str | None
) -> Generator[tuple[Task, TimedAnswer | None]]:
    """Run tasks on Dask, in processes, in this process, or in this process first and then in
    processes."""
    tasks = partial(
        map_tasks, run_task, queue.take, prepare=partial(warm_up_units, planned.backends)
    )
    if dask is not None:
        with dask_cluster(dask, "go on with --resume") as cluster:
            yield from tasks(cluster)
        return
    if isinstance(workers, Processes):
        yield from tasks(workers)
        return
    # Not os.cpu_count(): a container or batch job may have fewer processors than the machine.
    processors = len(os.sched_getaffinity(0))
    if workers is not None or processors == 1:
        count = workers or 1
    else:
        # Use the first seconds of work to estimate the rest: many studies finish before a process
        # would have started.
        start, total = time.monotonic(), queue.left
        for outcome in tasks():
            yield outcome
            spent, done = time.monotonic() - start, max(1, total - queue.left)
            if spent > _TRIAL_SECONDS and queue.left / done * spent > _PAYS_SECONDS:
                break
        count = processors
    if count == 1:
        yield from tasks()
    elif queue.left:
        with processes(count) as several:
            yield from tasks(several)


def _done(
    planned: StudyDesign, finished: FinishedUnits, again: Sequence[int]
) -> list[NDArray[np.bool_]]:
    """Finished units per cell, bool (n_responses,); failed units of some cells count as open."""
    done = [np.zeros(size, dtype=np.bool_) for size in planned.sizes]
    for cell in np.flatnonzero(finished.counts).tolist():
        responses = finished.responses(cell)
        if cell in again:
            statuses = finished.of_cell(cell)["status"].to_pylist()
            responses = responses[~np.isin(statuses, UNANSWERED)]
        done[cell][responses] = True
    return done


def failures_of(
    planned: StudyDesign, tables: Iterable[pa.Table], ended: Sequence[str] = UNANSWERED
) -> list[UnitFailure]:
    """The failed units of some tables, or units with other given statuses, in order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    graphs: Mapping[str, StudyData] = {dataset.name: dataset for dataset in planned.data}
    result = []
    for table in tables:
        # The usual case, which copies no rows.
        if table["error"].null_count == table.num_rows:
            continue
        failed = table.filter(pc.is_in(table["status"], pa.array(ended)))
        columns = (failed[name].to_pylist() for name in ("cell", "response", "error"))
        for number, response, error in zip(*columns, strict=True):
            cell = planned.cells[number]
            result.append(UnitFailure(cell, graphs[cell.dataset].graphs[response].id, error))
    return result
