"""Backends against reference answers, on the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.cli.console import heading, show_table
from experiments.paper.text import ABSENT, duration, plain_table, small
from inference.posterior import Status

if TYPE_CHECKING:
    from rich.console import Console
from experiments.bench.references import ReferenceComparison, groups


def show(console: Console, comparisons: Sequence[ReferenceComparison]) -> None:
    """Print the comparisons, and for each task and backend how many were answered."""
    table = plain_table()
    table.add_column("network", no_wrap=True)
    for title in ("task", "backend", "status"):
        table.add_column(title, no_wrap=True)
    for title in ("variables", "width", "time", "error"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in comparisons:
        table.add_row(
            one.network,
            one.task,
            one.backend,
            one.status,
            str(one.variables),
            "--" if one.induced_width is None else str(one.induced_width),
            duration(one.seconds),
            small(one.error),
        )
    heading(console, "reference answers")
    show_table(console, table)
    for remark in dict.fromkeys(one.remark for one in comparisons if one.remark):
        console.print(remark, soft_wrap=True)
    console.print()
    show_sets(console, comparisons)


def show_sets(console: Console, comparisons: Sequence[ReferenceComparison]) -> None:
    """Print the errors by set of networks, task and backend: those of the names without numbers."""
    table = plain_table()
    for title in ("set", "task", "backend"):
        table.add_column(title, no_wrap=True)
    for title in ("answered", "settled", "median time", "median error", "largest", "mean |Δp|"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("log Z", no_wrap=True)
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
