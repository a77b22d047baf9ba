"""Weighted mini-buckets by i-bound: bounds on log Z, pseudo-marginals, certified intervals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.figures.panels import draw_line, name_floor, nth_look, panel_grid
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import mean_of_clusters, named, tiny, with_interval
from experiments.analyses.ours.shared.graph_shapes import GraphShape, draw_graph
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.study.config import STRICT, Count
from factormodels.factor_graph import FactorGraph
from inference import infer
from inference.mini_buckets.intervals import certified_intervals

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

IBound = Annotated[int, Field(ge=1, le=26)]


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        shapes: shapes of graphs by what tables call them.
        i_bounds: i-bounds.
        graphs: graphs of each shape.
        iterations: passes that tighten each bound.
    """

    __pydantic_config__: ClassVar = STRICT

    shapes: Annotated[dict[str, GraphShape], Field(min_length=1)]
    i_bounds: Annotated[tuple[IBound, ...], Field(min_length=1)] = (1, 2, 4, 6, 8, 10, 12)
    graphs: Count = 4
    iterations: Count = 20


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Errors by i-bound, and the figure of errors, bounds and intervals."""
    with context.track("graphs", len(settings.shapes) * settings.graphs) as step:
        measured = measurements(settings, context.seed, step)
    errors = summarise(measured, context.seed)
    times = measured.groupby(["shape", "i_bound"], sort=False)[["seconds"]].median().reset_index()
    return Artefacts(
        tables={"i-bound": _table(errors), "times": _times_table(times)},
        figures={
            "i-bound-figure": PaperFigure(
                _figure(errors), errors, "error and certified interval by i-bound"
            )
        },
    )


def measurements(
    settings: Settings, seed: int, step: Callable[[], None] = lambda: None
) -> pd.DataFrame:
    """One row per graph and i-bound.

    Columns: `shape`, `graph`, `induced_width`, `i_bound`, `upper` and `lower` (distance of the
    bound from log Z in nats), `total_error` (sum of |Δ P(true)| of the pseudo-marginals over
    `variables`), `total_width` (sum of the widths of certified intervals over `atoms`), `decided`
    (atoms whose interval does not hold 1/2), `held` (atoms whose interval holds the exact
    posterior), `seconds` of the intervals of all atoms.

    Args:
        settings: what is measured.
        seed: seed of the graphs.
        step: called after every graph.
    """
    rows: list[dict[str, Any]] = []
    for shape, drawn in settings.shapes.items():
        for number in range(settings.graphs):
            graph = draw_graph(drawn, (seed, number))
            names = graph.names[: drawn.atoms]
            rows += [
                {"shape": shape, "graph": number, **row} for row in _measure(graph, names, settings)
            ]
            step()
    return data_frame(rows)


def summarise(measured: pd.DataFrame, seed: int) -> pd.DataFrame:
    """One row per shape and i-bound: means over graphs, with bootstrap intervals."""
    rows = []
    for (shape, i_bound), group in measured.groupby(["shape", "i_bound"], sort=False):
        row: dict[str, Any] = {
            "shape": shape,
            "i_bound": i_bound,
            "induced_width": group["induced_width"].mean(),
            "n_graphs": len(group),
        }
        for name, above, below in (
            ("upper_bound", group["upper"], np.ones(len(group))),
            ("lower_bound", group["lower"], np.ones(len(group))),
            ("error", group["total_error"], group["variables"]),
            ("width", group["total_width"], group["atoms"]),
            ("decided", group["decided"], group["atoms"]),
        ):
            row |= named(name, mean_of_clusters(above, below, seed))
        rows.append({**row, "held": group["held"].sum() / group["atoms"].sum()})
    return data_frame(rows)


def _measure(
    graph: FactorGraph, names: Sequence[str], settings: Settings
) -> Iterator[dict[str, Any]]:
    true = infer(graph, "exact")
    exact = np.array([true.marginals[name][1] for name in names])
    for i_bound in settings.i_bounds:
        bounded = infer(graph, "wmb", i_bound=i_bound, iterations=settings.iterations)
        start = time.perf_counter()
        found = certified_intervals(graph, names, i_bound=i_bound, iterations=settings.iterations)
        seconds = time.perf_counter() - start
        lower, upper = np.array([(found[name].lower, found[name].upper) for name in names]).T
        errors = np.abs(bounded.marginals.flat[1::2] - true.marginals.flat[1::2])
        yield {
            "induced_width": true.stats["induced_width"],
            "i_bound": i_bound,
            # Where both coincide, a bound is on the wrong side by rounding.
            "upper": max(bounded.stats["upper"] - true.log_z, 0.0),
            "lower": max(true.log_z - bounded.stats["lower"], 0.0),
            "total_error": float(errors.sum()),
            "variables": graph.n_variables,
            "total_width": float((upper - lower).sum()),
            "decided": int(((lower > 0.5) | (upper < 0.5)).sum()),
            "held": int(((lower <= exact) & (exact <= upper)).sum()),
            "atoms": len(names),
            "seconds": seconds,
        }


def _table(errors: pd.DataFrame) -> Table:
    records = errors.to_dict("records")
    heads = [f"{row['shape']}, induced width {row['induced_width']:.1f}" for row in records]
    texts = {
        f"{name}_text": [with_interval(row, name) for row in records] for name in ("error", "width")
    }
    return Table(
        errors.assign(head=heads, **texts),
        (
            Column("i_bound", "i-bound", digits=0),
            Column("upper_bound", "upper − log Z", show=tiny, right=True),
            Column("lower_bound", "log Z − lower", show=tiny, right=True),
            Column("error_text", "mean |Δp|", r"mean $|\Delta p|$", right=True),
            Column("width_text", "certified width", right=True),
            Column("decided", "decided", digits=2),
            Column("held", "held", digits=2),
        ),
        "Weighted mini-buckets by i-bound: bounds in nats, pseudo-marginals, certified intervals",
        group="head",
        note=(
            "Means over graphs; intervals: 95 %, bootstrap over graphs. Decided: share of atoms "
            "whose certified interval does not hold 1/2. Held: share of atoms whose interval "
            "holds the exact posterior."
        ),
    )


def _times_table(times: pd.DataFrame) -> Table:
    return Table(
        times,
        (
            Column("i_bound", "i-bound", digits=0),
            Column("seconds", "seconds", digits=3),
        ),
        "Seconds of the certified intervals of all atoms, median over graphs",
        group="shape",
    )


_FLOOR = 1e-9
"""Smaller numbers are rounding, and are drawn here."""


def _figure(errors: pd.DataFrame) -> Figure:
    from matplotlib.ticker import MaxNLocator

    quantities = (
        ("upper_bound", "distance (nats)", "upper bound of log Z"),
        ("lower_bound", "distance (nats)", "lower bound of log Z"),
        ("error", "mean |Δp|", "pseudo-marginals"),
        ("width", "mean width", "certified intervals"),
        ("decided", "share decided", "decided"),
    )
    with panel_grid(len(quantities), (2.3, 1.75)) as (figure, places):
        for place, (name, label, title) in zip(places, quantities, strict=True):
            is_share = name == "decided"
            for at, (shape, line) in enumerate(errors.groupby("shape", sort=False)):
                floor = 0.0 if is_share else _FLOOR
                look = nth_look(at) | {"clip_on": False, "label": str(shape)}
                draw_line(place, line["i_bound"], line, name, floor, **look)
            place.set(xlabel="i-bound", ylabel=label, title=title)
            place.xaxis.set_major_locator(MaxNLocator(integer=True))
            if is_share:
                place.set_ylim(-0.02, 1.05)
                place.legend(loc="lower right")
            else:
                place.set_yscale("log")
                name_floor(place, _FLOOR, 2)
        return figure
