"""`factormodels bench`: accuracy against time, ours beside peers, as ratios within one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from experiments.cli.console import heading, messages, output, plain_table
from experiments.findings.text import ABSENT, duration, small

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.bench.compare import BenchComparison
    from experiments.bench.results import FamilyResult, Measurement
    from experiments.bench.runner_cost import RunnerCost
    from experiments.bench.store import StoredRun


def command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FAMILY | UAI FILE | FOLDER | runner]...",
            help="What to measure on; if nothing is given, what the preset names.",
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="How much: quick, standard or full.")
    ] = "standard",
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Algorithms to use instead of the families' own: names separated by commas, "
            "or BACKEND:KEY=VALUE,...; repeatable.",
        ),
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME=COMMAND'",
            help="An external program to compare with: 'NAME=/path/to/binary {model} "
            "{evidence} {out}'; NAME:KIND says what its log Z is; repeatable.",
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Warm rounds on a graph, at most.")
    ] = None,
    graphs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Graphs of a family, at most.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="SECONDS", help="Time limit for making the model and a first call."
        ),
    ] = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="BYTES",
            help="Memory that one algorithm may use; by default three quarters of what is "
            "available.",
        ),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Measure memory, with a fresh process for every graph.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Seed for the order of turns.")
    ] = 0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of bench.json and the plot.")
    ] = Path("results/bench"),
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="OLD NEW", help="Compare two stored results (files or folders) and stop."
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List presets, families and algorithms and stop.")
    ] = False,
) -> None:
    """Measure accuracy against time, for our algorithms and installed peers.

    Each algorithm has a process of its own. On every graph it builds its model, makes
    a first call (including compilation; shown separately) and then warm calls. The
    algorithms take turns, in a new random order for each round. Times depend on the
    machine: what counts is the ratio of two algorithms within the same rounds, with
    its interval (bootstrap over rounds).

    Errors are measured against the exact answer, or against NAME.uai.MAR and
    NAME.uai.PR beside a file. Bounds on log Z and estimates of it are never mixed. A
    refusal, a time-out and a lack of memory are results too, and are shown.

    Results: a table per family, frontier.pdf and .png (error against time), and
    bench.json with every timing, the commit, the versions of packages and the
    number of processors. Two such files, from two commits on one machine, are what
    --compare takes.

    [b]runner[/b] measures a whole study instead: 10,000 small graphs under three backends
    in two processes, from the file to the tables, and its overhead beyond inference.

    An external program is run on a UAI file in a temporary folder, without a shell.
    {model} and {evidence} stand for its files, {out} for the name of an output file.
    Its answer is read from the files that it writes or from what it prints: MAR and
    PR sections as in the UAI competitions, merlin's text, or merlin's JSON.

    [b]Examples[/b]

      factormodels bench --list
      factormodels bench --preset quick
      factormodels bench fr2-26x5-d15 --algorithm exact,pyagrum --memory
      factormodels bench runner
      factormodels bench fr2-200x5 --algorithm wmb:i_bound=4,iterations=20
      factormodels bench uai2014/MAR/Grids_11.uai --time-limit 30
      factormodels bench fr1-31x3 --solver 'merlin:upper=/opt/merlin
        --input-file {model} --evidence-file {evidence} --task MAR
        --algorithm wmb --ibound 6 --output-file {out}'
      factormodels bench --compare results/old results/bench
    """
    from experiments.bench.benchmark_run import BenchRequest, run_session

    console = output()
    if compare is not None:
        from experiments.bench.compare import compare as compare_runs
        from experiments.bench.store import read_run

        old, new = (read_run(path) for path in compare)
        _show_comparison(console, compare_runs(old, new), old, new)
        return
    if list_:
        _show_choices(console)
        return
    request = BenchRequest(
        what=tuple(what or ()),
        preset=preset,
        algorithms=tuple(algorithm or ()),
        solvers=tuple(solver or ()),
        rounds=rounds,
        n_instances=graphs,
        time_limit=time_limit,
        memory_limit=memory_limit,
        memory=memory,
        seed=seed,
    )
    for path in run_session(request, out, TerminalDisplay(console, messages())):
        console.print(str(path), soft_wrap=True)


@dataclass(frozen=True)
class TerminalDisplay:
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
        _show_family(self.console, result)

    def families_done(self) -> None:
        """Print what the columns are."""
        _show_explanation(self.console)

    def runner(self, cost: RunnerCost) -> None:
        """Print what a study of many small graphs cost."""
        _show_runner(self.console, cost)


def _show_family(console: Console, result: FamilyResult) -> None:
    """Print the table of a family."""
    # A column only where memory was measured.
    memory = any(m.peak_bytes is not None for g in result.graphs for m in g.measurements)
    titles = ["build", "first call", "warm call", "slower than", "interval"]
    titles += ["max |Δp|", "mean |Δp|", "log Z − true", "bounds − true", "gap"]
    table = plain_table(["algorithm", "answer"], [*titles, *(["memory"] if memory else [])])
    for name in result.algorithms:
        table.add_row(*_row(result, name, memory))
    sizes = _range([graph.variables for graph in result.graphs])
    heading(console, f"{result.name}: {result.summary}; {sizes} variables")
    console.print(table)
    for line in _remarks(result):
        console.print(line, soft_wrap=True)
    console.print()


def _show_explanation(console: Console) -> None:
    """Print what the columns are."""
    console.print(
        "Times are medians over rounds, per call; those of several graphs are averaged "
        "geometrically, errors are the largest of any graph (max) and their mean (mean). Δp is "
        "against the exact answer, or the reference beside a file. Bounds on log Z and estimates "
        "of it stand in columns of their own; the gap is upper minus lower bound, in nats. "
        "'slower than' is the ratio of warm calls within the same rounds, with its interval at "
        "95% (bootstrap over rounds)."
    )


def _show_runner(console: Console, cost: RunnerCost) -> None:
    """Print what a study of many small graphs cost."""
    from experiments.bench.families import RUNNER

    heading(
        console,
        f"{RUNNER}: a study of {cost.n_units:,} units on {cost.workers} processes",
    )
    console.print(
        f"{duration(cost.seconds)} from the study to the last file, of which "
        f"{duration(cost.inference_seconds / cost.workers)} inference on each process; overhead "
        f"{duration(cost.overhead)} per unit.",
        soft_wrap=True,
    )
    console.print()


def _show_choices(console: Console) -> None:
    """Print the presets, families and algorithms that there are."""
    from experiments.bench import families
    from experiments.bench.algorithms import ALGORITHMS

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
    """A line of a family's table: one algorithm over all graphs."""
    from experiments.bench.report import gather, geometric, interval, ratio

    def times(read: Callable[[Measurement], float | None]) -> str:
        return duration(geometric(gather(result, name, read)))

    def largest(read: Callable[[Measurement], float | None]) -> str:
        return small(max(gather(result, name, read), key=abs, default=None))

    compared = ratio(result, name)
    means = gather(result, name, lambda m: m.mean_error)
    # An algorithm has no error against itself; where it is the reference on all graphs, that is
    # said.
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
    """The bound of each side that is furthest from the truth, or nothing."""
    sides: dict[str, list[float]] = {}
    for _, one in result.of(name):
        if one.log_z_error is not None and one.log_z is not None and _is_bound(one):
            # The error was taken against it, so it need not be known here.
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
    from experiments.bench.results import BOUNDS

    return one.log_z_kind in BOUNDS


def _remarks(result: FamilyResult) -> list[str]:
    lines: dict[str, list[str]] = {}
    for graph in result.graphs:
        for one in graph.measurements:
            if one.remark:
                # Equal remarks on several graphs are told once, with the graphs behind.
                what = one.remark if one.answered else f"{one.status}: {one.remark}"
                lines.setdefault(f"{one.algorithm}: {what}", []).append(graph.label)
    many = len(result.graphs) > 1
    shown = [f"{text}" + (f" ({', '.join(at)})" if many else "") for text, at in lines.items()]
    # The last value of each name: a process loads once, unless every graph has its own.
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


def _show_comparison(
    console: Console, comparison: BenchComparison, old: StoredRun, new: StoredRun
) -> None:
    """Print a comparison."""
    from experiments.bench.compare import LEAST_CHANGE, LEVEL
    from experiments.bench.report import interval

    titles = ["old", "new", "times faster", "interval"]
    table = plain_table(["family", "algorithm"], titles, ["verdict"])
    for change in comparison.changes:
        table.add_row(
            change.family,
            change.algorithm,
            duration(change.old_seconds),
            duration(change.new_seconds),
            f"{change.ratio.value:.3g}",
            interval(change.ratio),
            change.verdict,
        )
    heading(console, f"{old.name} against {new.name}")
    if comparison.changes:
        console.print(table)
    for line in filter(None, [*comparison.answers, *comparison.left_out, comparison.runner]):
        console.print(line, soft_wrap=True)
    for name, (before, after) in comparison.packages.items():
        console.print(f"{name} was {before} and is {after}")
    if not comparison.changes:
        return
    beyond = [change for change in comparison.changes if change.verdict in ("faster", "slower")]
    console.print(
        f"{len(beyond)} of {len(comparison.changes)} times changed beyond noise: the intervals, "
        f"which hold together at {100 * LEVEL:.0f}%, exclude 1, and the ratio is beyond "
        f"{LEAST_CHANGE:g}. Times are relative to the yardstick of each run, which was "
        f"{comparison.speed:.3g} times faster in the new one.",
        soft_wrap=True,
    )
