"""What the runner costs beside inference: a study of many small graphs, timed from end to end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from experiments.run.runner import Execution, design, run_study
from experiments.run.workers import EarlyWorkers
from experiments.study.config import BackendChoice, DatasetChoice, Study
from experiments.study.reading import LoadedStudy


@dataclass(frozen=True)
class RunnerCost:
    """The cost of a run.

    Attributes:
        n_units: number of units.
        workers: number of processes.
        seconds: from the study to the last file, the making of the data included.
        inference_seconds: of all units together, as their backends report it.
        overhead: seconds per unit that the run took beyond inference shared by its processes.
    """

    n_units: int
    workers: int
    seconds: float
    inference_seconds: float
    overhead: float


def small_graphs(n_responses: int) -> Study:
    """A study of responses with three to six atoms, under three backends."""
    return Study(
        study="small-graphs",
        datasets=(
            DatasetChoice(
                name="synthetic",
                synthetic={
                    "n_responses": n_responses,
                    "n_atoms": [3, 6],
                    "contexts_per_atom": 2,
                    "density": 0.1,
                },
            ),
        ),
        backends=(
            BackendChoice("exact"),
            BackendChoice("lbp"),
            BackendChoice("lbp", settings={"damping": 0.5}),
        ),
        outputs=("latex", "markdown"),
    )


def measure_runner(folder: Path, n_responses: int = 10_000, workers: int = 2) -> RunnerCost:
    """What a study of many small graphs costs, its results written into a fresh folder.

    Args:
        folder: the folder of the results.
        n_responses: number of responses; three units each.
        workers: number of processes.

    Raises:
        InputError: if the folder holds another run, or part of this one.
    """
    start = time.perf_counter()
    with EarlyWorkers(workers) as early:
        planned = design(LoadedStudy(small_graphs(n_responses), Path(), "small-graphs"), early)
        _, finished = run_study(planned, folder, Execution(workers=workers), early=early)
    seconds = time.perf_counter() - start
    inference = float(finished.table["seconds"].to_numpy().sum())
    n_units = finished.table.num_rows
    # Processes infer side by side, so only their share of the inference passes on the clock.
    overhead = (seconds - inference / workers) / n_units
    return RunnerCost(n_units, workers, seconds, inference, overhead)
