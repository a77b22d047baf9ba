"""`factormodels bench`: accuracy against time, ours beside peers, as ratios within one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FAMILY | UAI FILE | FOLDER | runner]...",
            help="What to measure on; what the preset names if nothing is given.",
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="How much: quick, standard or full.")
    ] = "standard",
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Algorithms instead of the families' own: names with commas between, or "
            "BACKEND:KEY=VALUE,...; repeatable.",
        ),
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME=COMMAND'",
            help="An external program beside them: 'NAME=/path/to/binary {model} {evidence} "
            "{out}'; NAME:KIND says what its log Z is; repeatable.",
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most warm rounds on a graph.")
    ] = None,
    graphs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most graphs of a family.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="SECONDS", help="Limit on a model's making and a first call."
        ),
    ] = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="BYTES",
            help="Memory that one algorithm may take; three quarters of what is free.",
        ),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Measure memory: a fresh process for every graph.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of turns.")] = 0,
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
    """Measure accuracy against time: algorithms of ours beside installed peers.

    Each algorithm has a process of its own. On every graph it builds its model,
    makes a first call (compilation and all, shown by itself) and then warm calls;
    all take turns, in an order drawn anew for each round. Times depend on the
    machine: what counts is the ratio of two algorithms within the same rounds,
    with its interval (bootstrap over rounds).

    Errors are against the exact answer, or against NAME.uai.MAR and NAME.uai.PR
    beside a file; bounds on log Z and estimates of it are never mixed. A refusal,
    a time-out and a lack of memory are answers too, and are shown.

    Results: a table per family, frontier.pdf and .png (error against time), and
    bench.json with every timing, the commit, the versions of packages and the
    number of processors. Two such files, from two commits on one machine, are what
    --compare takes.

    [b]runner[/b] measures a study instead: 10,000 small graphs under three backends on
    two processes, from the file to the tables, and its overhead beyond inference.

    An external program is run on a UAI file in a temporary folder, without a shell.
    {model} and {evidence} stand for its files, {out} for a file name where output
    may go. It is read from the files that it writes, or from what it prints: MAR
    and PR sections as in the UAI competitions, merlin's text, merlin's JSON.

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
    from experiments.bench.session import BenchRequest, run_session
    from experiments.cli.console import messages, output
    from experiments.cli.views import bench as view

    console = output()
    if compare is not None:
        from experiments.bench.compare import compare as compare_runs
        from experiments.bench.store import read_run
        from experiments.cli.views.bench_comparison import show

        old, new = (read_run(path) for path in compare)
        show(console, compare_runs(old, new), old, new)
        return
    if list_:
        view.show_choices(console)
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
    for path in run_session(request, out, view.Shown(console, messages())):
        console.print(str(path), soft_wrap=True)
