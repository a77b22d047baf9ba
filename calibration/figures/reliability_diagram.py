"""Reliability diagrams of one or more methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from calibration.curves.histograms import HISTOGRAM_BINS
from calibration.curves.reliability_bins import ReliabilityBins
from calibration.figures.panels import COLUMN, PAGE, coincide, reach, shared_panels, write_title
from calibration.figures.style import COLORS, DASHES, MARKERS, paper_style
from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.nouns import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    from calibration.figures.shown_figure import ShownFigure

_PANELS_IN_A_ROW = 3
_RUG = 0.055
"""Height of a row of the rug, in units of the vertical axis."""

_LETTER, _HANDLE = 0.05, 0.36
"""Width of a letter, and of the handle before a name, in inches."""

_LEFT, _RIGHT, _GAP = 0.48, 0.1, 0.24
"""Space left of the first panel, right of the last, and between panels, in inches."""

_LEAST = 1.7
"""Side of a panel in a row of several, in inches."""

_FEWEST = 6
"""Smallest number of letters per line of a name."""

_TICKS = 0.36
"""Space below a panel for the numbers at its ticks, with a margin, in inches."""


class Rugged(Protocol):
    """A curve over probabilities with a histogram of its atoms."""

    @property
    def histogram(self) -> Integers:
        """Number of atoms with p in each of 21 equal parts of [0, 1], int64 (21,)."""


RuggedCurve = TypeVar("RuggedCurve", bound=Rugged)


def reliability_diagram(
    methods: Mapping[str, ReliabilityBins],
    *,
    title: str | None = None,
    panels: Mapping[str, str] = MappingProxyType({}),
) -> ShownFigure:
    """Draw a reliability diagram of one or more methods from bins, with histograms of P.

    A point shows the mean predicted probability and the observed share of true atoms of a bin, and
    a bar shows its interval. The points of a calibrated method are on the diagonal. Below, each
    method has a histogram of P over 21 equal parts of [0, 1]. Methods whose points differ by at
    most 0.01 are drawn once and named together. More than three curves are distributed over several
    panels. `corp_diagram` draws bins with the CORP line.

    Args:
        methods: reliability bins by the name that the figure shows, drawn in this order.
        title: text above the figure, or None.
        panels: text by method; methods with the same text share a panel if there are more than
            three curves.

    Returns:
        A matplotlib Figure with the width of a column (3.4 inches), or of a page (6.9 inches) with
        several panels; `save_figure` writes it. Its `caption` states the numbers of claims and
        describes the bars.

    Raises:
        InputError: if there is no method, or a value is not ReliabilityBins.
    """
    if not methods:
        raise InputError("methods is empty; give at least one method's reliability bins by name")
    for name, bins in methods.items():
        if not isinstance(bins, ReliabilityBins):
            raise InputError(
                f"methods[{name!r}] is of type {type(bins).__name__}; give what reliability_bins "
                "returns"
            )
    shown = [
        {" = ".join(names): methods[names[0]] for names in panel}
        for panel in shared_panels(methods, _coincide, panels)
    ]
    return square_panels(
        shown,
        _draw_bins,
        caption=_caption({name: bins for panel in shown for name, bins in panel.items()}),
        title=title,
    )


def square_panels(
    parts: Sequence[Mapping[str, RuggedCurve]],
    draw: Callable[[Axes, str, RuggedCurve, dict[str, Any]], Line2D],
    *,
    caption: str,
    title: str | None,
) -> ShownFigure:
    """Draw panels of frequencies against probabilities, with the diagonal and histograms of p.

    The legend of each panel is above it, outside the data.

    Args:
        parts: the curves of each panel, by their names in the legend.
        draw: function that draws a curve, given the panel, its name and its look, and returns its
            line.
        caption: sentences on sample sizes, bands and bars.
        title: text above the figure, or None.
    """
    from calibration.figures.shown_figure import ShownFigure

    most = max(map(len, parts))
    width = COLUMN if len(parts) == 1 else PAGE
    with paper_style():
        figure = ShownFigure(figsize=(width, width))
        figure.caption = caption
        panels: list[Axes] = []
        legends = []
        for part in parts:
            shared: dict[str, Any] = {"sharex": panels[0], "sharey": panels[0]} if panels else {}
            panels.append(axes := figure.add_axes((0.1, 0.1, 0.8, 0.8), **shared))
            axes.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
            lines = []
            for row, (name, curve) in enumerate(part.items()):
                look = {"color": COLORS[row], "linestyle": DASHES[row]}
                lines.append(draw(axes, name, curve, {**look, "marker": MARKERS[row]}))
                _draw_rug(axes, curve.histogram, row)
            axes.axhline(0.0, color="0.75", linewidth=0.5, zorder=0)
            axes.set(xlim=(0, 1), ylim=(-0.03 - _RUG * most, 1), aspect="equal")
            axes.set_xticks(np.linspace(0, 1, 6))
            axes.set_yticks(np.linspace(0, 1, 6))
            axes.spines["left"].set_bounds(0, 1)
            legends.append(_name(axes, lines, list(part)))
        texts = (
            figure.supxlabel("Predicted probability", fontsize=8.0),
            figure.supylabel("Observed frequency", fontsize=8.0),
            write_title(figure, title or ""),
        )
        figure.arranged_by(partial(_arrange, figure, panels, legends, texts, 1.03 + _RUG * most))
    return figure


def _arrange(
    figure: ShownFigure,
    panels: Sequence[Axes],
    legends: Sequence[Legend],
    texts: tuple[Text, Text, Text],
    ratio: float,
) -> None:
    """Place panels and the texts around them for the width of a figure, and set its height.

    The positions of panels are computed from the few texts around them. A layout engine would
    measure every text twice, which takes as long as drawing.

    Args:
        figure: the figure.
        panels: its panels.
        legends: legend above each panel.
        texts: texts below, beside and above all panels.
        ratio: height of a panel divided by its width.
    """
    width = figure.get_figwidth()
    room = width - _LEFT - _RIGHT + _GAP
    columns = min(len(panels), _PANELS_IN_A_ROW, max(int(room / (_LEAST + _GAP)), 1))
    rows = -(-len(panels) // columns)
    side = room / columns - _GAP
    high = side * ratio
    above = max(_wrap_names(figure, legend, side) for legend in legends)
    below, beside, heading = texts
    bottom = _TICKS + _inches(figure, below)
    top = 0.1 + (_inches(figure, heading) if heading.get_text() else 0.0)
    step = above + high + _GAP
    height = top + rows * step - _GAP + bottom
    figure.set_size_inches(width, height)
    for at, axes in enumerate(panels):
        row, column = divmod(at, columns)
        left, base = _LEFT + column * (side + _GAP), bottom + (rows - 1 - row) * step
        axes.set_position((left / width, base / height, side / width, high / height))
        # Panels at an edge of the figure have numbers there.
        axes.tick_params(labelleft=column == 0, labelbottom=at + columns >= len(panels))
    below.set_position(((_LEFT + (width - _LEFT - _RIGHT) / 2) / width, 0.05 / height))
    beside.set_position((0.05 / width, (bottom + height - top) / 2 / height))
    heading.set_position((0.5, 1 - 0.05 / height))


def _inches(figure: Figure, artist: Text | Legend, along: str = "height") -> float:
    """Return the height or width of a text or legend, in inches."""
    extent: float = getattr(artist.get_window_extent(), along)
    return extent / figure.dpi


def _wrap_names(figure: ShownFigure, legend: Legend, side: float) -> float:
    """Wrap the legend above a panel to the width of the panel; return its height in inches."""
    most = max(int((side - _HANDLE) / _LETTER), _FEWEST)
    for letters in range(most, _FEWEST - 1, -2):
        for text in legend.get_texts():
            figure.wrap(text, letters)
        if _inches(figure, legend, "width") <= side:
            break
    return _inches(figure, legend)


def _coincide(first: ReliabilityBins, second: ReliabilityBins) -> bool:
    return (
        first.n_atoms == second.n_atoms
        and first.interval == second.interval
        and len(first.count) == len(second.count)
        and coincide(first.mean_predicted, second.mean_predicted)
        and coincide(first.observed, second.observed)
    )


def _caption(methods: Mapping[str, ReliabilityBins]) -> str:
    """Sentences on the numbers of claims and on the bars, without repetition for equal methods."""
    sizes = {each.n_atoms for each in methods.values()}
    kinds = {(each.level, each.interval, each.n_responses) for each in methods.values()}
    bars = "Bars: intervals."
    if len(kinds) == 1:
        bars = f"Bars: {kind_of_intervals(next(iter(methods.values())))}."
    if len(sizes) == 1:
        return f"{counted(sizes.pop(), 'claim')}. {bars}"
    each = (f"{name} {counted(bins.n_atoms, 'claim')}" for name, bins in methods.items())
    return f"{'; '.join(each)}. {bars}"


def kind_of_intervals(bins: ReliabilityBins) -> str:
    """Describe the level and the method of the intervals of bins."""
    how = "Wilson, claims independent"
    if bins.interval == "bootstrap" and bins.n_responses is not None:
        how = f"bootstrap over {counted(bins.n_responses, 'response')}"
    return f"{100 * bins.level:g}% intervals ({how})"


def _draw_bins(axes: Axes, _: str, bins: ReliabilityBins, look: dict[str, Any]) -> Line2D:
    draw_points(axes, bins, look)
    (line,) = axes.plot(
        bins.mean_predicted, bins.observed, clip_on=False, zorder=3, **look | {"linewidth": 0.8}
    )
    # `draw_points` drew the points; the line keeps its marker for the legend.
    line.set_markevery([])
    return line


def draw_points(axes: Axes, bins: ReliabilityBins, look: Mapping[str, Any]) -> None:
    """Draw bins as points with intervals, with the color and marker of `look`."""
    axes.errorbar(
        bins.mean_predicted,
        bins.observed,
        yerr=reach(bins.observed, bins.lower, bins.upper),
        color=look["color"],
        marker=look["marker"],
        linestyle="none",
        markersize=3.2,
        markeredgecolor="white",
        markeredgewidth=0.4,
        elinewidth=0.7,
        clip_on=False,
        zorder=4,
    )


def draw_band(axes: Axes, at: Floats, lower: Floats, upper: Floats, color: str) -> None:
    """Draw a band in the color of its curve, below it."""
    axes.fill_between(at, lower, upper, color=color, alpha=0.16, linewidth=0, zorder=2)


def _draw_rug(axes: Axes, histogram: Integers, row: int) -> None:
    bottom = -0.03 - _RUG * (row + 1)
    # Draw a single outline, because a patch per bar would take most of the time.
    axes.stairs(
        bottom + histogram / max(int(histogram.max()), 1) * 0.85 * _RUG,
        np.arange(HISTOGRAM_BINS + 1) / HISTOGRAM_BINS,
        baseline=bottom,
        fill=True,
        color=COLORS[row],
    )


def _name(axes: Axes, lines: Sequence[Line2D], names: Sequence[str]) -> Legend:
    """Add a legend of curves above their panel, and return it."""
    legend = axes.legend(
        lines,
        [str(row) for row in range(len(lines))],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.1,
        handlelength=2.0,
        labelspacing=0.25,
        fontsize=7.0,
    )
    # Set names here, because matplotlib omits names that begin with an underscore.
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
    return legend
