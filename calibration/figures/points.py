"""Tests of figures for data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def has_points(figure: Figure) -> bool:
    """Return whether any panel of a figure shows data."""
    return any(map(panel_has_points, figure.axes))


def panel_has_points(axes: Axes) -> bool:
    """Return whether a panel shows data, apart from its axes and reference lines.

    A panel without axes, such as a drawing of a graph, counts as data.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Rectangle

    bars = [patch.get_bbox().get_points() for patch in axes.patches if isinstance(patch, Rectangle)]
    # A bar with height 0 is data, but a bar with height nan is not.
    if not axes.axison or axes.images or any(np.isfinite(ends).all() for ends in bars):
        return True
    drawn: list[Any] = [line.get_xydata() for line in axes.lines if not _is_reference(line)]
    drawn += [each.get_path().vertices for each in axes.patches if not isinstance(each, Rectangle)]
    for collection in axes.collections:
        if isinstance(collection, PathCollection):
            drawn.append(collection.get_offsets())
        else:
            drawn += [path.vertices for path in collection.get_paths()]
    for each in drawn:
        numbers: Floats = np.ma.filled(np.ma.asarray(each, float), np.nan)
        if np.isfinite(numbers).all(axis=-1).any():
            return True
    return False


def _is_reference(line: Line2D) -> bool:
    """Return whether a line has two ends and no marker, like the diagonal or the zero line."""
    return len(np.asarray(line.get_xydata())) <= 2 and line.get_marker() in (
        "None",
        "none",
        "",
        " ",
        None,
    )
