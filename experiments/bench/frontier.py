"""The frontier of error against time: one panel per family, one point per algorithm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.bench.report import gather, geometric
from experiments.bench.results import FamilyResult
from experiments.results.frontier import FLOOR, draw_frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEM = "frontier"


_COLUMNS = 3
_PANEL = (2.25, 1.9)
_LEGEND = 0.55


def write_frontier(
    results: Sequence[FamilyResult], folder: Path, metadata: Mapping[str, str]
) -> list[Path]:
    """Write the figure as PDF and PNG and return the paths; none if there is nothing to draw.

    Raises:
        InputError: if the folder cannot be written.
    """
    from calibration.figures.style import save_figure

    drawn = [(result, *points(result)) for result in results]
    drawn = [panel for panel in drawn if panel[2]]
    if not drawn:
        return []
    figure = _figure(drawn, {name for result in results for name in result.against})
    subject = {"Subject": "error against time"}
    return list(save_figure(figure, folder / STEM, metadata={**subject, **metadata}))


def points(result: FamilyResult) -> tuple[str, dict[str, tuple[float, float]]]:
    """What is drawn on the vertical axis of a family, and (seconds, error) by algorithm.

    The error is the largest of a marginal on any graph; where nothing is exact, the gap between
    an algorithm's bounds on log Z.
    """
    known = any(gather(result, name, lambda m: m.max_error) for name in result.algorithms)
    found = {}
    for name in result.algorithms:
        # Times of graphs differ by orders of magnitude, which an arithmetic mean would leave to the
        # slowest.
        seconds = geometric(gather(result, name, lambda m: m.warm))
        sizes = gather(result, name, (lambda m: m.max_error) if known else (lambda m: m.gap))
        if seconds is not None and sizes and all(math.isfinite(size) for size in sizes):
            found[name] = (seconds, max(*sizes, FLOOR))
    return "max |Δp|" if known else "gap of bounds (nats)", found


def _figure(
    drawn: Sequence[tuple[FamilyResult, str, dict[str, tuple[float, float]]]], peers: set[str]
) -> Figure:
    from calibration.figures.shown_figure import ShownFigure
    from calibration.figures.style import paper_style

    names = list(dict.fromkeys(name for *_, found in drawn for name in found))
    looks = {name: _look(at, name in peers) for at, name in enumerate(names)}
    columns = min(_COLUMNS, len(drawn))
    rows = math.ceil(len(drawn) / columns)
    legend_rows = math.ceil(len(names) / (2 * columns))
    height = _PANEL[1] * rows + _LEGEND * legend_rows / 2
    with paper_style():
        figure = ShownFigure(figsize=(_PANEL[0] * columns, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for place, (result, what, found) in zip(axes, drawn, strict=False):
            _panel(place, result.name, what, found, looks)
        for place in axes[len(drawn) :]:
            place.set_axis_off()
        handles = [axes[0].plot([], [], **look)[0] for look in looks.values()]
        figure.legend(
            handles, names, loc="outside lower center", ncols=2 * columns, columnspacing=1.0
        )
    return figure


def _panel(
    axes: Axes,
    title: str,
    what: str,
    found: Mapping[str, tuple[float, float]],
    looks: Mapping[str, Mapping[str, Any]],
) -> None:
    axes.set(xlabel="seconds per warm call", ylabel=what, title=title)
    draw_frontier(axes, found, looks)
    # A single decade would be cut to nothing, and one value has no decade.
    for limits, setter in ((axes.get_xlim(), axes.set_xlim), (axes.get_ylim(), axes.set_ylim)):
        if limits[1] / limits[0] < 10.0:
            centre = math.sqrt(limits[0] * limits[1])
            setter(centre / math.sqrt(10.0), centre * math.sqrt(10.0))


def _look(at: int, peer: bool) -> dict[str, Any]:
    """How an algorithm is drawn: those by other hands are hollow."""
    from calibration.figures.style import COLOURS, MARKERS

    return {
        "linestyle": "none",
        "color": COLOURS[at % len(COLOURS)],
        "marker": MARKERS[at % len(MARKERS)],
        "fillstyle": "none" if peer else "full",
    }
