"""Error and time of backends, over size, density, strength and frustration of graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.analyses.interval_values import interval_text, means_of_clusters, tiny
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

AXES = ("atoms", "density", "strength", "contradictions")
"""What is varied: fields of the shape, and keys of the settings."""

WARM_SECONDS = 0.05
"""A fast backend is timed over and over for so long, a slow one once."""

DRAWN_FLOOR = 1e-9
"""Smaller errors are drawn on the lower edge: between them there is rounding only."""


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
    repeats: Count = 5


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Errors by axis and level, times, and the figure of errors."""
    shapes = {shape for _, _, shape in levels(settings)}
    with context.track("graphs", settings.graphs * len(shapes)) as step:
        measured = measurements(settings, context.seed, step, f"{context.where}: settings")
    by_level = summarise(measured, ["axis", "level", "backend"], context.seed)
    overall = summarise(measured, ["backend"], context.seed)
    front = frontier(measured)
    backend = Column("backend", "backend")
    error = Column("shown", "mean |Δp|", r"mean $|\Delta p|$", right=True)
    largest = Column("max_error", "max |Δp|", r"max $|\Delta p|$", show=tiny, right=True)
    tables = {
        "backends": Table(
            overall,
            (
                *(backend, error, largest),
                Column("log_z_error", "distance of log Z", show=tiny, right=True),
                Column("log_z_kind", "log Z"),
                Column("not_settled", "not settled", digits=0),
                Column("n_graphs", "graphs", digits=0),
            ),
            "Error of P(true) against the exact posterior",
            note="Intervals: 95 %, bootstrap over graphs. Distance of log Z: the largest, of the "
            "estimate or bound that 'log Z' names. Not settled: neither exact nor converged.",
        ),
        "errors": Table(
            by_level,
            (
                *(backend, error, largest),
                Column("frustrated", "frustrated", digits=2),
                Column("induced_width", "width", digits=1),
            ),
            "Error of P(true) by what is varied, all else as in the base",
            group="shape",
            note="Frustrated: mean share of frustrated cycles of a basis. Width: mean induced "
            "width.",
        ),
        "times": Table(
            front,
            (
                *(backend, Column("seconds", "warm call", show=duration, right=True)),
                Column("mean_error", "mean |Δp|", r"mean $|\Delta p|$", show=tiny, right=True),
                Column("frontier", "on the frontier", show=lambda on: "yes" if on else ""),
            ),
            "Seconds per warm call, median over graphs, and who is on the frontier",
            group="shape",
            note="Times depend on the machine; on the frontier: none is both faster and more "
            "accurate.",
        ),
    }
    drawn = by_level.astype({"level": str})
    floors = {"mean_error": DRAWN_FLOOR}
    figure = line_figure(
        drawn, "level", {"mean_error": "mean |Δp|"}, "backend", "axis", floors=floors
    )
    return Artefacts(tables, {"error": PaperFigure(figure, by_level, "error by axis and level")})


def levels(settings: Settings) -> Iterator[tuple[str, float, GraphShape]]:
    """Each axis and level, in ascending order of levels, with its shape."""
    for axis in AXES:
        for value in sorted({getattr(settings.base, axis), *getattr(settings, axis)}):
            yield axis, float(value), replace(settings.base, **{axis: value})


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
    labels = [label for label, _ in backends]
    if len(set(labels)) < len(labels):
        raise InputError(
            f"two backends have the same label among {', '.join(labels)}; name them apart"
        )
    # What compiles at the first call must not be in the first graph's time.
    for _, backend in backends:
        warm_up(backend)
    known: dict[GraphShape, list[dict[str, Any]]] = {}
    rows = []
    for axis, level, shape in levels(settings):
        if shape not in known:
            known[shape] = []
            for number in range(settings.graphs):
                drawn = [draw_graph(shape, (seed, number))]
                true = reference_of(drawn, get_backend("exact"))
                if true is None:
                    raise InputError(f"{where}: exact inference refuses a graph; make them smaller")
                found = measure(drawn, backends, true, settings.repeats, WARM_SECONDS, seed)
                facts = {"graph": number, "frustrated": frustration(drawn[0]).share}
                known[shape] += [{**facts, **row} for row in found]
                step()
        rows += [{"axis": axis, "level": level, **row} for row in known[shape]]
    return data_frame(rows)


def summarise(measured: pd.DataFrame, by: list[str], seed: int) -> pd.DataFrame:
    """The errors of each combination of the keys, with intervals over graphs, each counted once."""
    distinct = measured.drop_duplicates([*by, "digest"])
    sums = {"mean_error": ("total_error", "probabilities")}
    found = means_of_clusters(distinct, by, sums, seed)
    settled = distinct["status"].isin(("exact", "converged"))
    others = distinct.assign(
        log_z_error=distinct["log_z_error"].abs(), not_settled=(~settled).astype(int)
    ).groupby(by, sort=False)
    facts = others.agg(
        max_error=("max_error", "max"),
        log_z_error=("log_z_error", "max"),
        log_z_kind=("log_z_kind", lambda kinds: ", ".join(filter(None, dict.fromkeys(kinds)))),
        not_settled=("not_settled", "sum"),
        frustrated=("frustrated", "mean"),
        induced_width=("induced_width", "mean"),
    )
    frame = found.merge(facts.reset_index(), on=by)
    frame["shown"] = interval_text(frame, "mean_error")
    return _headed(frame) if "axis" in by else frame


def frontier(measured: pd.DataFrame) -> pd.DataFrame:
    """Median seconds and mean error of each backend on each level, and whether none beats it.

    A backend that refused a graph is left out; errors below 1e-12 are rounding and count as that.
    """
    by = ["axis", "level", "backend"]
    grouped = measured.groupby(by, sort=False)
    sums = grouped[["total_error", "probabilities"]].sum(min_count=1)
    frame = grouped[["seconds"]].median()
    frame["mean_error"] = (sums["total_error"] / sums["probabilities"]).clip(lower=FLOOR)
    frame = frame[grouped["total_error"].count() == grouped.size()].reset_index()
    for _, own in frame.groupby(by[:2], sort=False):
        points = dict(
            zip(own["backend"], zip(own["seconds"], own["mean_error"], strict=True), strict=True)
        )
        best = pareto(points)
        frame.loc[own.index, "frontier"] = [point in best for point in points.values()]
    return _headed(frame)


def _headed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(shape=frame["axis"] + " " + frame["level"].map("{:g}".format))
