"""Accuracy against time of backends, beside other libraries and reference answers of networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic.dataclasses import dataclass

from experiments.analyses.context import AnalysisContext
from experiments.analyses.frontier_figure import frontier_figure
from experiments.analyses.graph_shapes import GraphShape, draw_graph
from experiments.analyses.measured_backends import measure, ratio_texts, summarise
from experiments.analyses.measured_graphs import Reference, networks, reference_of
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.interval_values import tiny
from experiments.findings.table import Table, columns_as, data_frame
from experiments.findings.text import duration
from experiments.settings.backend_settings import build_backend
from experiments.settings.limits import Count, Positive
from experiments.study.config import STRICT, BackendChoice
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import grid
from inference import Backend
from inference.warm_up import warm_up

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, config=STRICT)
class Settings:
    """What is measured.

    Attributes:
        shapes: shapes of fact graphs that are drawn, by name.
        grids: sides of square Ising grids with couplings up to 1 and fields up to 0.5, by name.
        networks: UAI and BIF files, patterns such as networks/*.uai, and folders; evidence in
            NAME.uai.evid and answers in NAME.uai.MAR and NAME.uai.PR (NAME.bif.MAR and NAME.bif.PR)
            count.
        graphs: graphs, or batches, of each shape and grid.
        batch: graphs of a batch, which one call answers.
        backends: what is measured.
        against: label of the backend that times are divided by; the first if empty.
        reference: backend whose answer is the truth of what has none beside it.
        rounds: turns of every backend on a graph.
        budget: seconds of repeated calls of a backend on a graph.
    """

    shapes: Mapping[str, GraphShape] = field(default_factory=dict)
    grids: Mapping[str, Count] = field(default_factory=dict)
    networks: tuple[str, ...] = ()
    graphs: Count = 1
    batch: Count = 1
    backends: tuple[BackendChoice, ...] = (BackendChoice("exact"), BackendChoice("lbp"))
    against: str = ""
    reference: BackendChoice = field(default_factory=lambda: BackendChoice("exact"))
    rounds: Count = 7
    budget: Positive = 1.0


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
    turns = settings.rounds, settings.budget, context.seed
    with context.track("graphs", len(graphs)) as step:
        for family, name, members, reference in graphs:
            measurements = measure(
                members, backends, reference or reference_of(members, judge), *turns
            )
            rows += [{"graphs": family, "graph": name, **row} for row in measurements]
            step()
    measured = data_frame(rows)
    overall = summarise(measured, against, context.seed)
    each = Table(measured, EACH, "Every graph", group="graphs")
    return Artefacts(
        tables={"backends": _table(overall, against), "graphs": each},
        figures={"frontier": PaperFigure(frontier_figure(overall), overall, "error against time")},
    )


def instances(
    settings: Settings, context: AnalysisContext
) -> Iterator[tuple[str, str, Sequence[FactorGraph], Reference | None]]:
    """Family, name, graphs and given answers of each thing that is measured.

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
        yield from networks(context.folder / text)


SHOWN: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("first_seconds", "seconds"), duration),
    **dict.fromkeys(("mean_error", "max_error"), tiny),
    **dict.fromkeys(("log_z_error", "furthest"), partial(tiny, sign="+")),
}
EACH = columns_as(
    "graph | backend | status | variables:0 | induced_width:0 width | first_seconds> first call | "
    "seconds> warm call | max_error> max |Δp| | log_z_error> log Z − true | reference | remark",
    **SHOWN,
)
"""Columns of the table of every graph."""


def _table(overall: pd.DataFrame, against: str) -> Table:
    return Table(
        overall.assign(times=ratio_texts(overall)),
        columns_as(
            f"backend | seconds> warm call | times> times {against} | mean_error> mean |Δp| | "
            "max_error> max |Δp| | log_z_kind log Z | log_z_error> log Z − true | furthest> | "
            "settled:0 | answered:0 | n_graphs:0 graphs",
            **SHOWN,
        ),
        "Error and time of backends",
        group="graphs",
        note="Errors against the reference; log Z − true: the median, furthest: the largest, in "
        "nats, of the estimate or bound that 'log Z' names. Ratios of times within the same "
        "rounds, 95 % interval by the bootstrap over rounds; times depend on the machine.",
    )


def built_backends(choices: Iterable[BackendChoice], key: str) -> list[tuple[str, Backend]]:
    """Backends with what tables call them, in order.

    Args:
        choices: the backends.
        key: where the study lists them, as errors begin.

    Raises:
        InputError: for a setting that a backend does not have or take, or two of one label.
        MissingDependencyError: if a library that a backend needs is not installed.
    """
    built = [
        (label, build_backend(choice.backend, settings, partial(choice.place_of, where)))
        for where, choice in ((f"{key}[{at}]", choice) for at, choice in enumerate(choices))
        for label, settings in choice.settings_of_each()
    ]
    labels = [label for label, _ in built]
    if len(set(labels)) < len(labels):
        raise InputError(
            f"{key}: two backends have the same label among {', '.join(labels)}; name them apart"
        )
    return built
