"""Histograms of p of one or more methods, true atoms upwards and false ones downwards."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from calibration.curves import LabelHistogram
from calibration.curves.histograms import HISTOGRAM_BINS
from calibration.figures.curve_notes import check_curves
from calibration.figures.panels import COLUMN, panels
from calibration.figures.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def score_histograms(methods: Mapping[str, LabelHistogram], *, title: str | None = None) -> Figure:
    """Histogram of p for each method, true atoms upwards and false ones downwards.

    Args:
        methods: histograms by the name that each panel shows, drawn in this order.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide; `save_figure` writes it.

    Raises:
        InputError: if there is no method, or one is not a LabelHistogram.
    """
    check_curves(methods, LabelHistogram, "label_histogram")
    names = [textwrap.fill(name, 52) for name in methods]
    lines = sum(1 + name.count("\n") for name in names)
    size = (COLUMN, 0.6 + 0.85 * len(names) + 0.14 * lines + (0.3 if title else 0.0))
    with panels(len(names), 1, size, sharex=True) as (figure, grid):
        for axes, name, histogram in zip(grid.flat, names, methods.values(), strict=True):
            _draw(axes, histogram)
            axes.set_title(name, loc="left", fontsize=8.0, parse_math=False)
        axes.set_xlabel("Predicted probability of being true")
        # One panel has no room for more.
        what = "Atoms: false below, true above" if len(names) > 1 else "False   True"
        figure.supylabel(what, fontsize=8.0)
        if title:
            figure.suptitle(textwrap.fill(title, 58), fontsize=8.5, parse_math=False)
    return figure


def _draw(axes: Axes, histogram: LabelHistogram) -> None:
    draw_label_bars(axes, histogram)
    axes.axhline(0, color="black", linewidth=0.6)
    most = max(int(histogram.true.max()), int(histogram.false.max()))
    axes.set_xlim(0, 1)
    ends = [-int(histogram.false.max()), int(histogram.true.max())]
    axes.set_ylim(min(ends[0], -0.2 * most) * 1.08, max(ends[1], 0.2 * most) * 1.08)
    # A small count beside the other would be written over the zero.
    ticks = [0, *(end for end in ends if abs(end) >= 0.3 * most)]
    axes.set_yticks(ticks, [f"{abs(tick):,}" for tick in ticks])
    axes.set_xticks(np.linspace(0, 1, 6))


def draw_label_bars(axes: Axes, histogram: LabelHistogram) -> None:
    """Draw the bars of true atoms upwards and those of false ones downwards."""
    edges = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)[:-1]
    for counts, colour in ((histogram.true, COLOURS[0]), (-histogram.false, COLOURS[1])):
        axes.bar(
            edges, counts, width=1 / HISTOGRAM_BINS, align="edge", color=colour,
            edgecolor="white", linewidth=0.4,
        )  # fmt: skip
