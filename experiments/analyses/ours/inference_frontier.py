"""Error and time of backends, over size, density, strength and frustration of graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calibration.figures.panels import (
    PAGE,
    draw_line,
    name_floor,
    name_lines,
    nth_look,
    panels,
    parts,
)
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import mean_of_clusters, named, tiny, with_interval
from experiments.analyses.ours.shared.graph_shapes import GraphShape, draw_graph
from experiments.analyses.ours.shared.measured_backends import measure, reference_of
from experiments.analyses.posteriors import built_backends
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.findings.text import duration
from experiments.results.frontier import FLOOR, pareto
from experiments.study.config import STRICT, BackendChoice, Count, Probability, Strength
from factormodels.errors import InputError
from inference import get_backend
from inference.messages.frustration import frustration
from inference.warm_up import warm_up

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

AXES = ("atoms", "density", "strength", "contradictions")
"""What is varied: fields of the shape, and keys of the settings."""

WARM_SECONDS = 0.05
"""A fast backend is timed over and over for so long, a slow one once."""


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        base: the shape that each axis departs from.
        atoms: numbers of atoms; the base's belongs to the axis in any case.
        density: densities.
        strength: strengths.
        contradictions: shares of contradictions.
        graphs: graphs of each shape.
        backends: what is measured on every graph.
        slow: what is measured on the first graph of the base alone.
        repeats: most warm calls of a timing, of which the median counts.
    """

    __pydantic_config__: ClassVar = STRICT

    base: GraphShape = field(default_factory=GraphShape)
    atoms: tuple[Count, ...] = (4, 8, 16)
    density: tuple[Probability, ...] = (0.0, 0.05, 0.2)
    strength: tuple[Strength, ...] = (0.5, 2.0, 4.0)
    contradictions: tuple[Probability, ...] = (0.0, 0.05, 0.5)
    graphs: Count = 3
    backends: tuple[BackendChoice, ...] = (BackendChoice("exact"), BackendChoice("lbp"))
    slow: tuple[BackendChoice, ...] = field(default_factory=tuple)
    repeats: Count = 5


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Errors by axis and level, times, and both figures."""
    n_graphs = settings.graphs * len({shape for _, _, shape in levels(settings)})
    with context.track("graphs", n_graphs) as step:
        measured = measurements(settings, context.seed, step, f"{context.where}: settings")
    errors = summarise_errors(measured, context.seed)
    overall = summarise_backends(measured, context.seed)
    return Artefacts(
        tables={
            "backends": _backends_table(overall),
            "errors": _errors_table(errors),
            "times": _times_table(summarise_times(measured)),
        },
        figures={"error": PaperFigure(error_figure(errors), errors, "error by axis and level")},
    )


def measurements(
    settings: Settings,
    seed: int,
    step: Callable[[], None] = lambda: None,
    where: str = "settings",
) -> pd.DataFrame:
    """One row per backend on each graph of each level of each axis.

    Columns: `axis`, `level`, `graph`, `frustrated` (share of the cycles of a basis) and those of
    `measure`. The base belongs to every axis; its graphs are measured once.

    Args:
        settings: what is measured.
        seed: seed of the graphs.
        step: called after every graph.
        where: what errors call the settings.

    Raises:
        InputError: if exact inference refuses a graph, for an unknown setting of a backend, or for
            two backends of one label.
    """
    backends = built_backends(settings.backends, f"{where}.backends")
    slow = built_backends(settings.slow, f"{where}.slow")
    # What compiles at the first call must not be in the first graph's time.
    for _, backend in (*backends, *slow):
        warm_up(backend)
    labels = [label for label, _ in (*backends, *slow)]
    if len(set(labels)) < len(labels):
        raise InputError(
            f"two backends have the same label among {', '.join(labels)}; name them apart"
        )
    rows: list[dict[str, Any]] = []
    known: dict[GraphShape, list[dict[str, Any]]] = {}
    for axis, level, shape in levels(settings):
        if shape not in known:
            known[shape] = []
            for graph in range(settings.graphs):
                drawn = [draw_graph(shape, (seed, graph))]
                true = reference_of(drawn, get_backend("exact"))
                if true is None:
                    raise InputError(f"{where}: exact inference refuses a graph; make them smaller")
                asked = [*backends, *(slow if shape == settings.base and not graph else [])]
                found = measure(drawn, asked, true, settings.repeats, WARM_SECONDS, seed)
                frustrated = frustration(drawn[0]).share
                known[shape] += [{"graph": graph, "frustrated": frustrated, **row} for row in found]
                step()
        rows += [{"axis": axis, "level": level, **row} for row in known[shape]]
    return data_frame(rows)


def levels(settings: Settings) -> Iterator[tuple[str, float, GraphShape]]:
    """Each axis and level, in ascending order of levels, with its shape."""
    for axis in AXES:
        for value in sorted({getattr(settings.base, axis), *getattr(settings, axis)}):
            yield axis, float(value), replace(settings.base, **{axis: value})


def summarise_errors(measured: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The errors of each backend on each level, with intervals over graphs.

    Backends that were measured on one graph of the base alone are left out.
    """
    distinct = measured.drop_duplicates(["digest", "backend"])
    everywhere = measured[measured["backend"].isin(_everywhere(distinct))]
    rows = []
    for (axis, level, backend), group in everywhere.groupby(
        ["axis", "level", "backend"], sort=False
    ):
        rows.append(
            {
                "axis": axis,
                "level": level,
                "backend": backend,
                "frustrated": group["frustrated"].mean(),
                "induced_width": group["induced_width"].mean(),
                "n_graphs": len(group),
                **_errors(group, seed),
            }
        )
    return data_frame(rows)


def summarise_backends(measured: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The errors of each backend over all graphs, each counted once, and on one for all.

    Column `graphs` says which: all of them, or the first of the base, which every backend had.
    """
    # The base's graphs stand in every axis, but are evidence once.
    distinct = measured.drop_duplicates(["digest", "backend"])
    everyone = distinct["digest"].map(distinct.groupby("digest")["backend"].size())
    common = distinct[everyone == measured["backend"].nunique()]
    parts = {"all graphs": distinct[distinct["backend"].isin(_everywhere(distinct))]}
    if len(parts["all graphs"]) < len(distinct):
        parts["the first graph of the base"] = common
    rows = []
    for title, part in parts.items():
        for backend, group in part.groupby("backend", sort=False):
            facts = {"graphs": title, "backend": backend, "n_graphs": len(group)}
            rows.append({**facts, **_errors(group, seed)})
    return data_frame(rows)


def summarise_times(measured: pd.DataFrame) -> pd.DataFrame:
    """Median seconds and mean error of each backend on each level, and whether none beats both.

    Backends that refused a graph are left out, and so are graphs that not all were measured on;
    errors below 1e-12 are rounding and count as that.
    """
    rows = []
    for (axis, level), group in measured.groupby(["axis", "level"], sort=False):
        shared = group.groupby("graph")["backend"].size()
        held = group[group["graph"].isin(shared.index[shared == shared.max()])]
        points = {
            str(backend): (
                float(each["seconds"].median()),
                max(float(each["total_error"].sum() / each["probabilities"].sum()), FLOOR),
            )
            for backend, each in held.groupby("backend", sort=False)
            if each["total_error"].notna().all()
        }
        front = pareto(points)
        rows += [
            {
                "axis": axis,
                "level": level,
                "backend": backend,
                "seconds": point[0],
                "mean_error": point[1],
                "frontier": point in front,
            }
            for backend, point in points.items()
        ]
    return data_frame(rows)


def _everywhere(distinct: pd.DataFrame) -> list[str]:
    """The backends that were measured on every graph."""
    counts = distinct.groupby("backend")["digest"].size()
    return list(counts.index[counts == counts.max()])


def _errors(group: pd.DataFrame, seed: int) -> dict[str, Any]:
    answered = group[group["total_error"].notna()]
    mean = mean_of_clusters(answered["total_error"], answered["probabilities"], seed)
    return {
        **named("mean_error", mean),
        "max_error": answered["max_error"].max(),
        "log_z_error": answered["log_z_error"].abs().max(),
        "log_z_kind": ", ".join(kind for kind in dict.fromkeys(answered["log_z_kind"])),
        "not_settled": int((~group["status"].isin(("exact", "converged"))).sum()),
    }


def _error_columns() -> tuple[Column, ...]:
    return (
        Column("backend", "backend"),
        Column("shown", "mean |Δp|", r"mean $|\Delta p|$", right=True),
        Column("max_error", "max |Δp|", r"max $|\Delta p|$", show=tiny, right=True),
    )


def _backends_table(overall: pd.DataFrame) -> Table:
    return Table(
        overall.assign(
            shown=[with_interval(row, "mean_error") for row in overall.to_dict("records")]
        ),
        (
            *_error_columns(),
            Column("log_z_error", "distance of log Z", show=tiny, right=True),
            Column("log_z_kind", "log Z"),
            Column("not_settled", "not settled", digits=0),
            Column("n_graphs", "graphs", digits=0),
        ),
        "Error of P(true) against the exact posterior",
        group="graphs",
        note=(
            "Intervals: 95 %, bootstrap over graphs. Distance of log Z: the largest, of the "
            "estimate or bound that 'log Z' names. Not settled: neither exact nor converged."
        ),
    )


def _errors_table(errors: pd.DataFrame) -> Table:
    heads = [f"{row.axis} {row.level:g}" for row in errors.itertuples()]
    texts = [with_interval(row, "mean_error") for row in errors.to_dict("records")]
    return Table(
        errors.assign(shape=heads, shown=texts),
        (
            *_error_columns(),
            Column("frustrated", "frustrated", digits=2),
            Column("induced_width", "width", digits=1),
        ),
        "Error of P(true) by what is varied, all else as in the base",
        group="shape",
        note="Frustrated: mean share of frustrated cycles of a basis. Width: mean induced width.",
    )


def _times_table(times: pd.DataFrame) -> Table:
    heads = [f"{row.axis} {row.level:g}" for row in times.itertuples()]
    return Table(
        times.assign(shape=heads, front=["yes" if on else "" for on in times["frontier"]]),
        (
            Column("backend", "backend"),
            Column("seconds", "warm call", show=duration, right=True),
            Column("mean_error", "mean |Δp|", r"mean $|\Delta p|$", show=tiny, right=True),
            Column("front", "on the frontier"),
        ),
        "Seconds per warm call, median over graphs, and who is on the frontier",
        group="shape",
        note="Times depend on the machine; on the frontier: none is both faster and more accurate.",
    )


TITLES = {
    "atoms": "Atoms",
    "density": "Density",
    "strength": "Strength",
    "contradictions": "Frustrated cycles (contradictions)",
}

DRAWN_FLOOR = 1e-9
"""Smaller errors are drawn on the lower edge: between them there is rounding only."""


def error_figure(errors: pd.DataFrame) -> Figure:
    """The mean error of backends against what is varied: a column per axis, a few in each row.

    Args:
        errors: one row per axis, level and backend, with `mean_error` and the ends of its interval.
    """
    axes = list(dict.fromkeys(errors["axis"]))
    groups = parts(list(dict.fromkeys(errors["backend"])))
    size = (PAGE, 1.25 * len(groups) + 0.4)
    shared = {"sharex": "col", "sharey": True}
    with panels(len(groups), len(axes), size, **shared) as (figure, grid):
        for row, backends in zip(grid, groups, strict=True):
            for place, axis in zip(row, axes, strict=True):
                own = errors[errors["axis"] == axis]
                levels = sorted(set(own["level"]))
                lines = {}
                for at, backend in enumerate(backends):
                    line = own[own["backend"] == backend].sort_values("level")
                    across = [levels.index(level) for level in line["level"]]
                    look = nth_look(at) | {"clip_on": False}
                    drawn = draw_line(place, across, line, "mean_error", DRAWN_FLOOR, **look)
                    lines[backend] = drawn
                place.set_yscale("log")
                place.set_xticks(range(len(levels)), _level_names(axis, own, levels))
                place.set_xlabel(TITLES.get(axis, axis) if backends is groups[-1] else "")
                place.margins(x=0.08)
            name_lines(row[-1], lines)
        name_floor(grid[0][0], DRAWN_FLOOR, 2)
        figure.supylabel("mean |Δp|", fontsize=8.0)
        return figure


def _level_names(axis: str, own: pd.DataFrame, levels: Sequence[float]) -> list[str]:
    if axis != "contradictions":
        return [f"{level:g}" for level in levels]
    shares = own.groupby("level")["frustrated"].mean()
    return [f"{shares[level]:.2f}\n({level:g})" for level in levels]
