"""Histograms of p of one or more methods, true atoms upwards and false ones downwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from calibration.curves import LabelHistogram
from calibration.curves.histograms import HISTOGRAM_BINS
from calibration.figures.curve_notes import check_curves
from calibration.figures.single_panel import Sheet, wrap
from calibration.figures.style import COLOURS, paper_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL = 0.85
"""Height of a panel of `score_histograms`, in inches."""


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
    from calibration.figures.shown_figure import ShownFigure

    def draw(axes: Axes, histogram: LabelHistogram) -> None:
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

    with paper_style():
        figure = ShownFigure(figsize=(Sheet.width, 1.0))
        texts = [figure.text(0, 0, "", ha="left", va="bottom") for _ in methods]
        for text, name in zip(texts, methods, strict=True):
            wrap([text], [name], text, figure.dpi, Sheet.side)
        heading = figure.text(0, 0, "", ha="center", va="top", fontsize=8.5)
        wrap([heading], [title or ""], heading, figure.dpi, Sheet.side)
        heights = [text.get_window_extent().height / figure.dpi for text in texts]
        above = heading.get_window_extent().height / figure.dpi + 0.09 if title else 0.02
        total = above + 0.40 + sum(heights) + len(texts) * (_PANEL + 0.12)
        figure.set_size_inches(Sheet.width, total)
        heading.set_position(((Sheet.left + Sheet.side / 2) / Sheet.width, 1 - 0.04 / total))
        top = total - above
        first: Axes | None = None
        for text, height, histogram in zip(texts, heights, methods.values(), strict=True):
            top -= height + _PANEL + 0.12
            axes = figure.add_axes(
                (Sheet.left / Sheet.width, top / total, Sheet.side / Sheet.width, _PANEL / total),
                sharex=first,
            )
            first = first or axes
            draw(axes, histogram)
            axes.tick_params(labelbottom=False)
            text.set_position((Sheet.left / Sheet.width, (top + _PANEL + 0.04) / total))
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("Predicted probability of being true")
        figure.text(
            Sheet.label / Sheet.width,
            (0.40 + (total - above - 0.40) / 2) / total,
            # One panel has no room for more.
            "Atoms: false below, true above" if len(methods) > 1 else "False   True",
            rotation=90,
            ha="right",
            va="center",
        )
    return figure


def draw_label_bars(axes: Axes, histogram: LabelHistogram) -> None:
    """Draw the bars of true atoms upwards and those of false ones downwards."""
    edges = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)[:-1]
    for counts, colour in ((histogram.true, COLOURS[0]), (-histogram.false, COLOURS[1])):
        axes.bar(
            edges, counts, width=1 / HISTOGRAM_BINS, align="edge", color=colour,
            edgecolor="white", linewidth=0.4,
        )  # fmt: skip
