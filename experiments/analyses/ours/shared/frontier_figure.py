"""Error against time: a panel for each family of graphs, a point for each backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibration.figures.panels import PAGE, nth_colour, nth_marker, panels
from experiments.study.frontier import FLOOR, draw_frontier

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def frontier_figure(overall: pd.DataFrame) -> Figure:
    """Mean error against seconds of a call, a panel per family that has both."""
    known = overall.dropna(subset=["mean_error", "seconds"])
    families = list(dict.fromkeys(known["graphs"])) or [""]
    drawn = _looks(list(overall["backend"]))
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
        _draw_legend(figure, axes.flat[0], drawn)
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


def _draw_legend(figure: Any, place: Any, drawn: Mapping[str, Mapping[str, Any]]) -> None:
    """Name backends, drawn as `_looks` says, below a figure."""
    handles = [place.plot([], [], **look)[0] for look in drawn.values()]
    figure.legend(
        handles,
        list(drawn),
        loc="outside lower center",
        ncols=min(len(drawn), 8),
        columnspacing=1.2,
        handletextpad=0.2,
    )
