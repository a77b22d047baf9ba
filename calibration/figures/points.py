"""Whether a figure shows anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def has_points(figure: Figure) -> bool:
    """Whether any panel of a figure shows a number."""
    return any(map(panel_has_points, figure.axes))


def panel_has_points(axes: Axes) -> bool:
    """Whether a panel shows a number, beside its axes and lines of reference.

    What has no axes, such as a drawn graph, counts as shown.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Rectangle

    bars = [patch.get_bbox().get_points() for patch in axes.patches if isinstance(patch, Rectangle)]
    # A bar of no height is a number, one whose height is not known is none.
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
    """Whether a line joins two ends without a marker, as a diagonal or the line at zero does."""
    return len(np.asarray(line.get_xydata())) <= 2 and line.get_marker() in (
        "None",
        "none",
        "",
        " ",
        None,
    )
