"""Run of a study of networks, which keeps the measurements of each finished network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from experiments.networks.design import Measurement, NetworkDesign
from experiments.networks.maxima import measure_maxima
from experiments.networks.measure import ABSENT, FAILED, NUMBERS, Clocking, NetworkTask, measure
from experiments.networks.memory import older_objects_kept
from experiments.networks.output import NetworkResults, WritePage, write_networks
from experiments.parallel_map import map_tasks, processes
from experiments.progress import watcher
from experiments.study.cell_choice import select
from experiments.study.parts import NETWORKS, open_run
from experiments.study.units import warm_up_units
from inference import Backend

_DIED = "the process that measured it ended without an answer, for example for lack of memory"


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
    """Measure the backends of a study on its networks, and write the results.

    Args:
        planned: the study.
        folder: the folder of the results.
        workers: number of processes; None or 1 for this process only.
        chosen: names of the cells to run by dimension, as for `select`.
        resume: continue with the measurements in the folder.
        overwrite: discard any run in the folder.
        retry_failed: with `resume`, repeat failed measurements.
        write_page: function that writes the page; None for no page.

    Raises:
        InputError: if the folder has results that may not be discarded, or cannot be written.
        WorkerError: if processes cannot run.
    """
    wanted = set(select(planned.cells, chosen))
    every = planned.measurements()
    opened = open_run(
        *(folder, planned.plan(), []),
        resume=resume,
        overwrite=overwrite,
        n_measurements=len(every),
    )
    with opened as run:
        kept = run.store.values(NETWORKS)
        rows = dict(kept.items())
        todo: dict[int, list[Measurement]] = {}
        for each in every:
            # Searches for the most probable states are not cells and cannot be chosen by name.
            asked = not chosen if isinstance(each.what, str) else each.what in wanted
            before = rows.get(each.key)
            if asked and (before is None or (retry_failed and before["status"] == FAILED)):
                todo.setdefault(each.network, []).append(each)
        with watcher().steps("networks", len(todo)) as step:
            for measurement_rows in _measured(planned, todo, workers):
                for key, row in measurement_rows.items():
                    kept.put(key, row)
                step()
        return write_networks(planned, folder, dict(kept.items()), run.code, write_page)


def measure_network(task: NetworkTask) -> list[dict[str, Any]]:
    """The rows of all measurements of a network."""
    with older_objects_kept():
        return [*measure(task), *measure_maxima(task)]


def _measured(
    planned: NetworkDesign, todo: Mapping[int, Sequence[Measurement]], workers: int | None
) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield the rows of each network's measurements by key."""
    left = iter(todo.values())
    under_way: dict[int, Sequence[Measurement]] = {}

    def take() -> NetworkTask | None:
        measurements = next(left, None)
        if measurements is None:
            return None
        task = _task(planned, measurements)
        under_way[id(task)] = measurements
        return task

    backends = [
        backend
        for measurements in todo.values()
        for each in measurements
        if (backend := _backend(planned, each)) is not None
    ]
    built = {id(each): each for each in (*backends, planned.judge)}
    # Compilation in the first call must not count as the first network's time.
    prepare = partial(warm_up_units, tuple(built.values()))
    several = (workers or 1) > 1 and len(todo) > 1
    with processes(workers or 1) if several else nullcontext() as pool:
        for task, rows in map_tasks(measure_network, take, pool, prepare):
            by_key = {row.pop("backend"): row for row in rows or ()}
            yield {
                each.key: by_key.get(each.key) or _without(planned, each)
                for each in under_way.pop(id(task))
            }


def _task(planned: NetworkDesign, measurements: Sequence[Measurement]) -> NetworkTask:
    study = planned.loaded.study
    return NetworkTask(
        planned.sources[measurements[0].network].load(),
        tuple(
            (each.key, backend)
            for each in measurements
            if (backend := _backend(planned, each)) is not None
        ),
        tuple((each.key, each.what) for each in measurements if isinstance(each.what, str)),
        planned.judge,
        study.search_seconds,
        Clocking(study.rounds, study.budget, study.seed),
    )


def _backend(planned: NetworkDesign, measurement: Measurement) -> Backend | None:
    """The measured backend; None if its library is absent, or for a search."""
    what = measurement.what
    return None if isinstance(what, str) else planned.cells[what].algorithm.backend


def _without(planned: NetworkDesign, measurement: Measurement) -> dict[str, Any]:
    """The row of an impossible measurement."""
    what = measurement.what
    error = "" if isinstance(what, str) else planned.cells[what].algorithm.error
    return {
        "status": ABSENT if error else FAILED,
        "log_z_kind": "",
        "remark": error or _DIED,
        **dict.fromkeys(NUMBERS, math.nan),
        "measurement": "",
        "variables": planned.sources[measurement.network].variables,
        "probabilities": 0,
        "reference": "",
        "round_seconds": [],
    }
