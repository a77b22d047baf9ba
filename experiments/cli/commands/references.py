"""`factormodels references`: backends against the reference answers of UAI networks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from experiments.cli.console import heading, messages, output, plain_table, show_table
from experiments.findings.text import ABSENT, duration, small

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.bench.references import ReferenceComparison


def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder with NAME.uai, NAME.uai.evid and the answers NAME.uai.MAR or .PR.",
        ),
    ],
    backend: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Backends to compare, separated by commas; repeatable. [auto]",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of every backend, or of one: BACKEND.KEY=VALUE; repeatable.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="SECONDS", help="Time limit for one backend on one network."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the comparisons as JSON.")
    ] = None,
) -> None:
    """Compare backends with the reference answers of UAI networks.

    For every network below the folder, shows whether the backend answers, the induced
    width, the time, and the error: the largest error of a marginal (MAR), or that of
    log10 Z relative to its size (PR). Then summarises sets of networks (those whose
    names differ only in a number), with log Z or its bound compared with the reference
    in nats, and the gap between bounds.

    [b]Examples[/b]

      factormodels references uai2014
      factormodels references uai2014 --set memory_limit=4000000000
      factormodels references uai2014 --backend wmb,lbp --set wmb.i_bound=10 \\
        --time-limit 60 --out errors.json
    """
    from rich.progress import track

    from experiments.bench import references
    from experiments.cli.progress import announced
    from experiments.study.backend_settings import build_backend, settings_by_backend
    from inference.warm_up import warm_up

    names = [name for text in backend or ["auto"] for name in text.split(",")]
    algorithms = [
        build_backend(name, settings)
        for name, settings in settings_by_backend(set_ or (), names).items()
    ]
    networks = references.find_networks(folder)
    remarks = messages()
    comparisons = []
    # Processes outlive the loading that is announced, and end with the comparison.
    with ExitStack() as stack:
        with announced(remarks):
            infer = stack.enter_context(references.within(time_limit, algorithms, warm_up))
        for path in track(
            networks, "networks", console=remarks, transient=True, disable=not remarks.is_terminal
        ):
            for algorithm in algorithms:
                comparisons += references.compare(path, algorithm, infer)
    _show(output(), comparisons)
    if out is not None:
        references.write(comparisons, out)


def _show(console: Console, comparisons: Sequence[ReferenceComparison]) -> None:
    """Print the comparisons, and for each task and backend how many were answered."""
    table = plain_table(
        ["network", "task", "backend", "status"], ["variables", "width", "time", "error"]
    )
    for one in comparisons:
        table.add_row(
            one.network,
            one.task,
            one.backend,
            one.status,
            str(one.variables),
            ABSENT if one.induced_width is None else str(one.induced_width),
            duration(one.seconds),
            small(one.error),
        )
    heading(console, "reference answers")
    show_table(console, table)
    for remark in dict.fromkeys(one.remark for one in comparisons if one.remark):
        console.print(remark, soft_wrap=True)
    console.print()
    _show_sets(console, comparisons)


def _show_sets(console: Console, comparisons: Sequence[ReferenceComparison]) -> None:
    """Print the errors by set of networks, task and backend: those of the names without numbers."""
    from experiments.bench.references import groups
    from inference.posterior import Status

    table = plain_table(
        ["set", "task", "backend"],
        ["answered", "settled", "median time", "median error", "largest", "mean |Δp|"],
        ["log Z"],
    )
    for title in ("median log Z − reference", "furthest", "median gap"):
        table.add_column(title, justify="right", no_wrap=True)
    for (name, task, backend), group in groups(comparisons).items():
        answered = [one for one in group if one.answered]
        settled = sum(one.status in (Status.EXACT, Status.CONVERGED) for one in answered)
        log_z_errors = _finite(one.log_z_error for one in answered)
        table.add_row(
            name,
            task,
            backend,
            f"{len(answered)} of {len(group)}",
            str(settled),
            duration(_median(one.seconds for one in answered)),
            small(_median(one.error for one in answered)),
            small(max(_finite(one.error for one in answered), default=None)),
            small(_mean(one.mean_error for one in answered)),
            ", ".join(dict.fromkeys(one.log_z_kind for one in answered)),
            _signed(_median(log_z_errors)),
            _signed(max(log_z_errors, key=abs, default=None)),
            small(_median((one.gap for one in answered), infinite=True)),
        )
    heading(console, "by set: error of a marginal (MAR), relative error of log10 Z (PR)")
    show_table(console, table)


def _finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _median(values: Iterable[float], *, infinite: bool = False) -> float | None:
    # A lower bound of zero leaves an infinite gap, which a median must not pass over.
    kept = [v for v in values if not math.isnan(v) and (infinite or math.isfinite(v))]
    return float(np.median(kept)) if kept else None


def _mean(values: Iterable[float]) -> float | None:
    finite = _finite(values)
    return float(np.mean(finite)) if finite else None


def _signed(value: float | None) -> str:
    return ABSENT if value is None else f"{value:+.2g}"
