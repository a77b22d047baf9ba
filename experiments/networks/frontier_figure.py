"""Accuracy against time: errors of marginals, and certified brackets of log Z, by dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.figures.panels import (
    COLUMN,
    PAGE,
    legend_below,
    nth_color,
    nth_marker,
    panels,
)
from experiments.findings.figures import pareto

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_IN_A_ROW = 4
"""Panels in a row."""

_HEIGHT = 1.6
"""Inches of a row of panels."""

FLOOR = 1e-12
"""Smaller errors of marginals are drawn here, and smaller errors of log Z at 0, because they are
rounding."""

_LINEAR = 1e-3
"""Nats around the reference with a linear scale; beyond, the scale is logarithmic."""

_AROUND = 0.1
"""Decades beyond the outer tick labels, so that labels of neighboring panels do not meet."""

Looks = Mapping[str, Mapping[str, Any]]
"""Styles of the points of each backend."""


def frontier_figure(overall: pd.DataFrame) -> Figure:
    """Mean error of marginals, and the bracket of log Z, against seconds of a call.

    Each dataset has a panel of the errors, with the frontier as steps, above a panel of the
    brackets: a line from the certified lower to the certified upper bound, and a marker at the
    estimate or bound that the backend reports, in nats from the reference.

    Args:
        overall: rows of `experiments.networks.summary.summarize`.
    """
    looks = _looks(list(overall["backend"]))
    timed = overall.dropna(subset=["seconds"])
    kinds = [
        (_draw_errors, "Mean error of marginals", timed.dropna(subset=["mean_error"])),
        (_draw_brackets, "log Z − reference (nats)", timed[_has_bracket(timed)]),
    ]
    kinds = [kind for kind in kinds if len(kind[2])] or kinds[:1]
    datasets = [
        name
        for name in dict.fromkeys(overall["dataset"])
        if any((rows["dataset"] == name).any() for _, _, rows in kinds)
    ] or [""]
    columns = min(len(datasets), _IN_A_ROW)
    parts = [datasets[at : at + columns] for at in range(0, len(datasets), columns)]
    n_rows = len(parts) * len(kinds)
    size = (COLUMN if columns == 1 else PAGE, _HEIGHT * n_rows + 0.4)
    with panels(n_rows, columns, size, sharex=True, sharey="row") as (figure, grid):
        for at, part in enumerate(parts):
            for below, (draw, title, rows) in enumerate(kinds):
                row_of_panels = grid[at * len(kinds) + below]
                for axes, dataset in zip(row_of_panels, part, strict=False):
                    draw(axes, rows[rows["dataset"] == dataset].set_index("backend"), looks)
                    if below == 0:
                        axes.set_title(dataset, pad=2.0)
                    if below == len(kinds) - 1:
                        axes.set_xlabel("Seconds per call")
                        axes.tick_params(labelbottom=True)
                row_of_panels[0].set_ylabel(title)
                _widen(row_of_panels[0], of_errors=draw is _draw_errors)
                for axes in row_of_panels[len(part) :]:
                    axes.remove()
        grid[0][0].set_xlim(_decades(*grid[0][0].get_xlim()))
        # A backend without a point, such as an absent program, has no entry.
        drawn = {name for _, _, rows in kinds for name in rows["backend"]}
        shown = {name: look for name, look in looks.items() if name in drawn}
        _draw_legend(figure, grid[0][0], shown or looks)
        return figure


def _widen(axes: Axes, *, of_errors: bool) -> None:
    """Widen a row of panels until its axis of errors has two round numbers."""
    low, high = axes.get_ylim()
    axes.set_ylim(_decades(low, high) if of_errors else (min(low, -_LINEAR), max(high, _LINEAR)))


def _decades(low: float, high: float) -> tuple[float, float]:
    """Return limits of a logarithmic axis that hold at least two powers of ten.

    Backends take nearly the same time on small networks. Matplotlib labels an axis below a decade
    with multiples of powers of ten, which run into each other.
    """
    first, last = math.log10(low), math.log10(high)
    if math.floor(last) > math.ceil(first):
        return low, high
    return 10.0 ** (math.floor(first) - _AROUND), 10.0 ** (math.ceil(last) + _AROUND)


def _draw_errors(axes: Axes, rows: pd.DataFrame, looks: Looks) -> None:
    """Draw the mean errors of backends, and the frontier as steps behind them."""
    _set_scales(axes, "log")
    points = {
        str(name): (row["seconds"], max(row["mean_error"], FLOOR)) for name, row in rows.iterrows()
    }
    if not points:
        return
    # A value stays until the next point.
    axes.step(
        *zip(*pareto(points), strict=True), where="post", color="0.7", linewidth=0.8, zorder=1
    )
    for name, (seconds, error) in points.items():
        axes.plot([seconds], [error], zorder=2, clip_on=False, **looks[name])


def _draw_brackets(axes: Axes, rows: pd.DataFrame, looks: Looks) -> None:
    """Draw bounds on log Z as vertical lines, and reported values as markers."""
    _set_scales(axes, "symlog", linthresh=_LINEAR)
    axes.axhline(0.0, color="0.7", linewidth=0.8, zorder=1)
    for name, row in rows.iterrows():
        look = looks[str(name)]
        errors = row[["lower_error", "upper_error", "log_z_error"]].to_numpy(dtype=float)
        *ends, value = np.where(np.abs(errors) < FLOOR, 0.0, errors)
        if np.isfinite(ends).all():
            axes.plot(
                [row["seconds"]] * 2, ends, color=look["color"], linewidth=1.2, marker="_",
                markersize=4.0, zorder=2,
            )  # fmt: skip
        elif np.isfinite(ends).any():
            # A one-sided bound has an arrow to the open side.
            known = int(np.isfinite(ends).argmax())
            axes.plot(
                [row["seconds"]], [ends[known]], color=look["color"], linestyle="none",
                marker=("^", "v")[known], markersize=5.5, fillstyle="none", zorder=2,
            )  # fmt: skip
        if np.isfinite(value):
            axes.plot([row["seconds"]], [value], zorder=3, **look)


def _set_scales(axes: Axes, scale: str, **settings: float) -> None:
    """Set the scales of a panel, with tick labels only at powers of ten."""
    from matplotlib.ticker import NullFormatter

    axes.set(xscale="log")
    axes.set_yscale(scale, **settings)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())


def _has_bracket(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return True if a row has a bracket of log Z to draw."""
    return rows[["lower_error", "upper_error", "log_z_error"]].notna().any(axis=1)


def _looks(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Styles of each backend's points; beyond the palette's size markers are hollow."""
    from calibration.figures.style import COLORS

    return {
        label: {
            "color": nth_color(at),
            "linestyle": "none",
            "marker": nth_marker(at),
            "markersize": 3.5,
            "fillstyle": "full" if at < len(COLORS) else "none",
        }
        for at, label in enumerate(dict.fromkeys(labels))
    }


def _draw_legend(figure: Any, axes: Any, looks: Looks) -> None:
    """Name backends below a figure."""
    handles = [axes.plot([], [], **look)[0] for look in looks.values()]
    legend_below(figure, handles, list(looks), 8, columnspacing=1.2, handletextpad=0.2)
