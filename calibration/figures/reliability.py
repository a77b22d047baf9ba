"""Reliability diagrams of one or more methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calibration.curves.reliability import ReliabilityBins
from calibration.figures.sheet import draw_histogram, panel_figure
from calibration.figures.style import COLOURS, DASHES, MARKERS
from factormodels.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def reliability_diagram(
    methods: Mapping[str, ReliabilityBins], *, title: str | None = None
) -> Figure:
    """Reliability diagram of one or more methods, with histograms of P below.

    Points lie at the mean predicted probability and the observed share of true atoms of each bin,
    with their intervals; on the diagonal a method is calibrated. Under the diagram each method
    has a strip that counts its atoms in each of 21 equal parts of [0, 1]. Where methods agree,
    those drawn later have smaller points and gaps in their lines, so that the earlier ones stay
    in sight.

    Args:
        methods: reliability bins by the name that the legend shows, drawn in this order.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide, the width of a column; `save_figure` writes it.

    Raises:
        InputError: if there is no method, or one is not given as ReliabilityBins.
    """
    if not methods:
        raise InputError("methods is empty; give at least one method's reliability bins by name")
    for name, bins in methods.items():
        if not isinstance(bins, ReliabilityBins):
            raise InputError(
                f"methods[{name!r}] is of type {type(bins).__name__}; give what reliability_bins "
                "returns"
            )
    return panel_figure(
        lambda axes: _draw_diagram(axes, list(methods.values())),
        _legend_entries(methods),
        labels=("Predicted probability of being true", "Observed share of true atoms"),
        strips=[
            partial(draw_histogram, histogram=bins.histogram, colour=COLOURS[row % len(COLOURS)])
            for row, bins in enumerate(methods.values())
        ],
        strips_label="Atoms",
        title=title,
    )


def _legend_entries(methods: Mapping[str, ReliabilityBins]) -> list[str]:
    """Name of each method, and last what the vertical lines are.

    What all methods share (number of atoms, kind of interval) is told once.
    """
    bins = list(methods.values())
    sizes = {each.n_atoms for each in bins}
    kinds = {(each.level, each.interval, each.n_responses) for each in bins}
    names = list(methods)
    note = "intervals"
    if len(kinds) == 1:
        level, interval, n_responses = kinds.pop()
        how = "Wilson, atoms independent"
        if interval == "bootstrap":
            how = f"bootstrap over {n_responses:,} responses"
        note = f"{100 * level:g}% intervals ({how})"
    if len(sizes) == 1:
        return [*names, f"{sizes.pop():,} atoms, {note}"]
    return [
        *(f"{name} ({each.n_atoms:,} atoms)" for name, each in methods.items()),
        note[0].upper() + note[1:],
    ]


def _draw_diagram(axes: Axes, methods: Sequence[ReliabilityBins]) -> list[Line2D]:
    """Draw the diagonal and the methods; return what the legend shows, the interval last."""
    from matplotlib.lines import Line2D as Line

    axes.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    handles = []
    for row, bins in enumerate(methods):
        colour, marker = COLOURS[row % len(COLOURS)], MARKERS[row % len(MARKERS)]
        earlier = (len(methods) - 1 - row) / max(len(methods) - 1, 1)
        axes.vlines(
            bins.mean_predicted,
            bins.lower,
            bins.upper,
            color=colour,
            linewidth=0.8 + 1.0 * earlier,
            alpha=0.6,
            clip_on=False,
            zorder=2,
        )
        (line,) = axes.plot(
            bins.mean_predicted,
            bins.observed,
            color=colour,
            linewidth=1.0,
            linestyle=DASHES[row % len(DASHES)],
            marker=marker,
            markersize=4.0 + 2.2 * earlier,
            markeredgecolor="white",
            markeredgewidth=0.5,
            clip_on=False,
            zorder=3,
        )
        handles.append(line)
    handles.append(
        Line([], [], color="0.4", linewidth=0.8, linestyle="none", marker="|", markersize=7)
    )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_yticks(np.linspace(0, 1, 6))
    return handles
