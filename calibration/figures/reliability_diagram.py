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
from calibration.figures.style import COLOURS, DASHES, MARKERS, paper_style
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
"""Widths of a letter, and of the handle before a name, in inches."""

_LEFT, _RIGHT, _GAP = 0.48, 0.1, 0.24
"""Inches left of the first panel, right of the last, and between two."""

_LEAST = 1.7
"""Inches of the side of a panel, if others stand beside it."""

_FEWEST = 6
"""Letters that a line of a name has at least."""

_TICKS = 0.36
"""Inches below a panel for the numbers at its ticks, with what parts them from other text."""


class Rugged(Protocol):
    """A curve over probabilities that knows how many atoms have each."""

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
    """Reliability diagram of one or more methods by bins alone, with histograms of P below.

    Points lie at the mean predicted probability and the observed share of true atoms of each bin,
    bars are their intervals; on the diagonal a method is calibrated. Below, each method has a
    histogram of its P over 21 equal parts of [0, 1]. Methods
    whose points nowhere lie farther apart than 0.01 are drawn once and named together; more than
    three curves are spread over several panels. `corp_diagram` draws bins beside the CORP line.

    Args:
        methods: reliability bins by the name that the figure shows, drawn in this order.
        title: text above the figure, or None.
        panels: by method, a text that methods of one panel share; used for more than three curves.

    Returns:
        A matplotlib Figure as wide as a column (3.4 inches), or as a page (6.9 inches) where there
        are several panels; `save_figure` writes it. Its `caption` states the numbers of claims and
        what the bars are.

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
    """Panels of frequencies against probabilities: the diagonal, curves, and histograms of p below.

    The names of the curves stand above each panel, where they cover nothing.

    Args:
        parts: the curves of each panel by the text that names them.
        draw: draws a curve, given its name, in a color and line style, and returns its line.
        caption: sentences on sample sizes, bands and bars, for below the figure.
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
                look = {"color": COLOURS[row], "linestyle": DASHES[row]}
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
    """Place panels, and the texts around them, by the width of a figure, and set its height.

    Where panels stand follows from the few texts around them: to have a layout found, every text
    would be measured twice, which takes as long as drawing them.

    Args:
        figure: the figure.
        panels: its panels.
        legends: those above each of them.
        texts: those below all panels, beside them and above.
        ratio: height of a panel, of its width.
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
        # What stands at an edge has numbers there.
        axes.tick_params(labelleft=column == 0, labelbottom=at + columns >= len(panels))
    below.set_position(((_LEFT + (width - _LEFT - _RIGHT) / 2) / width, 0.05 / height))
    beside.set_position((0.05 / width, (bottom + height - top) / 2 / height))
    heading.set_position((0.5, 1 - 0.05 / height))


def _inches(figure: Figure, artist: Text | Legend, along: str = "height") -> float:
    """Return the height or width of a text or legend."""
    extent: float = getattr(artist.get_window_extent(), along)
    return extent / figure.dpi


def _wrap_names(figure: ShownFigure, legend: Legend, side: float) -> float:
    """Break the names above a panel so that they are no wider than it; return their height."""
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
    """Sentences on the numbers of claims and on the bars; what all methods share stands once."""
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
    """The level and the method of the intervals of bins, in words."""
    how = "Wilson, claims independent"
    if bins.interval == "bootstrap" and bins.n_responses is not None:
        how = f"bootstrap over {counted(bins.n_responses, 'response')}"
    return f"{100 * bins.level:g}% intervals ({how})"


def _draw_bins(axes: Axes, _: str, bins: ReliabilityBins, look: dict[str, Any]) -> Line2D:
    draw_points(axes, bins, look)
    (line,) = axes.plot(
        bins.mean_predicted, bins.observed, clip_on=False, zorder=3, **look | {"linewidth": 0.8}
    )
    # The points lie over the line; it keeps a marker for the legend.
    line.set_markevery([])
    return line


def draw_points(axes: Axes, bins: ReliabilityBins, look: Mapping[str, Any]) -> None:
    """Draw bins as points with their intervals, in the color and with the marker of a look."""
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


def draw_band(axes: Axes, at: Floats, lower: Floats, upper: Floats, colour: str) -> None:
    """Draw a band in the color of its curve, below it."""
    axes.fill_between(at, lower, upper, color=colour, alpha=0.16, linewidth=0, zorder=2)


def _draw_rug(axes: Axes, histogram: Integers, row: int) -> None:
    bottom = -0.03 - _RUG * (row + 1)
    # One outline: a patch for every bar takes most of the time of the figure.
    axes.stairs(
        bottom + histogram / max(int(histogram.max()), 1) * 0.85 * _RUG,
        np.arange(HISTOGRAM_BINS + 1) / HISTOGRAM_BINS,
        baseline=bottom,
        fill=True,
        color=COLOURS[row],
    )


def _name(axes: Axes, lines: Sequence[Line2D], names: Sequence[str]) -> Legend:
    """Name curves above their panel, and return the legend."""
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
    # Names are set here: matplotlib would leave out one that begins with an underscore.
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
    return legend
