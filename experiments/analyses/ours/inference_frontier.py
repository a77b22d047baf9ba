"""Accuracy against time of backends, over size, density, strength and frustration of graphs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibration.figures.panels import (
    PAGE,
    draw_line,
    name_floor,
    name_lines,
    nth_colour,
    nth_look,
    nth_marker,
    panels,
    parts,
)
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import mean_of_clusters, named, tiny, with_interval
from experiments.analyses.ours.shared.graph_shapes import GraphShape, draw_graph
from experiments.analyses.posteriors import built_backends
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.findings.text import duration
from experiments.results.frontier import FLOOR, draw_frontier, pareto
from experiments.study.config import STRICT, BackendChoice, Count, Probability, Strength
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph, digest
from inference import Backend, InferenceError, TooLargeError, entries, infer
from inference.messages.frustration import frustration
from inference.warm_up import warm_up

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = ("atoms", "density", "strength", "contradictions")
"""What is varied: fields of the shape, and keys of the settings."""

TURN_SECONDS = 0.05
"""A fast backend is timed over and over for so long, a slow one once."""

NATIVE = (
    BackendChoice("exact"),
    BackendChoice("lbp"),
    BackendChoice("trw"),
    BackendChoice("wmb", label="wmb-2", settings={"i_bound": 2}),
    BackendChoice("wmb", label="wmb-6", settings={"i_bound": 6}),
    BackendChoice("cavi"),
    BackendChoice("gibbs"),
    BackendChoice("ais"),
    BackendChoice("wmb_is"),
    BackendChoice("ijgp"),
)


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
    backends: tuple[BackendChoice, ...] = NATIVE
    slow: tuple[BackendChoice, ...] = field(default_factory=tuple)
    repeats: Count = 5


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Errors by axis and level, times, and both figures."""
    with context.track("graphs", _n_graphs(settings)) as step:
        measured = measurements(settings, context.seed, step, f"{context.where}: settings")
    errors = summarise_errors(measured, context.seed)
    overall = summarise_backends(measured, context.seed)
    return Artefacts(
        tables={
            "backends": _backends_table(overall),
            "errors": _errors_table(errors),
            "times": _times_table(summarise_times(measured)),
        },
        figures={
            "error": PaperFigure(error_figure(errors), errors, "error by axis and level"),
            "frontier": PaperFigure(frontier_figure(measured), measured, "error against time"),
        },
    )


def measurements(
    settings: Settings,
    seed: int,
    step: Callable[[], None] = lambda: None,
    where: str = "settings",
) -> pd.DataFrame:
    """One row per backend on each graph of each level of each axis.

    Columns: `axis`, `level`, `graph`, `digest`, `backend`, `variables`, `frustrated` (share of the
    cycles of a basis), `induced_width`, `status` ("refused" without an answer), `total_error`
    (sum of |Δ P(true)| over variables), `max_error`, `log_z_error`, `log_z_kind`, `seconds`.
    The base belongs to every axis; its graphs are measured once.

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
                extra = slow if shape == settings.base and not graph else []
                drawn = draw_graph(shape, (seed, graph))
                known[shape] += [
                    {"graph": graph, **row}
                    for row in _measure(drawn, [*backends, *extra], settings.repeats)
                ]
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
    """Median seconds of each backend on each level, and whether it is on the frontier.

    A backend is on the frontier of a level if none is both faster and more accurate; errors below
    1e-12 are rounding and count as that.
    """
    rows = []
    for (axis, level), group in measured.groupby(["axis", "level"], sort=False):
        found = frontier_points(group)
        front = pareto(found)
        rows += [
            {
                "axis": axis,
                "level": level,
                "backend": backend,
                "seconds": point[0],
                "mean_error": point[1],
                "frontier": point in front,
            }
            for backend, point in found.items()
        ]
    return data_frame(rows)


def _n_graphs(settings: Settings) -> int:
    return settings.graphs * len({shape for _, _, shape in levels(settings)})


def _measure(
    graph: FactorGraph, backends: Sequence[tuple[str, Backend]], repeats: int
) -> Iterator[dict[str, Any]]:
    try:
        true = infer(graph, "exact")
    except TooLargeError as error:
        raise InputError(f"there is nothing to measure errors against: {error}") from None
    expected = _probabilities(true.marginals.flat)
    facts = {
        "digest": digest([graph]),
        "variables": graph.n_variables,
        "frustrated": frustration(graph).share,
        "induced_width": true.stats["induced_width"],
    }
    for label, backend in backends:
        row: dict[str, Any] = {**facts, "backend": label, "status": "refused", "log_z_kind": ""}
        start = time.perf_counter()
        try:
            answer = backend.infer(graph)
        except InferenceError:
            yield {**row, **dict.fromkeys(_NUMBERS, math.nan)}
            continue
        first = time.perf_counter() - start
        errors = np.abs(_probabilities(answer.marginals.flat) - expected)
        yield {
            **row,
            "status": str(answer.status),
            "total_error": float(errors.sum()),
            "max_error": float(errors.max()),
            "log_z_error": _difference(answer.log_z, true.log_z),
            "log_z_kind": str(answer.log_z_kind),
            "seconds": _seconds(backend, graph, first, repeats),
        }


_NUMBERS = ("total_error", "max_error", "log_z_error", "seconds")


def _difference(value: float | None, true: float | None) -> float:
    return math.nan if value is None or true is None else value - true


def _probabilities(flat: Floats) -> Floats:
    """P(true) of each binary variable."""
    return flat[1::2]


def _seconds(backend: Backend, graph: FactorGraph, first: float, repeats: int) -> float:
    """The median of calls after the first: as many as fit a turn, at least one.

    A first call that fills the turn counts itself, unless its library compiles for every graph.
    """
    if first > TURN_SECONDS and not entries()[backend.name].requires:
        return first
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < TURN_SECONDS:
        start = time.perf_counter()
        backend.infer(graph)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def _everywhere(distinct: pd.DataFrame) -> list[str]:
    """The backends that were measured on every graph."""
    counts = distinct.groupby("backend")["digest"].size()
    return list(counts.index[counts == counts.max()])


def _errors(group: pd.DataFrame, seed: int) -> dict[str, Any]:
    answered = group[group["total_error"].notna()]
    mean = mean_of_clusters(answered["total_error"], answered["variables"], seed)
    return {
        **named("mean_error", mean),
        "max_error": answered["max_error"].max(),
        "log_z_error": answered["log_z_error"].abs().max(),
        "log_z_kind": ", ".join(kind for kind in dict.fromkeys(answered["log_z_kind"])),
        "not_settled": int((~group["status"].isin(("exact", "converged"))).sum()),
    }


def _shown(row: Mapping[Any, Any]) -> str:
    return with_interval(row, "mean_error")


def _error_columns() -> tuple[Column, ...]:
    return (
        Column("backend", "backend"),
        Column("shown", "mean |Δp|", r"mean $|\Delta p|$", right=True),
        Column("max_error", "max |Δp|", r"max $|\Delta p|$", show=tiny, right=True),
    )


def _backends_table(overall: pd.DataFrame) -> Table:
    return Table(
        overall.assign(shown=[_shown(row) for row in overall.to_dict("records")]),
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
    texts = [_shown(row) for row in errors.to_dict("records")]
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


def frontier_figure(measured: pd.DataFrame) -> Figure:
    """Error against time on each level of each axis, with the frontier as steps.

    Args:
        measured: one row per axis, level, graph and backend, with `seconds`, `total_error` and
            `variables`.
    """
    looks = _looks(measured["backend"])
    names = list(dict.fromkeys(measured["axis"]))
    levels = [sorted(set(measured["level"][measured["axis"] == axis])) for axis in names]
    columns = max(map(len, levels))
    size = (PAGE, 1.5 * len(names) + 0.5)
    with panels(len(names), columns, size, sharex=True, sharey=True) as (figure, axes):
        for row, axis, own in zip(axes, names, levels, strict=True):
            for place in row[len(own) :]:
                place.set_axis_off()
            for place, level in zip(row, own, strict=False):
                chosen = (measured["axis"] == axis) & (measured["level"] == level)
                points = frontier_points(measured[chosen])
                found = {
                    name: (at, max(error, DRAWN_FLOOR)) for name, (at, error) in points.items()
                }
                draw_frontier(place, found, looks)
                place.set_title(f"{axis} {level:g}", pad=2.0)
        name_floor(axes[0][0], DRAWN_FLOOR, 2)
        for place in axes[-1]:
            place.set_xlabel("seconds per call")
        for place in axes[:, 0]:
            place.set_ylabel("mean |Δp|")
        _legend(figure, axes[0][0], looks)
    return figure


def frontier_points(group: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Median seconds and mean error by backend, of those that answered every graph.

    Graphs that some backend was not measured on are left out: all are held to the same.
    """
    shared = group.groupby("graph")["backend"].size()
    group = group[group["graph"].isin(shared.index[shared == shared.max()])]
    found = {}
    for backend, own in group.groupby("backend", sort=False):
        if own["total_error"].notna().all():
            error = own["total_error"].sum() / own["variables"].sum()
            found[str(backend)] = (float(own["seconds"].median()), max(float(error), FLOOR))
    return found


def _level_names(axis: str, own: pd.DataFrame, levels: Sequence[float]) -> list[str]:
    if axis != "contradictions":
        return [f"{level:g}" for level in levels]
    shares = own.groupby("level")["frustrated"].mean()
    return [f"{shares[level]:.2f}\n({level:g})" for level in levels]


def _looks(backends: Iterable[str]) -> dict[str, dict[str, Any]]:
    from calibration.figures.style import COLOURS

    return {
        str(name): {
            "color": nth_colour(at),
            "linestyle": "none",
            "marker": nth_marker(at),
            "markersize": 3.5,
            # The palette begins anew after its end: from there on markers are hollow.
            "fillstyle": "full" if at < len(COLOURS) else "none",
        }
        for at, name in enumerate(dict.fromkeys(backends))
    }


def _legend(figure: Figure, place: Axes, looks: dict[str, dict[str, Any]]) -> None:
    handles = [place.plot([], [], **look)[0] for look in looks.values()]
    figure.legend(
        handles,
        list(looks),
        loc="outside lower center",
        ncols=min(len(looks), 8),
        columnspacing=1.2,
        handletextpad=0.2,
    )
