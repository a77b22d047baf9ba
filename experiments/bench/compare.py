"""Two stored runs against each other: what became faster or slower beyond noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.bench.ratios import TimeRatio, unpaired_ratio
from experiments.bench.results import BOUNDS, FamilyResult, GraphResult, Measurement
from experiments.bench.store import StoredRun
from experiments.findings.text import duration, small

LEVEL = 0.95
"""Coverage of all intervals of a comparison together."""

LEAST_CHANGE = 1.1
"""A ratio nearer to 1 is no change: two runs of the same code differ by as much, because the
layout of memory and the temperature of a processor are drawn anew for each."""

ACCURACY_FACTOR = 10.0
ACCURACY_FLOOR = 1e-9
"""An error has changed if it is ten times another and no rounding error."""


@dataclass(frozen=True)
class Change:
    """One algorithm on one family in two runs.

    Attributes:
        family: name of the family.
        algorithm: name of the algorithm.
        old_seconds, new_seconds: median seconds of a warm call, a geometric mean over graphs.
        ratio: of old to new time, each relative to the yardstick of its run: above 1 is faster.
        verdict: "faster", "slower", "same" or "unknown" (one round alone).
    """

    family: str
    algorithm: str
    old_seconds: float
    new_seconds: float
    ratio: TimeRatio
    verdict: str


@dataclass(frozen=True)
class BenchComparison:
    """Two runs.

    Attributes:
        changes: what was timed in both.
        answers: lines on answers that changed: status and accuracy.
        left_out: lines on what could not be compared.
        runner: a line on the runner's overhead per unit, where both measured it.
        speed: time of the yardstick in the old run divided by that in the new one.
        packages: packages whose versions differ, with both.
    """

    changes: tuple[Change, ...]
    answers: tuple[str, ...]
    left_out: tuple[str, ...]
    speed: float
    packages: dict[str, tuple[str, str]]
    runner: str = ""


def compare(old: StoredRun, new: StoredRun, seed: int = 0) -> BenchComparison:
    """How two runs differ on the graphs and algorithms that they share.

    Times are taken relative to the yardstick, a fixed piece of work that was timed in every
    round, so that a machine that was slower throughout shows no change. Intervals hold together,
    not each alone (Bonferroni), so that of many comparisons none is called a change by chance.

    Args:
        old: the run before.
        new: the run after.
        seed: seed of the bootstrap over rounds.
    """
    left_out: list[str] = []
    answers: list[str] = []
    timed: list[tuple[FamilyResult, str, list[tuple[GraphResult, GraphResult]]]] = []
    for before in old.families:
        after = next((family for family in new.families if family.name == before.name), None)
        if after is None:
            left_out.append(f"{before.name}: not in the new run")
            continue
        shared = _same_graphs(before, after, left_out)
        for name in before.algorithms:
            answers += _answer_changes(before.name, name, shared)
            both = [
                (first, second)
                for first, second in shared
                if _timed(first, name) and _timed(second, name)
            ]
            if both:
                timed.append((before, name, both))
    # The more comparisons, the wider each interval (Bonferroni).
    level = 1.0 - (1.0 - LEVEL) / max(len(timed), 1)
    changes = tuple(_change(family, name, both, level, seed) for family, name, both in timed)
    return BenchComparison(
        changes=changes,
        answers=tuple(answers),
        left_out=tuple(left_out),
        speed=_speed(old) / _speed(new),
        packages=_package_changes(old, new),
        runner=_runner_change(old, new),
    )


def _same_graphs(
    before: FamilyResult, after: FamilyResult, left_out: list[str]
) -> list[tuple[GraphResult, GraphResult]]:
    """The pairs of graphs that both runs measured; the others are noted in `left_out`."""
    by_label = {graph.label: graph for graph in after.graphs}
    shared = []
    for graph in before.graphs:
        other = by_label.get(graph.label)
        if other is None:
            left_out.append(f"{before.name}, {graph.label}: not in the new run")
        # Labels name seeds; a changed generator draws another graph from the same seed.
        elif other.digest != graph.digest:
            left_out.append(f"{before.name}, {graph.label}: another graph in the new run")
        else:
            shared.append((graph, other))
    return shared


def _timed(graph: GraphResult, name: str) -> bool:
    one = graph.of(name)
    return one is not None and len(one.seconds) > 0


def _relative(graph: GraphResult, name: str) -> list[float]:
    one = graph.of(name)
    if one is None:
        return []
    # In units of the yardstick that was timed in the same rounds.
    return [seconds / float(np.median(graph.yardstick)) for seconds in one.seconds]


def _change(
    family: FamilyResult,
    name: str,
    both: Sequence[tuple[GraphResult, GraphResult]],
    level: float,
    seed: int,
) -> Change:
    """How far the time of one algorithm on one family moved, with a verdict."""
    ratio = unpaired_ratio(
        [_relative(first, name) for first, _ in both],
        [_relative(second, name) for _, second in both],
        level=level,
        seed=seed,
    )
    if math.isnan(ratio.lower):
        verdict = "unknown"
    # Both are asked for: beyond chance, and large enough to matter.
    elif ratio.lower > 1.0 and ratio.value > LEAST_CHANGE:
        verdict = "faster"
    elif ratio.upper < 1.0 and ratio.value < 1.0 / LEAST_CHANGE:
        verdict = "slower"
    else:
        verdict = "same"
    old, new = (
        float(np.exp(np.mean([np.log(_warm(pair[side], name)) for pair in both])))
        for side in (0, 1)
    )
    return Change(family.name, name, old, new, ratio, verdict)


def _warm(graph: GraphResult, name: str) -> float:
    one = graph.of(name)
    return math.nan if one is None or one.warm is None else one.warm


def _answer_changes(
    family: str, name: str, shared: Sequence[tuple[GraphResult, GraphResult]]
) -> list[str]:
    """Lines on answers whose status or accuracy changed."""
    lines = []
    for graph, other in shared:
        first, second = graph.of(name), other.of(name)
        if first is None or second is None:
            if second is None:
                lines.append(f"{family}, {graph.label}: {name} is not in the new run")
            continue
        where = f"{family}, {graph.label}: {name}"
        if first.status != second.status:
            lines.append(f"{where} was {first.status} and is {second.status}")
        lines += [
            f"{where}: {what} was {small(before)} and is {small(after)}"
            for what, before, after in _accuracies(first, second)
            if _differ(before, after)
        ]
    return lines


def _accuracies(
    first: Measurement, second: Measurement
) -> list[tuple[str, float | None, float | None]]:
    rows = [
        ("max |Δp|", first.max_error, second.max_error),
        ("the gap of its bounds", first.gap, second.gap),
    ]
    # A bound and an estimate err in different senses.
    if first.log_z_kind == second.log_z_kind:
        kind = "bound" if first.log_z_kind in BOUNDS else "estimate"
        rows.append((f"the error of its {kind} of log Z", first.log_z_error, second.log_z_error))
    return rows


def _differ(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return False
    # Better is reported like worse: both say that the algorithm computes something else.
    sizes = sorted((abs(before), abs(after)))
    return sizes[1] > ACCURACY_FLOOR and sizes[1] > ACCURACY_FACTOR * sizes[0]


def _runner_change(old: StoredRun, new: StoredRun) -> str:
    if old.runner is None or new.runner is None:
        return ""
    if old.runner.n_units != new.runner.n_units:
        return "runner: studies of different size; measure both with one preset"
    return (
        f"runner: the overhead per unit was {duration(old.runner.overhead)} and is "
        f"{duration(new.runner.overhead)} (one study each: no interval)"
    )


def _speed(run: StoredRun) -> float:
    times = [
        value for family in run.families for graph in family.graphs for value in graph.yardstick
    ]
    return float(np.median(times)) if times else math.nan


def _package_changes(old: StoredRun, new: StoredRun) -> dict[str, tuple[str, str]]:
    def versions(run: StoredRun) -> dict[str, Any]:
        keys = ("python", "platform", "cpu_count", "processor")
        own = {key: run.environment.get(key) for key in keys}
        return {**own, **(run.environment.get("packages") or {})}

    before, after = versions(old), versions(new)
    return {
        name: (str(before.get(name, "absent")), str(after.get(name, "absent")))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }
