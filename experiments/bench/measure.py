"""Measuring: every algorithm in a process of its own, all in turn on the same graphs.

What is measured: loading its libraries, building its model, a first call, and warm calls.
"""

from __future__ import annotations

import gc
import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.algorithms import BenchAlgorithm
from experiments.bench.answers import BenchAnswer
from experiments.bench.batches import union
from experiments.bench.families import Family
from experiments.bench.results import (
    ABSENT,
    FamilyResult,
    GraphResult,
    Measurement,
    errors,
    find_reference,
)
from experiments.run.processes import Child, ChildError, limit_memory, status_bytes
from factormodels.factor_graph import FactorGraph, digest

Report = Callable[[str], None]

LOAD_SECONDS = 300.0
"""Limit on loading a library and compiling what is compiled once."""

TURN_SECONDS = 0.05
"""A turn of a fast algorithm repeats its call until it has taken about so long."""

# Keeps a call of nanoseconds from looping on a bad guess of its time.
_MOST_CALLS = 1000


@dataclass(frozen=True)
class MeasurementPlan:
    """How much is measured.

    Attributes:
        rounds: most warm turns of every algorithm on a graph.
        budget: seconds of warm calls of an algorithm on a graph, beyond which it sits out.
        time_limit: seconds that building a model, and a first call, may take.
        memory_limit: bytes that an algorithm may take beyond its libraries; None: no limit.
        memory: whether memory is measured: every algorithm then gets a fresh process per graph.
        seed: seed of the order of turns.
    """

    rounds: int = 10
    budget: float = 10.0
    time_limit: float = 90.0
    memory_limit: int | None = None
    memory: bool = False
    seed: int = 0


class Processes:
    """The processes of algorithms, by name: started when asked for, ended with the block."""

    def __init__(self, plan: MeasurementPlan) -> None:
        self._plan = plan
        self._children: dict[str, Child] = {}

    def get(self, algorithm: BenchAlgorithm) -> tuple[Child, float | None]:
        """The process of an algorithm and, if it was started just now, seconds of loading.

        Raises:
            ChildError: if it cannot be loaded.
        """
        child = self._children.get(algorithm.name)
        if child is not None and child.alive:
            return child, None
        # Stored before it is loaded, so that `end` closes it even if loading fails.
        child = self._children[algorithm.name] = Child()
        seconds: float = child.call(_load, algorithm, limit=LOAD_SECONDS)
        # Set after loading: the limit is on what inference takes, not on the libraries.
        if self._plan.memory_limit is not None:
            child.call(limit_memory, self._plan.memory_limit)
        return child, seconds

    def end(self) -> None:
        """End all processes."""
        for child in self._children.values():
            child.close()
        self._children.clear()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def measure(
    family: Family,
    algorithms: Sequence[BenchAlgorithm],
    plan: MeasurementPlan,
    processes: Processes,
    *,
    n_instances: int | None = None,
    report: Report | None = None,
) -> FamilyResult:
    """Measure algorithms on the graphs of a family.

    On every graph each algorithm loads (once), builds its model, makes a first call, and then
    takes warm turns, in an order that is drawn anew for every round. An algorithm that is not
    installed, refuses, fails, takes too long or too much memory is recorded as such.

    Args:
        family: the graphs.
        algorithms: what is measured on them.
        plan: how much is measured.
        processes: the processes of algorithms, which serve one family after another.
        n_instances: most graphs; all if None.
        report: called with a line of progress before each step.
    """
    count = family.n_instances if n_instances is None else min(n_instances, family.n_instances)
    say = report or (lambda _: None)
    graphs = []
    for number in range(count):
        # A peak is of a process's whole life, so only a fresh one tells what this graph takes.
        if plan.memory:
            processes.end()
        label = f"{family.name}, {family.label(number)}"
        # Made here once and sent to every process, so that all see the very same graphs.
        instance = _Instance(tuple(family.graphs(number)), label)
        # All load, build and make a first call before any takes a warm turn, so that every
        # algorithm is at hand when turns alternate.
        firsts = {a.name: _first(instance, a, plan, processes, say) for a in algorithms}
        # Seeded by the label too: the order on a graph does not depend on which others are
        # measured. CRC-32, since Python's hash of a string changes from process to process.
        order = np.random.default_rng([plan.seed, zlib.crc32(label.encode())])
        say(f"{label}: warm turns")
        yardsticks = _turns(firsts, plan, order)
        answers = {name: one.answer for name, one in firsts.items() if one.answer is not None}
        # Only now: it may be the answer of one of the algorithms measured.
        reference = find_reference(answers, family.reference(number))
        graphs.append(
            GraphResult(
                label=family.label(number),
                digest=digest(instance.graphs),
                graphs=len(instance.graphs),
                variables=sum(graph.n_variables for graph in instance.graphs),
                factors=sum(graph.n_factors for graph in instance.graphs),
                reference="" if reference is None else reference.source,
                yardstick=tuple(yardsticks),
                measurements=tuple(
                    one.measurement(None if one.answer is None else errors(one.answer, reference))
                    for one in firsts.values()
                ),
            )
        )
    against = {a.name: a.against for a in algorithms if a.against}
    return FamilyResult(family.name, family.summary, against, tuple(graphs))


@dataclass(frozen=True)
class _Instance:
    graphs: tuple[FactorGraph, ...]
    label: str


@dataclass
class _Running:
    """An algorithm on a graph while it is being measured."""

    result: Measurement
    answer: BenchAnswer | None = None
    child: Child | None = None
    rounds: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def measurement(self, found: Mapping[str, float | None] | None) -> Measurement:
        changes: dict[str, Any] = dict(found or {})
        return replace(
            self.result,
            rounds=tuple(self.rounds),
            seconds=tuple(self.seconds),
            calls=tuple(self.calls),
            **changes,
        )


def _first(
    instance: _Instance,
    algorithm: BenchAlgorithm,
    plan: MeasurementPlan,
    processes: Processes,
    say: Report,
) -> _Running:
    """Load, build and call an algorithm once; what fails is recorded and takes no turns."""
    if algorithm.missing:
        remark = f"{', '.join(algorithm.missing)} is not installed"
        return _Running(Measurement(algorithm.name, ABSENT, remark))
    # Whatever was reached before a failure is recorded with it.
    loaded = built = None
    try:
        say(f"{instance.label}: {algorithm.name}")
        child, loaded = processes.get(algorithm)
        # A pipe carries the graphs over; their pickling is not timed.
        built = child.call(_build, algorithm.batch, instance.graphs, limit=plan.time_limit)
        # Some algorithms stop by themselves at their own limit and need a moment to say so.
        first: _FirstCall = child.call(_first_call, limit=plan.time_limit + algorithm.grace)
    except ChildError as error:
        failed = Measurement(
            algorithm.name,
            error.kind,
            error.reason,
            load_seconds=loaded,
            build_seconds=built,
        )
        return _Running(failed)
    answer = first.answer
    result = Measurement(
        algorithm=algorithm.name,
        status=answer.status,
        load_seconds=loaded,
        build_seconds=built,
        first_seconds=first.seconds,
        peak_bytes=first.peak_bytes if plan.memory else None,
        log_z=answer.log_z,
        log_z_kind=answer.log_z_kind,
        lower=answer.lower,
        upper=answer.upper,
        facts=dict(answer.facts),
    )
    return _Running(result, answer, child)


def _turns(
    running: Mapping[str, _Running], plan: MeasurementPlan, order: np.random.Generator
) -> list[float]:
    """Give every algorithm its turns and return the times of the yardstick."""
    # What a call of each is thought to take: at first the first call, then its last turn.
    expected = {
        name: one.result.first_seconds
        for name, one in running.items()
        if one.child is not None and one.result.first_seconds is not None
    }
    spent = dict.fromkeys(expected, 0.0)
    yardsticks = []
    for number in range(plan.rounds):
        # A first round for all: one warm call at least; then those that have time for one more.
        active = [
            name for name in expected if number == 0 or spent[name] + expected[name] <= plan.budget
        ]
        if not active:
            break
        # Once a round, to see a machine that slows down or is shared meanwhile.
        yardsticks.append(yardstick())
        # In a new order each round, so that no algorithm always runs after the same other one.
        for at in order.permutation(len(active)):
            name = active[at]
            one = running[name]
            # Such a call would not end within the limit that it is given.
            if one.child is None or expected[name] > plan.time_limit:
                continue
            start = time.perf_counter()
            try:
                seconds, calls = one.child.call(_turn, expected[name], limit=2 * plan.time_limit)
            except ChildError as error:
                # Its first call stands; only the warm ones are missing, and it takes no further
                # turns.
                one.result = replace(one.result, remark=f"warm: {error}")
                del expected[name]
                continue
            # The whole turn with its unmeasured call and the pipe: the budget is about waiting
            # time.
            spent[name] += time.perf_counter() - start
            expected[name] = seconds
            one.rounds.append(number)
            one.seconds.append(seconds)
            one.calls.append(calls)
    return yardsticks


def yardstick() -> float:
    """The seconds of a fixed piece of work: array arithmetic and interpreted steps.

    No commit changes it, so that two runs know how fast the machine was in each.
    """
    values = _yardstick_values()
    best = np.inf
    # The best of three, since anything else on the machine can only slow it down.
    for _ in range(3):
        start = time.perf_counter()
        total = 0.0
        for row in values:
            total += float(np.log(np.exp(row).sum()))
        best = min(best, time.perf_counter() - start)
    return float(best)


@cache
def _yardstick_values() -> Any:
    return np.random.default_rng(0).normal(size=(200, 500))


# What follows runs in the process of an algorithm; `kept` is what that keeps from call to call.


@dataclass(frozen=True)
class _FirstCall:
    """The first call of an algorithm on a graph.

    Attributes:
        seconds: what it took.
        answer: what it found.
        peak_bytes: largest memory of the process since it was loaded, beyond what it took then;
            None where the system does not tell. Meaningful in a process that ran nothing before.
    """

    seconds: float
    answer: BenchAnswer
    peak_bytes: int | None


def _load(kept: dict[str, Any], algorithm: BenchAlgorithm) -> float:
    """Load the libraries of an algorithm and return the seconds it took."""
    start = time.perf_counter()
    algorithm.load()
    seconds = time.perf_counter() - start
    # Later calls use it from here, so that it is pickled only once.
    kept["algorithm"] = algorithm
    gc.collect()
    with suppress(OSError):
        # Linux forgets the peak of a process that writes a 5 here.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    # Measured last, after the collection: what comes on top is the graph's.
    kept["resident"] = status_bytes("VmRSS")
    return seconds


def _build(kept: dict[str, Any], batch: bool, graphs: Sequence[FactorGraph]) -> float:
    """Make the algorithm's model of a graph and return the seconds it took.

    Args:
        batch: whether the algorithm takes several graphs; if not, they are put side by side.
        graphs: the graphs, or the one.
    """
    # What was prepared for the graph before goes first.
    kept.pop("prepared", None)
    gc.collect()
    # Outside the clock: making one graph of several is ours, not the algorithm's.
    model = graphs if batch else union(graphs)
    start = time.perf_counter()
    kept["prepared"] = kept["algorithm"].prepare(model)
    return time.perf_counter() - start


def _first_call(kept: dict[str, Any]) -> _FirstCall:
    """Run the algorithm once."""
    prepared = kept["prepared"]
    seconds, result = _timed(prepared.run)
    peak, resident = status_bytes("VmHWM"), kept["resident"]
    return _FirstCall(
        seconds=seconds,
        # Not timed: reading converts a library's own form into ours.
        answer=prepared.read(result),
        peak_bytes=None if peak is None or resident is None else max(peak - resident, 0),
    )


def _turn(kept: dict[str, Any], expected: float) -> tuple[float, int]:
    """Run the algorithm for a turn and return seconds per call and the number of calls.

    The processor's caches hold another algorithm's data at the beginning of a turn, which is no
    part of a warm call: a call that is fast enough is made once before it is timed.

    Args:
        expected: seconds that a call is known to take.
    """
    run = kept["prepared"].run
    # A call that is quick is repeated until the clock's resolution no longer matters.
    calls = min(max(math.ceil(TURN_SECONDS / max(expected, 1e-9)), 1), _MOST_CALLS)
    if calls > 1:
        run()
    gc.collect()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls, calls


def _timed(run: Any) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result
