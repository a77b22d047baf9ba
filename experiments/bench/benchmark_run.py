"""One run of the benchmark: from what was asked for to tables, plot and file."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from experiments.bench.algorithms import ALGORITHMS, BenchAlgorithm, parse_algorithms
from experiments.bench.families import PRESETS, RUNNER, Family, Preset, select
from experiments.bench.frontier import write_frontier
from experiments.bench.measure import MeasurementPlan, Processes, measure
from experiments.bench.results import FamilyResult
from experiments.bench.runner_cost import RunnerCost, measure_runner
from experiments.bench.solver import parse_solver
from experiments.bench.store import write_run
from experiments.results.manifest import code_version
from factormodels.errors import InputError
from factormodels.io.files import results_folder
from inference.exact.backend import Exact


@dataclass(frozen=True)
class BenchRequest:
    """What was asked for.

    Attributes:
        what: names of families, UAI files and folders, and "runner"; those of the preset if empty.
        preset: name of the preset.
        algorithms: texts that name algorithms; those of each family if empty.
        solvers: descriptions of external solvers.
        rounds, n_instances, time_limit: instead of the preset's.
        memory_limit: bytes that an algorithm may take; None: three quarters of what is available.
        memory: whether memory is measured.
        seed: seed of the order of turns.
    """

    what: tuple[str, ...] = ()
    preset: str = "standard"
    algorithms: tuple[str, ...] = ()
    solvers: tuple[str, ...] = ()
    rounds: int | None = None
    n_instances: int | None = None
    time_limit: float | None = None
    memory_limit: int | None = None
    memory: bool = False
    seed: int = 0


class Monitor(Protocol):
    """What is told of a benchmark as it goes on."""

    def remark(self, line: str) -> None:
        """Take a line on what is being measured."""

    def family(self, result: FamilyResult) -> None:
        """Take the results of a family."""

    def families_done(self) -> None:
        """Be told that no further family comes after those that there were."""

    def runner(self, cost: RunnerCost) -> None:
        """Take what a study of many small graphs cost."""


def run_session(request: BenchRequest, folder: Path, monitor: Monitor) -> list[Path]:
    """Measure, tell of each family as it is done, write results and return their paths.

    Raises:
        InputError: for an unknown name, a file that cannot be read, or a folder that cannot be
            written.
    """
    preset = _preset(request)
    named = tuple(name for name in request.what if name != RUNNER)
    families = select(named if request.what else preset.families)
    plan = MeasurementPlan(
        rounds=preset.rounds,
        budget=preset.budget,
        time_limit=preset.time_limit,
        memory_limit=request.memory_limit or Exact().allowed_bytes(),
        memory=request.memory,
        seed=request.seed,
    )
    # Everything that may be refused is looked up before the first measurement.
    solvers = [parse_solver(text, plan.time_limit) for text in request.solvers]
    chosen = parse_algorithms(request.algorithms)
    lists = [_algorithms(family, chosen, solvers, preset.slow) for family in families]
    results: list[FamilyResult] = []
    with results_folder(folder), Processes(plan) as processes:
        for family, algorithms in zip(families, lists, strict=True):
            # Files were named one by one: a preset does not leave some of them out.
            most = family.n_instances if family.labels else preset.n_instances
            most = most if request.n_instances is None else request.n_instances
            results.append(
                measure(
                    family,
                    algorithms,
                    plan,
                    processes,
                    n_instances=most,
                    report=monitor.remark,
                )
            )
            monitor.family(results[-1])
        if results:
            monitor.families_done()
        # The runner starts processes of its own, so it comes when nothing else is measured.
        runner = None
        if not request.what or RUNNER in request.what:
            monitor.remark(f"{RUNNER}: {preset.runner:,} responses")
            runner = _measured_runner(preset.runner)
            monitor.runner(runner)
        settings = {"request": asdict(request), "preset": asdict(preset), "plan": asdict(plan)}
        path = write_run(results, settings, folder, runner)
        return [path, *write_frontier(results, folder, {"version": code_version()})]


def _measured_runner(n_responses: int) -> RunnerCost:
    with tempfile.TemporaryDirectory() as place:
        return measure_runner(Path(place) / "results", n_responses)


def _preset(request: BenchRequest) -> Preset:
    if request.preset not in PRESETS:
        raise InputError(
            f"the preset {request.preset!r} is unknown; use one of {', '.join(PRESETS)}"
        )
    preset = PRESETS[request.preset]
    return replace(
        preset,
        rounds=preset.rounds if request.rounds is None else request.rounds,
        time_limit=preset.time_limit if request.time_limit is None else request.time_limit,
    )


def _algorithms(
    family: Family,
    chosen: tuple[BenchAlgorithm, ...],
    solvers: list[BenchAlgorithm],
    slow: bool,
) -> tuple[BenchAlgorithm, ...]:
    own = (*family.algorithms, *(family.slow if slow else ()))
    return (*(chosen or tuple(ALGORITHMS[name] for name in own)), *solvers)
