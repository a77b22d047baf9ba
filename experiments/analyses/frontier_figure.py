"""Error against time: a panel for each family of graphs, a point for each backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibration.figures.panels import legend_below, nth_colour, nth_marker, panel_grid
from experiments.findings.figures import pareto

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_IN_A_ROW = 4
"""Panels in a row."""

FLOOR = 1e-12
"""Smaller errors are drawn here: they are rounding, and their size says nothing."""


def draw_frontier(
    axes: Axes,
    points: Mapping[str, tuple[float, float]],
    looks: Mapping[str, Mapping[str, Any]],
) -> None:
    """Draw (seconds, error) by name, and the frontier as steps behind them."""
    axes.set(xscale="log", yscale="log")
    # What is reached at a time stays reached until the next point.
    axes.step(
        *zip(*pareto(points), strict=True), where="post", color="0.7", linewidth=0.8, zorder=1
    )
    for name, (seconds, error) in points.items():
        axes.plot([seconds], [error], zorder=2, clip_on=False, **looks[name])


def frontier_figure(overall: pd.DataFrame) -> Figure:
    """Mean error against seconds of a call, a panel per family that has both."""
    known = overall.dropna(subset=["mean_error", "seconds"])
    families = list(dict.fromkeys(known["graphs"])) or [""]
    drawn = _looks(list(overall["backend"]))
    grid = panel_grid(len(families), (2.6, 1.8), most=_IN_A_ROW, sharex=True, sharey=True)
    with grid as (figure, places):
        for axes, family in zip(places, families, strict=True):
            family_rows = known[known["graphs"] == family].set_index("backend")
            points = {
                str(name): (row["seconds"], max(row["mean_error"], FLOOR))
                for name, row in family_rows.iterrows()
            }
            if points:
                draw_frontier(axes, points, drawn)
            axes.set_title(family, pad=2.0)
        for axes in places[-min(len(places), _IN_A_ROW) :]:
            axes.set_xlabel("Seconds per call")
        figure.supylabel("Mean |Δp|", fontsize=8.0)
        _draw_legend(figure, places[0], drawn)
        return figure


def _looks(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How the points of each backend are drawn; after the palette's end markers are hollow."""
    from calibration.figures.style import COLOURS

    return {
        label: {
            "color": nth_colour(at),
            "linestyle": "none",
            "marker": nth_marker(at),
            "markersize": 3.5,
            "fillstyle": "full" if at < len(COLOURS) else "none",
        }
        for at, label in enumerate(dict.fromkeys(labels))
    }


def _draw_legend(figure: Any, axes: Any, drawn: Mapping[str, Mapping[str, Any]]) -> None:
    """Name backends, drawn as `_looks` says, below a figure."""
    handles = [axes.plot([], [], **look)[0] for look in drawn.values()]
    legend_below(figure, handles, list(drawn), 8, columnspacing=1.2, handletextpad=0.2)
