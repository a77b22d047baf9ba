"""Accuracy against time of backends, beside other libraries and reference answers of networks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibration.figures.panels import PAGE, panels
from experiments.analyses.context import AnalysisContext
from experiments.analyses.interval_values import tiny
from experiments.analyses.ours.shared.graph_shapes import GraphShape, draw_graph
from experiments.analyses.ours.shared.measured_backends import (
    Reference,
    draw_legend,
    looks,
    measure,
    read_network,
    reference_of,
)
from experiments.analyses.posteriors import built_backends
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.findings.text import ABSENT, duration
from experiments.study.config import STRICT, BackendChoice, Count, Strength
from experiments.study.frontier import FLOOR, draw_frontier
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import grid
from inference.warm_up import warm_up

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

N_BOOTSTRAP = 10_000


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        shapes: shapes of fact graphs that are drawn, by name.
        grids: sides of square Ising grids with couplings up to 1 and fields up to 0.5, by name.
        networks: UAI files, and folders of them; answers in NAME.uai.MAR and NAME.uai.PR count.
        graphs: graphs, or batches, of each shape and grid.
        batch: graphs of a batch, which one call answers.
        backends: what is measured.
        against: label of the backend that times are divided by; the first if empty.
        reference: backend whose answer is the truth of what has none beside it.
        rounds: turns of every backend on a graph.
        budget: seconds of warm calls of a backend on a graph.
    """

    __pydantic_config__: ClassVar = STRICT

    shapes: Mapping[str, GraphShape] = field(default_factory=dict)
    grids: Mapping[str, Count] = field(default_factory=dict)
    networks: tuple[str, ...] = ()
    graphs: Count = 1
    batch: Count = 1
    backends: tuple[BackendChoice, ...] = (BackendChoice("exact"), BackendChoice("lbp"))
    against: str = ""
    reference: BackendChoice = field(default_factory=lambda: BackendChoice("exact"))
    rounds: Count = 7
    budget: Strength = 1.0


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Errors and times by family of graphs, each measurement, and error against time."""
    where = f"{context.where}: settings"
    backends = built_backends(settings.backends, f"{where}.backends")
    ((_, judge),) = built_backends((settings.reference,), f"{where}.reference")
    against = settings.against or backends[0][0]
    if against not in (labels := [label for label, _ in backends]):
        raise InputError(
            f"{where}.against: {against!r} is not measured; use one of {', '.join(labels)}"
        )
    # What compiles at the first call must not be in the first graph's time.
    for _, backend in backends:
        warm_up(backend)
    rows = []
    graphs = list(instances(settings, context))
    with context.track("graphs", len(graphs)) as step:
        for family, name, members, given in graphs:
            truth = given or reference_of(members, judge)
            found = measure(
                *(members, backends, truth, settings.rounds, settings.budget, context.seed)
            )
            rows += [{"graphs": family, "graph": name, **row} for row in found]
            step()
    measured = data_frame(rows)
    overall = summarise(measured, against, context.seed)
    return Artefacts(
        tables={"backends": _table(overall, against), "graphs": _graphs_table(measured)},
        figures={"frontier": PaperFigure(frontier_figure(overall), overall, "error against time")},
    )


def instances(
    settings: Settings, context: AnalysisContext
) -> Iterator[tuple[str, str, Sequence[FactorGraph], Reference | None]]:
    """Family, name, graphs and given answers of each thing that is measured.

    Networks whose names differ in a final number alone are one family.

    Raises:
        InputError: if there is nothing, or a network cannot be read.
    """
    if not (settings.shapes or settings.grids or settings.networks):
        raise InputError(f"{context.where}: settings: name shapes, grids or networks")
    for number in range(settings.graphs):
        # Batches share no graph, and a larger one begins with the graphs of a smaller.
        seeds = range(number * settings.batch, (number + 1) * settings.batch)
        for name, shape in settings.shapes.items():
            drawn = [draw_graph(shape, (context.seed, each)) for each in seeds]
            yield name, f"number {number}", drawn, None
        for name, side in settings.grids.items():
            grids = [grid(side, side, coupling=1.0, field=0.5, seed=each) for each in seeds]
            yield name, f"number {number}", grids, None
    for text in settings.networks:
        path = context.folder / text
        files = sorted(path.rglob("*.uai")) if path.is_dir() else [path]
        if not files:
            raise InputError(f"{path}: there is no .uai file in this folder; name another")
        for file in files:
            graph, answers = read_network(file)
            name = str(file.relative_to(path)) if path.is_dir() else file.name
            yield re.sub(r"[_-]\d+$", "", file.stem) or file.stem, name, [graph], answers


def summarise(measured: pd.DataFrame, against: str, seed: int) -> pd.DataFrame:
    """One row per family and backend: status, errors, and the ratio of times with its interval.

    The ratio is the median over rounds of the ratio within a round, averaged geometrically over
    graphs; its interval is the percentile bootstrap over rounds.
    """
    rows = []
    for (family, backend), group in measured.groupby(["graphs", "backend"], sort=False):
        answered = group[group["status"] != "refused"]
        other = measured[(measured["graphs"] == family) & (measured["backend"] == against)]
        pairs = group.merge(other, on=["graph", "digest"], suffixes=("", "_other"))
        times = list(zip(pairs["round_seconds"], pairs["round_seconds_other"], strict=True))
        # A network may come with its marginals, its log Z, or both.
        judged = answered.dropna(subset=["total_error"])
        log_z = answered["log_z_error"].dropna()
        rows.append(
            {
                "graphs": family,
                "backend": backend,
                "n_graphs": len(group),
                "answered": len(answered),
                "settled": int(group["status"].isin(("exact", "converged")).sum()),
                "seconds": float(np.exp(np.log(answered["seconds"]).mean())),
                **_ratio(times if backend != against else [], seed),
                "mean_error": judged["total_error"].sum()
                / (judged["probabilities"].sum() or np.nan),
                "max_error": answered["max_error"].max(),
                "log_z_kind": ", ".join(dict.fromkeys(answered["log_z_kind"])),
                "log_z_error": log_z.median(),
                "furthest": log_z.iloc[log_z.abs().argmax()] if len(log_z) else np.nan,
                "gap": answered["gap"].median(),
            }
        )
    return data_frame(rows)


def _ratio(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], seed: int) -> dict[str, float]:
    """How many times as long a call takes, from the times of both in the same rounds."""
    names = ("ratio", "ratio_lower", "ratio_upper")
    # The first rounds are everybody's: who is slow has fewer.
    both = [np.array(list(zip(*pair, strict=False))) for pair in pairs]
    logs = [np.log(times[:, 0] / times[:, 1]) for times in both if len(times)]
    if not logs:
        return dict.fromkeys(names, np.nan)
    value = np.mean([np.median(log) for log in logs])
    # One round resamples to itself, and would pretend to be certain.
    ends = np.full(2, np.nan)
    if min(map(len, logs)) > 1:
        draw = np.random.default_rng(seed)
        drawn = [
            np.median(log[draw.integers(0, len(log), (N_BOOTSTRAP, len(log)))], axis=1)
            for log in logs
        ]
        ends = np.quantile(np.mean(drawn, axis=0), [0.025, 0.975])
    return dict(zip(names, np.exp([value, *ends]).tolist(), strict=True))


def frontier_figure(overall: pd.DataFrame) -> Figure:
    """Mean error against seconds of a call, a panel per family that has both."""
    known = overall.dropna(subset=["mean_error", "seconds"])
    families = list(dict.fromkeys(known["graphs"])) or [""]
    drawn = looks(list(overall["backend"]))
    columns = min(len(families), 4)
    rows = -(-len(families) // columns)
    with panels(rows, columns, (PAGE, 1.6 * rows + 0.6), sharex=True, sharey=True) as (
        figure,
        axes,
    ):
        for place in axes.flat[len(families) :]:
            place.set_axis_off()
        for place, family in zip(axes.flat, families, strict=False):
            own = known[known["graphs"] == family].set_index("backend")
            points = {
                str(name): (row["seconds"], max(row["mean_error"], FLOOR))
                for name, row in own.iterrows()
            }
            if points:
                draw_frontier(place, points, drawn)
            place.set_title(family, pad=2.0)
        figure.supxlabel("seconds per call", fontsize=8.0)
        figure.supylabel("mean |Δp|", fontsize=8.0)
        draw_legend(figure, axes.flat[0], drawn)
        return figure


def _table(overall: pd.DataFrame, against: str) -> Table:
    def times(row: Mapping[Any, Any]) -> str:
        ends = "" if np.isnan(row["ratio_lower"]) else " [{ratio_lower:.3g}, {ratio_upper:.3g}]"
        return ABSENT if np.isnan(row["ratio"]) else ("{ratio:.3g}" + ends).format(**row)

    return Table(
        overall.assign(times=[times(row) for row in overall.to_dict("records")]),
        (
            Column("backend", "backend"),
            Column("seconds", "warm call", show=duration, right=True),
            Column("times", f"times {against}", right=True),
            Column("mean_error", "mean |Δp|", r"mean $|\Delta p|$", show=tiny, right=True),
            Column("max_error", "max |Δp|", r"max $|\Delta p|$", show=tiny, right=True),
            Column("log_z_kind", "log Z"),
            Column("log_z_error", "log Z − true", show=lambda v: tiny(v, "+"), right=True),
            Column("furthest", "furthest", show=lambda v: tiny(v, "+"), right=True),
            Column("settled", "settled", digits=0),
            Column("answered", "answered", digits=0),
            Column("n_graphs", "graphs", digits=0),
        ),
        "Error and time of backends",
        group="graphs",
        note=(
            "Errors against the reference; log Z − true: the median, furthest: the largest, in "
            "nats, of the estimate or bound that 'log Z' names. Ratios of times within the same "
            "rounds, 95 % interval by the bootstrap over rounds; times depend on the machine."
        ),
    )


def _graphs_table(measured: pd.DataFrame) -> Table:
    return Table(
        measured,
        (
            Column("graph", "graph"),
            Column("backend", "backend"),
            Column("status", "status"),
            Column("variables", "variables", digits=0),
            Column("induced_width", "width", digits=0),
            Column("seconds", "warm call", show=duration, right=True),
            Column("max_error", "max |Δp|", r"max $|\Delta p|$", show=tiny, right=True),
            Column("log_z_error", "log Z − true", show=lambda v: tiny(v, "+"), right=True),
            Column("reference", "reference"),
            Column("remark", "remark"),
        ),
        "Every graph",
        group="graphs",
    )
