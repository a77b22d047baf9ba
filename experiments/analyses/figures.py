"""What figures of analyses share: panels in one style, intervals as bars, a legend below."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.figures.style import COLOURS, DASHES, MARKERS, paper_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@contextmanager
def panels(
    n_rows: int, n_columns: int, size: tuple[float, float], **shared: Any
) -> Iterator[tuple[Figure, NDArray[Any]]]:
    """A figure and its panels, (n_rows, n_columns), to be drawn on within the style of papers.

    Args:
        n_rows: rows of panels.
        n_columns: columns of panels.
        size: width and height in inches.
        shared: what `Figure.subplots` takes besides, such as `sharey`.
    """
    from matplotlib.figure import Figure

    # The style holds where artists are made, which is why the figure is lent and not returned.
    with paper_style():
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)


def nth_colour(at: int) -> str:
    """The colour of a line by its place in a panel; the palette begins anew after its end."""
    return COLOURS[at % len(COLOURS)]


def nth_marker(at: int) -> str:
    """The marker of a line by its place."""
    return MARKERS[at % len(MARKERS)]


def nth_dash(at: int) -> Any:
    """The line style of a line by its place."""
    return DASHES[at % len(DASHES)]


def reach(value: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> NDArray[np.float64]:
    """Lengths of an interval's arms, (2, n), as `errorbar` takes them; 0 where there is none."""
    arms = np.asarray([np.subtract(value, lower), np.subtract(upper, value)], dtype=np.float64)
    # An estimate may lie beyond an end of its bootstrap interval: no arm reaches backwards.
    return np.maximum(np.nan_to_num(arms), 0.0)


def draw_interval(
    place: Axes, height: float, ends: tuple[float, float, float], **look: Any
) -> None:
    """Draw a point at a height with its interval across: its value and the interval's ends."""
    value, lower, upper = ends
    arms = reach([value], [lower], [upper])
    place.errorbar([value], [height], xerr=arms, elinewidth=0.8, **look)


def draw_line(
    place: Axes, across: ArrayLike, line: pd.DataFrame, name: str, floor: float, **look: Any
) -> None:
    """Draw a column with the intervals in NAME_lower and NAME_upper, whatever is less at `floor`.

    A logarithmic axis has no place for zero, which errors of exact inference are.
    """
    values, lower, upper = (
        np.maximum(line[each].fillna(line[name]).to_numpy(np.float64), floor)
        for each in (name, f"{name}_lower", f"{name}_upper")
    )
    arms = reach(values, lower, upper)
    place.errorbar(across, values, yerr=arms, linewidth=0.9, elinewidth=0.6, **look)


def name_floor(place: Axes, floor: float, step: int = 1) -> None:
    """Name the lower edge of a logarithmic axis for what is drawn there: that and all below.

    Args:
        place: the panel.
        floor: the lower edge, a power of ten.
        step: how many decades lie between ticks.
    """
    top = place.get_ylim()[1]
    lowest = round(math.log10(floor))
    powers = range(lowest, math.floor(math.log10(top)) + 1, step)
    labels = [f"≤$10^{{{lowest}}}$", *(f"$10^{{{power}}}$" for power in powers[1:])]
    place.set_yticks([10.0**power for power in powers], labels)
    place.set_ylim(floor, top)
    place.minorticks_off()


def legend_below(figure: Figure, place: Axes) -> None:
    """Name the lines of a panel below the figure, side by side."""
    handles, labels = place.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
