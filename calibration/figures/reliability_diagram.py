"""Reliability diagrams of one or more methods."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from calibration.curves.histograms import HISTOGRAM_BINS
from calibration.curves.reliability_bins import ReliabilityBins
from calibration.figures.panels import COLUMN, PAGE, coincide, shared_panels
from calibration.figures.style import COLOURS, DASHES, MARKERS, paper_style
from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.nouns import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from calibration.figures.shown_figure import ShownFigure

_PANELS_IN_A_ROW = 3
_RUG = 0.055
"""Height of a row of the rug, in units of the vertical axis."""

_LETTER, _HANDLE = 0.05, 0.36
"""Widths of a letter, and of the handle before a name, in inches."""

_LEFT, _RIGHT, _GAP = 0.48, 0.1, 0.24
"""Inches left of the first panel, right of the last, and between two."""

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
    """Reliability diagram of one or more methods, with histograms of P below.

    Points lie at the mean predicted probability and the observed share of true atoms of each bin,
    bands are their intervals; on the diagonal a method is calibrated. Below, each method has a
    histogram of its P over 21 equal parts of [0, 1]. Methods
    whose points nowhere lie farther apart than 0.01 are drawn once and named together; more than
    three curves are spread over several panels.

    Args:
        methods: reliability bins by the name that the figure shows, drawn in this order.
        title: text above the figure, or None.
        panels: by method, a text that methods of one panel share; used for more than three curves.

    Returns:
        A matplotlib Figure as wide as a column (3.4 inches), or as a page (6.9 inches) where there
        are several panels; `save_figure` writes it. Its `caption` states the numbers of claims and
        what the bands are.

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

    columns = min(len(parts), _PANELS_IN_A_ROW)
    rows = -(-len(parts) // columns)
    width, characters = (COLUMN, 58) if columns == 1 else (PAGE, 120)
    most = max(map(len, parts))
    heading = textwrap.fill(title, characters) if title else ""
    # Where panels stand follows from the few texts around them: to have a layout found, every
    # text would be measured twice, which takes as long as drawing them.
    side = (width - _LEFT - _RIGHT - (columns - 1) * _GAP) / columns
    high = side * (1.03 + _RUG * most)
    above = 0.0
    with paper_style():
        figure = ShownFigure(figsize=(width, width))
        figure.caption = caption
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes, part in zip(grid.flat, parts, strict=False):
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
            above = max(above, _name(axes, lines, list(part), side, figure.dpi))
        for axes in grid.flat[len(parts) :]:
            axes.remove()
        texts = [
            figure.supxlabel("Predicted probability", fontsize=8.0),
            figure.suptitle(heading, fontsize=8.5),
            figure.supylabel("Observed frequency", fontsize=8.0),
        ]
        for text in texts:
            # Two dollar signs in a name are not mathematics.
            text.set_parse_math(False)
        sizes = [text.get_window_extent().height / figure.dpi for text in texts]
        bottom, top = _TICKS + sizes[0], 0.1 + sizes[1]
        step = above + high + _GAP
        height = top + rows * step - _GAP + bottom
        figure.set_size_inches(width, height)
        for (row, column), axes in np.ndenumerate(grid):
            left, base = _LEFT + column * (side + _GAP), bottom + (rows - 1 - row) * step
            place = (left / width, base / height, side / width, high / height)
            axes.set_position(place)
        middle = (_LEFT + (width - _LEFT - _RIGHT) / 2) / width
        texts[0].set_position((middle, 0.05 / height))
        texts[1].set_position((middle, 1 - 0.05 / height))
        texts[2].set_position((0.05 / width, (bottom + height - top) / 2 / height))
    return figure


def _coincide(one: ReliabilityBins, other: ReliabilityBins) -> bool:
    return (
        one.n_atoms == other.n_atoms
        and one.interval == other.interval
        and len(one.count) == len(other.count)
        and coincide(one.mean_predicted, other.mean_predicted)
        and coincide(one.observed, other.observed)
    )


def _caption(methods: Mapping[str, ReliabilityBins]) -> str:
    """Sentences on the numbers of claims and on the bands; what all methods share stands once."""
    sizes = {each.n_atoms for each in methods.values()}
    kinds = {(each.level, each.interval, each.n_responses) for each in methods.values()}
    bands = "Bands: intervals."
    if len(kinds) == 1:
        bands = f"Bands: {kind_of_intervals(next(iter(methods.values())))}."
    if len(sizes) == 1:
        return f"{counted(sizes.pop(), 'claim')}. {bands}"
    each = (f"{name} {counted(bins.n_atoms, 'claim')}" for name, bins in methods.items())
    return f"{'; '.join(each)}. {bands}"


def kind_of_intervals(bins: ReliabilityBins) -> str:
    """The level and the method of the intervals of bins, in words."""
    how = "Wilson, claims independent"
    if bins.interval == "bootstrap" and bins.n_responses is not None:
        how = f"bootstrap over {counted(bins.n_responses, 'response')}"
    return f"{100 * bins.level:g}% intervals ({how})"


def _draw_bins(axes: Axes, _: str, bins: ReliabilityBins, look: dict[str, Any]) -> Line2D:
    draw_band(axes, bins.mean_predicted, bins.lower, bins.upper, look["color"])
    (line,) = axes.plot(
        bins.mean_predicted,
        bins.observed,
        markeredgecolor="white",
        markeredgewidth=0.5,
        clip_on=False,
        zorder=3,
        **look,
    )
    return line


def draw_band(axes: Axes, at: Floats, lower: Floats, upper: Floats, colour: str) -> None:
    """Draw a band in the colour of its curve, below it."""
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


def _name(
    axes: Axes,
    lines: Sequence[Line2D],
    names: Sequence[str],
    width: float,
    dots_per_inch: float,
) -> float:
    """Name curves above their panel, which is `width` inches wide.

    Returns:
        The height of the names in inches.
    """
    characters = int((width - _HANDLE) / _LETTER)
    wrapped = [
        "\n".join(textwrap.fill(line, characters) for line in name.split("\n")) for name in names
    ]
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
    for text, name in zip(legend.get_texts(), wrapped, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
    return legend.get_window_extent().height / dots_per_inch
