"""What figures of several panels share: sizes, looks, intervals, names beside what they name."""

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

from calibration.figures.style import COLOURS, DASHES, MARKERS, paper_style
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
"""Widths of one column of a paper and of both, in inches."""

MOST_CURVES = 3
"""Curves that a panel holds; of more, every few have a panel of their own."""

COINCIDE = 0.01
"""Curves that lie nowhere farther apart are drawn once: less than a marker's radius."""

Curve = TypeVar("Curve")
Named = TypeVar("Named")

_IN_A_ROW = 3
LETTERS_BESIDE = 20
"""Letters in a line of a name beside a panel."""

_NAME = "name of a line"
_LETTER = 0.055
"""Width of a letter of a name below or beside a panel, in inches."""

_BESIDE, _CLOSEST = 0.5, 0.12
"""Inches beside a panel for its numbers, and between two slanted names that do not touch."""

_TITLE_LETTER = 0.057
"""Width of a letter of a title, in inches."""

_GAP = 4.0
"""Points between the end of a line and its name."""


@contextmanager
def panels(
    n_rows: int, n_columns: int, size: tuple[float, float], **shared: Any
) -> Iterator[tuple[ShownFigure, NDArray[Any]]]:
    """A figure and its panels, (n_rows, n_columns), to be drawn on within the style of papers.

    Args:
        n_rows: rows of panels.
        n_columns: columns of panels.
        size: width and height in inches.
        shared: what `Figure.subplots` takes besides, such as `sharey`.
    """
    from calibration.figures.shown_figure import ShownFigure

    # The style holds where artists are made, which is why the figure is lent and not returned.
    with paper_style():
        figure = ShownFigure(figsize=size, layout="constrained")
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)
        if any(_names_beside(axes) for axes in figure.axes):
            figure.arranged_by(partial(_part_names, figure))


def write_title(figure: ShownFigure, title: str) -> Text:
    """Write a title above all panels, in lines as long as the figure is wide."""
    text = figure.suptitle(title, fontsize=8.5)
    # Two dollar signs in a name are not mathematics.
    text.set_parse_math(False)
    figure.arranged_by(lambda: figure.wrap(text, int(figure.get_figwidth() / _TITLE_LETTER)))
    return text


@contextmanager
def panel_grid(
    count: int, heights: tuple[float, float], *, most: int = _IN_A_ROW, **shared: Any
) -> Iterator[tuple[ShownFigure, list[Axes]]]:
    """A figure of so many panels: one is a column wide, several are a page wide.

    Args:
        count: how many panels.
        heights: of a figure of one panel, and of a row of several.
        most: how many stand in a row.
        shared: what `Figure.subplots` takes besides.
    """
    columns = min(count, most)
    rows = -(-count // columns)
    size = (COLUMN, heights[0]) if columns == 1 else (PAGE, heights[1] * rows)
    with panels(rows, columns, size, **shared) as (figure, grid):
        for axes in grid.flat[count:]:
            axes.remove()
        # What stands at the lower edge has its numbers, whatever the other columns hold.
        for axes in grid.flat[max(count - columns, 0) : count]:
            axes.tick_params(labelbottom=True)
        yield figure, list(grid.flat[:count])


@contextmanager
def small_multiples(
    names: Sequence[str], heights: tuple[float, float]
) -> Iterator[tuple[ShownFigure, list[tuple[Axes, list[str]]]]]:
    """A `panel_grid` of curves, at most `MOST_CURVES` to a panel, each with the names of its."""
    groups = parts(names)
    with panel_grid(len(groups), heights, sharex=True, sharey=True) as (figure, places):
        yield figure, list(zip(places, groups, strict=True))


def alike(curves: Mapping[str, Curve], same: Callable[[Curve, Curve], bool]) -> list[list[str]]:
    """Names of curves, those of curves that are the same in one group."""
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
    """Names of the curves of each panel; curves that are the same stand in one group.

    Args:
        curves: curves by name.
        same: whether two curves are drawn as one.
        together: by name, a text that the curves of one panel share; used for more curves than a
            panel holds.
    """
    groups = alike(curves, same)
    if len(groups) <= MOST_CURVES:
        return [groups]
    sorted_out: dict[str, dict[str, Curve]] = {}
    for name, curve in curves.items():
        sorted_out.setdefault(together.get(name, ""), {})[name] = curve
    return [panel for part in sorted_out.values() for panel in parts(alike(part, same))]


def coincide(first: ArrayLike, other: ArrayLike, apart: float = COINCIDE) -> bool:
    """Whether values lie nowhere farther apart than that."""
    return np.allclose(first, other, rtol=0, atol=apart, equal_nan=True)


def steps_coincide(first: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> bool:
    """Whether two curves of steps lie on each other, by the area between them.

    Where one steps a little earlier than the other they are far apart, but only there.
    """
    at = np.linspace(0.0, 1.0, 501)
    return bool(np.abs(np.interp(at, *first) - np.interp(at, *other)).mean() <= COINCIDE / 2)


def nth_colour(at: int) -> str:
    """The color of a line by its place in a panel; the palette begins anew after its end."""
    return COLOURS[at % len(COLOURS)]


def nth_marker(at: int) -> str:
    """The marker of a line by its place."""
    return MARKERS[at % len(MARKERS)]


def nth_dash(at: int) -> Any:
    """The line style of a line by its place."""
    return DASHES[at % len(DASHES)]


def nth_look(at: int) -> dict[str, Any]:
    """Colour, marker and line style of a line by its place; without color the latter tell."""
    return {
        "color": nth_colour(at),
        "marker": nth_marker(at),
        "linestyle": nth_dash(at),
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }


def legend_above(
    axes: Axes, handles: Sequence[Artist], names: Sequence[str], columns: int = 56
) -> None:
    """Name what is drawn in a legend above a panel, in lines of so many letters."""
    legend = axes.legend(
        handles, [str(at) for at in range(len(handles))], loc="lower left",
        bbox_to_anchor=(0.0, 1.0), borderaxespad=0.1, handlelength=2.0, labelspacing=0.2,
        borderpad=0.1, fontsize=7.0,
    )  # fmt: skip
    # Names are set here: matplotlib would leave out one that begins with an underscore.
    for text, name in zip(legend.get_texts(), names, strict=True):
        # Two dollar signs in a name are not mathematics.
        text.set_parse_math(False)
        text.set_text(textwrap.fill(name, columns))


def legend_below(
    figure: ShownFigure, handles: Sequence[Artist], names: Sequence[str], most: int, **look: Any
) -> None:
    """Name what is drawn in a legend below all panels, in as many columns as the width holds.

    Args:
        figure: the figure, of `panels` or with a constrained layout.
        handles: what is named.
        names: their names.
        most: columns of the legend.
        look: what `Figure.legend` takes besides, such as `columnspacing`.
    """

    def arrange() -> None:
        # A legend cannot be given another number of columns: it is made anew.
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
    """Return a new legend of a figure, in as many columns as the width of the figure holds.

    Args:
        figure: the figure.
        handles: what is named.
        names: their names.
        most: columns of the legend.
        look: what `Figure.legend` takes besides.
    """
    for columns in range(min(most, len(names)), 0, -1):
        legend = figure.legend(
            handles, [str(at) for at in range(len(names))], ncols=columns, **look
        )
        # Names are set here: matplotlib would leave out one that begins with an underscore.
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_parse_math(False)
            text.set_text(name)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
    return legend


def legible(colour: Any) -> tuple[float, float, float]:
    """A color of the palette dark enough for letters."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.72 * red, 0.72 * green, 0.72 * blue


def name_lines(axes: Axes, lines: Mapping[str, Line2D]) -> None:
    """Write each line's name beside its last point, at the edge of a panel of `panels`.

    Names that would lie over each other are moved apart when the figure is finished.
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
    """Move names of lines apart, panel by panel, each as little as can be."""
    from scipy.optimize import isotonic_regression

    beside = [_names_beside(axes) for axes in figure.axes]
    for name in chain(*beside):
        figure.wrap(name, LETTERS_BESIDE)
        name.xyann = (_GAP, 0.0)
    # Where lines end is known once the figure is laid out; drawing it as well takes twice as long.
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    for axes, names in zip(figure.axes, beside, strict=True):
        boxes = [name.get_window_extent() for name in names]
        middles = np.array([(box.y0 + box.y1) / 2 for box in boxes])
        order = np.argsort(middles, kind="stable")
        heights = np.array([box.height + 1.0 for box in boxes])[order]
        # Least squares under a least distance is isotonic regression once the distances are off.
        apart = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])[: len(names)]
        if not names:
            continue
        moved = isotonic_regression(middles[order] - apart).x
        # All of them within the height of the panel, where that has room for them.
        lowest, highest = axes.bbox.y0 + heights[0] / 2, axes.bbox.y1 - heights[-1] / 2
        moved = np.maximum(np.minimum(moved, highest - apart[-1]), lowest) + apart
        for at, wanted in zip(order, moved, strict=True):
            now = (boxes[at].y0 + boxes[at].y1) / 2
            names[at].xyann = (_GAP, 72.0 * (wanted - now) / figure.dpi)


def parts(names: Sequence[Named]) -> list[list[Named]]:
    """Names, or groups of them, in as few parts as there can be, all about equally large."""
    count = -(-len(names) // MOST_CURVES)
    ends = [round(len(names) * part / count) for part in range(count + 1)] if count else [0]
    return [list(names[start:end]) for start, end in pairwise(ends)]


def reach(value: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> NDArray[np.float64]:
    """Lengths of an interval's arms, (2, n), as `errorbar` takes them; 0 where there is none."""
    arms = np.asarray([np.subtract(value, lower), np.subtract(upper, value)], dtype=np.float64)
    # An estimate may lie beyond an end of its bootstrap interval: no arm reaches backwards.
    return np.maximum(np.nan_to_num(arms), 0.0)


def draw_interval(axes: Axes, height: float, ends: Sequence[float], **look: Any) -> None:
    """Draw a point at a height with its interval across: its value and the interval's ends."""
    value, lower, upper = ends
    arms = reach([value], [lower], [upper])
    axes.errorbar([value], [height], xerr=arms, elinewidth=0.8, **look)


def draw_line(
    axes: Axes, across: ArrayLike, line: pd.DataFrame, name: str, floor: float, **look: Any
) -> Line2D:
    """Draw a column with the intervals in NAME_lower and NAME_upper, whatever is less at `floor`.

    A logarithmic axis has no place for zero, which errors of exact inference are.
    """
    values, lower, upper = (
        np.maximum(line[each].fillna(line[name]).to_numpy(np.float64), floor)
        for each in (name, f"{name}_lower", f"{name}_upper")
    )
    arms = reach(values, lower, upper)
    drawn = axes.errorbar(across, values, yerr=arms, linewidth=0.9, elinewidth=0.6, **look)
    return drawn.lines[0]


def name_places(figure: ShownFigure, panel: Axes, names: Sequence[str], columns: int) -> None:
    """Name the places 0, 1, ... below a panel.

    Where the names do not fit side by side they are slanted, and where slanted ones would touch
    only every second, or third, stands there.

    Args:
        figure: the figure.
        panel: the panel.
        names: the names.
        columns: how many panels stand in a row.
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
    """Name the lower edge of a logarithmic axis for what is drawn there: that and all below.

    Args:
        axes: the panel.
        floor: the lower edge, a power of ten.
        step: how many decades lie between ticks.
    """
    top = axes.get_ylim()[1]
    lowest = round(math.log10(floor))
    powers = range(lowest, math.floor(math.log10(top)) + 1, step)
    labels = [rf"$\leq 10^{{{lowest}}}$", *(f"$10^{{{power}}}$" for power in powers[1:])]
    axes.set_yticks([10.0**power for power in powers], labels)
    axes.set_ylim(floor, top)
    axes.minorticks_off()
