"""What a benchmark shows on the terminal: one table per family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from experiments.bench import families
from experiments.bench.algorithms import ALGORITHMS
from experiments.bench.results import BOUNDS, FamilyResult, Measurement
from experiments.cli.console import heading
from experiments.paper.text import ABSENT, duration, plain_table, small

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.bench.runner_cost import RunnerCost
from experiments.bench.report import gather, geometric, interval, ratio


@dataclass(frozen=True)
class Shown:
    """Shows a benchmark as it goes on.

    Attributes:
        console: where tables go.
        remarks: where it is said what is being measured.
    """

    console: Console
    remarks: Console

    def remark(self, line: str) -> None:
        """Print a line on what is being measured."""
        self.remarks.print(line, soft_wrap=True)

    def family(self, result: FamilyResult) -> None:
        """Print the table of a family."""
        show(self.console, result)

    def families_done(self) -> None:
        """Print what the columns are."""
        show_explanation(self.console)

    def runner(self, cost: RunnerCost) -> None:
        """Print what a study of many small graphs cost."""
        show_runner(self.console, cost)


def show(console: Console, result: FamilyResult) -> None:
    """Print the table of a family."""
    table = plain_table()
    table.add_column("algorithm", no_wrap=True)
    memory = any(m.peak_bytes is not None for g in result.graphs for m in g.measurements)
    titles = ["answer", "build", "first call", "warm call", "slower than", "interval"]
    titles += ["max |Δp|", "mean |Δp|", "log Z − true", "bounds − true", "gap"]
    for title in [*titles, *(["memory"] if memory else [])]:
        table.add_column(title, justify="left" if title == "answer" else "right", no_wrap=True)
    for name in result.algorithms:
        table.add_row(*_row(result, name, memory))
    sizes = _range([graph.variables for graph in result.graphs])
    heading(console, f"{result.name}: {result.summary}; {sizes} variables")
    console.print(table)
    for line in _remarks(result):
        console.print(line, soft_wrap=True)
    console.print()


def show_explanation(console: Console) -> None:
    """Print what the columns are."""
    console.print(
        "Times are medians over rounds, per call; those of several graphs are averaged "
        "geometrically, errors are the largest of any graph (max) and their mean (mean). Δp is "
        "against the exact answer, or the reference beside a file. Bounds on log Z and estimates "
        "of it stand in columns of their own; the gap is upper minus lower bound, in nats. "
        "'slower than' is the ratio of warm calls within the same rounds, with its interval at "
        "95% (bootstrap over rounds)."
    )


def show_runner(console: Console, cost: RunnerCost) -> None:
    """Print what a study of many small graphs cost."""
    heading(
        console,
        f"{families.RUNNER}: a study of {cost.n_units:,} units on {cost.workers} processes",
    )
    console.print(
        f"{duration(cost.seconds)} from the study to the last file, of which "
        f"{duration(cost.inference_seconds / cost.workers)} inference on each process; overhead "
        f"{duration(cost.overhead)} per unit.",
        soft_wrap=True,
    )
    console.print()


def show_choices(console: Console) -> None:
    """Print the presets, families and algorithms that there are."""
    for title, columns, rows in (
        (
            "presets",
            ("preset", "what it is for"),
            [(name, preset.summary) for name, preset in families.PRESETS.items()],
        ),
        (
            "families",
            ("family", "what its graphs are", "algorithms (in brackets: only in preset full)"),
            [
                (
                    family.name,
                    family.summary,
                    ", ".join([*family.algorithms, *(f"({name})" for name in family.slow)]),
                )
                for family in families.FAMILIES
            ]
            + [(families.RUNNER, families.RUNNER_SUMMARY, "exact, lbp, lbp damped")],
        ),
        (
            "algorithms",
            ("algorithm", "what it is", "compared with"),
            [(one.name, one.summary, one.against or ABSENT) for one in ALGORITHMS.values()],
        ),
    ):
        heading(console, title)
        table = plain_table()
        for column in columns:
            table.add_column(column, no_wrap=column == columns[0])
        for row in rows:
            table.add_row(*row)
        console.print(table)
        console.print()


def _row(result: FamilyResult, name: str, memory: bool) -> list[str]:
    def times(read: Callable[[Measurement], float | None]) -> str:
        return duration(geometric(gather(result, name, read)))

    def largest(read: Callable[[Measurement], float | None]) -> str:
        return small(max(gather(result, name, read), key=abs, default=None))

    compared = ratio(result, name)
    means = gather(result, name, lambda m: m.mean_error)
    own = [graph.reference == name for graph, _ in result.of(name)]
    cells = [
        name,
        _answer(result, name),
        times(lambda m: m.build_seconds),
        times(lambda m: m.first_seconds),
        times(lambda m: m.warm),
        ABSENT if compared is None else f"{compared[0]} x {compared[1].value:.3g}",
        ABSENT if compared is None else interval(compared[1]),
        "reference" if all(own) else largest(lambda m: m.max_error),
        "" if all(own) else small(float(np.mean(means)) if means else None),
        "" if all(own) else largest(lambda m: None if _is_bound(m) else m.log_z_error),
        _bounds(result, name),
        largest(lambda m: m.gap),
    ]
    if memory:
        peaks = gather(result, name, lambda m: m.peak_bytes)
        cells.append(ABSENT if not peaks else f"{max(peaks) / 2**20:,.0f} MiB")
    return cells


def _answer(result: FamilyResult, name: str) -> str:
    statuses = [one.status for _, one in result.of(name)]
    if len(set(statuses)) == 1:
        return statuses[0].replace("_", " ")
    counts = {status: statuses.count(status) for status in dict.fromkeys(statuses)}
    return ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())


def _bounds(result: FamilyResult, name: str) -> str:
    """Return the bound of each side that is furthest from the truth, or nothing."""
    sides: dict[str, list[float]] = {}
    for _, one in result.of(name):
        if one.log_z_error is not None and one.log_z is not None and _is_bound(one):
            truth = one.log_z - one.log_z_error
            if one.lower is not None and one.upper is not None:
                sides.setdefault("", []).append(one.upper - truth)
                sides.setdefault("-", []).append(truth - one.lower)
            else:
                sides.setdefault("" if one.log_z_kind == "upper" else "-", []).append(
                    abs(one.log_z_error)
                )
    words = [f"{sign or '+'}{max(values):.1e}" for sign, values in sides.items()]
    return " ".join(words) or ABSENT


def _is_bound(one: Measurement) -> bool:
    return one.log_z_kind in BOUNDS


def _remarks(result: FamilyResult) -> list[str]:
    lines: dict[str, list[str]] = {}
    for graph in result.graphs:
        for one in graph.measurements:
            if one.remark:
                what = one.remark if one.answered else f"{one.status}: {one.remark}"
                lines.setdefault(f"{one.algorithm}: {what}", []).append(graph.label)
    many = len(result.graphs) > 1
    shown = [f"{text}" + (f" ({', '.join(at)})" if many else "") for text, at in lines.items()]
    loads = {
        one.algorithm: one.load_seconds
        for graph in result.graphs
        for one in graph.measurements
        if one.load_seconds is not None
    }
    if loads:
        words = ", ".join(f"{name} {duration(seconds)}" for name, seconds in loads.items())
        shown.append(f"Loading, once per process: {words}.")
    if not any(graph.reference for graph in result.graphs):
        shown.append("Nothing is exact here: errors are unknown, and the gap of bounds is shown.")
    rounds = [len(one.seconds) for g in result.graphs for one in g.measurements if one.seconds]
    if rounds:
        shown.append(f"Rounds: {_range(rounds)}; graphs: {len(result.graphs)}.")
    return shown


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
