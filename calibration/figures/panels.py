"""Helpers for figures with several panels: sizes, looks, intervals, legends and labels."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.figures.style import COLORS, DASHES, MARKERS, paper_style
from calibration.validation import Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation, Text

    from calibration.figures.shown_figure import ShownFigure

COLUMN, PAGE = 3.4, 6.9
"""Width of a column and of a page of a paper, in inches."""

MOST_CURVES = 3
"""Largest number of curves in a panel; more curves are distributed over several panels."""

COINCIDE = 0.01
"""Curves that differ by at most this are drawn once; it is less than a marker's radius."""

Curve = TypeVar("Curve")
Named = TypeVar("Named")

_IN_A_ROW = 3
LETTERS_BESIDE = 20
"""Number of letters per line of a name beside a panel."""

_NAME = "name of a line"
_LETTER = 0.055
"""Width of a letter of a name below or beside a panel, in inches."""

_BESIDE, _CLOSEST = 0.5, 0.12
"""Space beside a panel for its numbers, and between two slanted names, in inches."""

_TITLE_LETTER = 0.057
"""Width of a letter of a title, in inches."""

_GAP = 4.0
"""Space between the end of a line and its name, in points."""


@contextmanager
def panels(
    n_rows: int, n_columns: int, size: tuple[float, float], **shared: Any
) -> Iterator[tuple[ShownFigure, NDArray[Any]]]:
    """Yield a figure and its panels, (n_rows, n_columns), within the style of papers.

    Args:
        n_rows: number of rows of panels.
        n_columns: number of columns of panels.
        size: width and height in inches.
        shared: further arguments of `Figure.subplots`, such as `sharey`.
    """
    from calibration.figures.shown_figure import ShownFigure

    # Artists must be made within the style, hence a context manager.
    with paper_style():
        figure = ShownFigure(figsize=size, layout="constrained")
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)
        if any(_names_beside(axes) for axes in figure.axes):
            figure.arranged_by(partial(_part_names, figure))


def write_title(figure: ShownFigure, title: str) -> Text:
    """Write a title above all panels, wrapped to the width of the figure."""
    text = figure.suptitle(title, fontsize=8.5)
    # Do not interpret dollar signs in a name as mathematics.
    text.set_parse_math(False)
    figure.arranged_by(lambda: figure.wrap(text, int(figure.get_figwidth() / _TITLE_LETTER)))
    return text


@contextmanager
def panel_grid(
    count: int, heights: tuple[float, float], *, most: int = _IN_A_ROW, **shared: Any
) -> Iterator[tuple[ShownFigure, list[Axes]]]:
    """Yield a figure with `count` panels; a single panel is a column wide, several are a page wide.

    Args:
        count: number of panels.
        heights: height of a figure with a single panel, and of a row of several panels, in inches.
        most: largest number of panels in a row.
        shared: further arguments of `Figure.subplots`.
    """
    columns = min(count, most)
    rows = -(-count // columns)
    size = (COLUMN, heights[0]) if columns == 1 else (PAGE, heights[1] * rows)
    with panels(rows, columns, size, **shared) as (figure, grid):
        for axes in grid.flat[count:]:
            axes.remove()
        # The lowest panel of each column has numbers, even if other columns have more panels.
        for axes in grid.flat[max(count - columns, 0) : count]:
            axes.tick_params(labelbottom=True)
        yield figure, list(grid.flat[:count])


@contextmanager
def small_multiples(
    names: Sequence[str], heights: tuple[float, float]
) -> Iterator[tuple[ShownFigure, list[tuple[Axes, list[str]]]]]:
    """Yield a `panel_grid` for curves, with the names of at most `MOST_CURVES` for each panel."""
    groups = parts(names)
    with panel_grid(len(groups), heights, sharex=True, sharey=True) as (figure, places):
        yield figure, list(zip(places, groups, strict=True))


def alike(curves: Mapping[str, Curve], same: Callable[[Curve, Curve], bool]) -> list[list[str]]:
    """Group the names of curves that are the same."""
    groups: list[list[str]] = []
    for name, curve in curves.items():
        for names in groups:
            if same(curves[names[0]], curve):
                names.append(name)
                break
        else:
            groups.append([name])
    return groups


def shared_panels(
    curves: Mapping[str, Curve],
    same: Callable[[Curve, Curve], bool],
    together: Mapping[str, str] = MappingProxyType({}),
) -> list[list[list[str]]]:
    """Distribute curves over panels; return groups of the names of equal curves for each panel.

    Args:
        curves: curves by name.
        same: function that returns whether two curves are drawn as one.
        together: text by name; curves with the same text share a panel if there are more than
            `MOST_CURVES` curves.
    """
    groups = alike(curves, same)
    if len(groups) <= MOST_CURVES:
        return [groups]
    sorted_out: dict[str, dict[str, Curve]] = {}
    for name, curve in curves.items():
        sorted_out.setdefault(together.get(name, ""), {})[name] = curve
    return [panel for part in sorted_out.values() for panel in parts(alike(part, same))]


def coincide(first: ArrayLike, other: ArrayLike, apart: float = COINCIDE) -> bool:
    """Return whether two arrays differ by at most `apart`."""
    return np.allclose(first, other, rtol=0, atol=apart, equal_nan=True)


def steps_coincide(
    first: tuple[Floats, Floats], other: tuple[Floats, Floats], height: float = 1.0
) -> bool:
    """Return whether two step functions coincide, by the area between them.

    If one steps slightly earlier than the other, their difference is large, but only there.

    Args:
        first: where the first is known, in order, and its values.
        other: the same of the other.
        height: extent of the axis of values.
    """
    at = np.linspace(0.0, 1.0, 501)
    apart = np.abs(np.interp(at, *first) - np.interp(at, *other)).mean()
    return bool(apart <= COINCIDE / 2 * height)


def nth_color(at: int) -> str:
    """Color of a line by its index in a panel; the palette repeats after its end."""
    return COLORS[at % len(COLORS)]


def nth_marker(at: int) -> str:
    """Marker of a line by its index."""
    return MARKERS[at % len(MARKERS)]


def nth_dash(at: int) -> Any:
    """Dash style of a line by its index."""
    return DASHES[at % len(DASHES)]


def nth_look(at: int) -> dict[str, Any]:
    """Color, marker and dash style of a line by its index, distinct even without color."""
    return {
        "color": nth_color(at),
        "marker": nth_marker(at),
        "linestyle": nth_dash(at),
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }


def legend_above(
    axes: Axes, handles: Sequence[Artist], names: Sequence[str], columns: int = 56
) -> None:
    """Add a legend above a panel, wrapped to `columns` letters per line."""
    legend = axes.legend(
        handles, [str(at) for at in range(len(handles))], loc="lower left",
        bbox_to_anchor=(0.0, 1.0), borderaxespad=0.1, handlelength=2.0, labelspacing=0.2,
        borderpad=0.1, fontsize=7.0,
    )  # fmt: skip
    # Set names here, because matplotlib omits names that begin with an underscore.
    for text, name in zip(legend.get_texts(), names, strict=True):
        # Do not interpret dollar signs in a name as mathematics.
        text.set_parse_math(False)
        text.set_text(textwrap.fill(name, columns))


def legend_below(
    figure: ShownFigure, handles: Sequence[Artist], names: Sequence[str], most: int, **look: Any
) -> None:
    """Add a legend below all panels, with as many columns as fit the width of the figure.

    Args:
        figure: the figure, made by `panels` or with a constrained layout.
        handles: artists of the legend.
        names: names of the artists.
        most: largest number of columns.
        look: further arguments of `Figure.legend`, such as `columnspacing`.
    """

    def arrange() -> None:
        # The number of columns of a legend cannot be changed, so make a new legend.
        shown = list(names)
        for legend in figure.legends:
            shown = [text.get_text() for text in legend.get_texts()]
            legend.remove()
        with paper_style():
            legend_within(figure, handles, shown, most, loc="outside lower center", **look)

    figure.arranged_by(arrange)


def legend_within(
    figure: Figure, handles: Sequence[Artist], names: Sequence[str], most: int, **look: Any
) -> Legend:
    """Add a legend to a figure, with as many columns as fit its width, and return it.

    Args:
        figure: the figure.
        handles: artists of the legend.
        names: names of the artists.
        most: largest number of columns.
        look: further arguments of `Figure.legend`.
    """
    for columns in range(min(most, len(names)), 0, -1):
        legend = figure.legend(
            handles, [str(at) for at in range(len(names))], ncols=columns, **look
        )
        # Set names here, because matplotlib omits names that begin with an underscore.
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_parse_math(False)
            text.set_text(name)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
    return legend


def legible(color: Any) -> tuple[float, float, float]:
    """Darken a color of the palette for text."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(color)
    return 0.72 * red, 0.72 * green, 0.72 * blue


def name_lines(axes: Axes, lines: Mapping[str, Line2D]) -> None:
    """Write each line's name beside its last point, at the right edge of a panel of `panels`.

    Overlapping names are moved apart when the figure is complete.
    """
    for name, line in lines.items():
        points = np.asarray(line.get_xydata(), dtype=np.float64)
        points = points[np.isfinite(points).all(axis=1)]
        if not len(points):
            continue
        axes.annotate(
            name,
            (1.0, float(points[-1, 1])),
            xycoords=("axes fraction", "data"),
            xytext=(_GAP, 0.0),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize=7.0,
            color=legible(line.get_color()),
            annotation_clip=False,
            parse_math=False,
            gid=_NAME,
        )


def _names_beside(axes: Axes) -> list[Annotation]:
    """Return the names that `name_lines` wrote beside a panel."""
    from matplotlib.text import Annotation

    return [each for each in axes.texts if isinstance(each, Annotation) and each.get_gid() == _NAME]


def _part_names(figure: ShownFigure) -> None:
    """Move the names of lines apart in each panel, by the smallest total squared distance."""
    from scipy.optimize import isotonic_regression

    beside = [_names_beside(axes) for axes in figure.axes]
    for name in chain(*beside):
        figure.wrap(name, LETTERS_BESIDE)
        name.xyann = (_GAP, 0.0)
    # The ends of lines are known after the layout; drawing the figure would take twice as long.
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    for axes, names in zip(figure.axes, beside, strict=True):
        boxes = [name.get_window_extent() for name in names]
        middles = np.array([(box.y0 + box.y1) / 2 for box in boxes])
        order = np.argsort(middles, kind="stable")
        heights = np.array([box.height + 1.0 for box in boxes])[order]
        # Least squares with minimum distances is isotonic regression after subtracting these.
        apart = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])[: len(names)]
        if not names:
            continue
        moved = isotonic_regression(middles[order] - apart).x
        # Keep all names within the height of the panel if it has enough room.
        lowest, highest = axes.bbox.y0 + heights[0] / 2, axes.bbox.y1 - heights[-1] / 2
        moved = np.maximum(np.minimum(moved, highest - apart[-1]), lowest) + apart
        for at, wanted in zip(order, moved, strict=True):
            now = (boxes[at].y0 + boxes[at].y1) / 2
            names[at].xyann = (_GAP, 72.0 * (wanted - now) / figure.dpi)


def parts(names: Sequence[Named]) -> list[list[Named]]:
    """Split names into the fewest parts of at most `MOST_CURVES`, of about equal size."""
    count = -(-len(names) // MOST_CURVES)
    ends = [round(len(names) * part / count) for part in range(count + 1)] if count else [0]
    return [list(names[start:end]) for start, end in pairwise(ends)]


def reach(value: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> NDArray[np.float64]:
    """Lengths of error bars below and above values, (2, n), for `errorbar`; 0 without interval."""
    arms = np.asarray([np.subtract(value, lower), np.subtract(upper, value)], dtype=np.float64)
    # An estimate may be outside its bootstrap interval, but lengths must not be negative.
    return np.maximum(np.nan_to_num(arms), 0.0)


def draw_interval(axes: Axes, height: float, ends: Sequence[float], **look: Any) -> None:
    """Draw a point with a horizontal interval; `ends` are its value, lower and upper end."""
    value, lower, upper = ends
    arms = reach([value], [lower], [upper])
    axes.errorbar([value], [height], xerr=arms, elinewidth=0.8, **look)


def draw_line(
    axes: Axes, across: ArrayLike, line: pd.DataFrame, name: str, floor: float, **look: Any
) -> Line2D:
    """Draw a column with its intervals NAME_lower and NAME_upper; raise values to `floor`.

    A logarithmic axis cannot show 0, the error of exact inference.
    """
    values, lower, upper = (
        np.maximum(line[each].fillna(line[name]).to_numpy(np.float64), floor)
        for each in (name, f"{name}_lower", f"{name}_upper")
    )
    arms = reach(values, lower, upper)
    drawn = axes.errorbar(across, values, yerr=arms, linewidth=0.9, elinewidth=0.6, **look)
    return drawn.lines[0]


def name_places(figure: ShownFigure, panel: Axes, names: Sequence[str], columns: int) -> None:
    """Label the positions 0, 1, ... on the horizontal axis of a panel.

    Names that do not fit side by side are slanted. If slanted names would touch, only every second
    or third name is shown.

    Args:
        figure: the figure.
        panel: the panel.
        names: the names.
        columns: number of panels in a row.
    """

    def arrange() -> None:
        beside = [line for name in _names_beside(panel) for line in name.get_text().split("\n")]
        room = (
            figure.get_figwidth() / columns - _BESIDE - _LETTER * max(map(len, beside), default=0)
        )
        apart = 0.9 * room / max(len(names) - 1, 1)
        widest = max(
            (len(name) + len(next_name) + 1 for name, next_name in pairwise(names)), default=0
        )
        look: dict[str, Any] = {"rotation": 0, "ha": "center", "rotation_mode": "default"}
        step = 1
        if _LETTER * widest / 2 > apart:
            look = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
            step = max(math.ceil(_CLOSEST * len(names) / room), 1)
        panel.set_xticks(range(0, len(names), step), names[::step], **look)

    figure.arranged_by(arrange)


def name_floor(axes: Axes, floor: float, step: int = 1) -> None:
    """Label the lower edge of a logarithmic axis as "at most" its value.

    Args:
        axes: the panel.
        floor: the lower edge, a power of ten.
        step: number of decades between ticks.
    """
    top = axes.get_ylim()[1]
    lowest = round(math.log10(floor))
    powers = range(lowest, math.floor(math.log10(top)) + 1, step)
    labels = [rf"$\leq 10^{{{lowest}}}$", *(f"$10^{{{power}}}$" for power in powers[1:])]
    axes.set_yticks([10.0**power for power in powers], labels)
    axes.set_ylim(floor, top)
    axes.minorticks_off()
