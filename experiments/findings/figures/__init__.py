"""Figures of a long frame: lines over a varied quantity, and estimates one below another.

Both take the ends of the intervals of a column NAME from NAME_lower and NAME_upper, if they exist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.figures.panels import (
    COLUMN,
    PAGE,
    draw_interval,
    draw_line,
    legend_below,
    name_floor,
    name_places,
    nth_look,
    panels,
)
from experiments.findings.table import ENDS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from calibration.figures.shown_figure import ShownFigure

MOST_IN_A_ROW = 6
"""Number of names in a row of a legend."""

NOTHING: Mapping[str, float] = MappingProxyType({})


def line_figure(
    frame: pd.DataFrame,
    across: str,
    values: Mapping[str, str],
    by: str = "",
    panel: str = "",
    *,
    ideals: Mapping[str, float] = NOTHING,
    floors: Mapping[str, float] = NOTHING,
) -> ShownFigure:
    """Draw values over a varied quantity: panels in rows by value, in columns by `panel`.

    If there is only one column of panels, the values are placed side by side.

    Args:
        frame: one row per point.
        across: the column of the horizontal axis; texts become positions side by side.
        values: labels of the vertical axes, by column.
        by: the column that distinguishes lines; empty if there is only one line.
        panel: the column that distinguishes panels; empty if there is only one panel.
        ideals: where a value has a line of reference.
        floors: lower edge of the axis for each value with a logarithmic axis; smaller numbers are
            drawn there.
    """
    titles = list(dict.fromkeys(frame[panel])) if panel else [""]
    names = list(dict.fromkeys(frame[by])) if by else [""]
    shape = (len(values), len(titles)) if len(titles) > 1 else (1, len(values))
    size = (COLUMN if shape == (1, 1) else PAGE, 1.5 * shape[0] + 0.9)
    shared: dict[str, Any] = {"sharex": "col", "sharey": "row"} if len(titles) > 1 else {}
    with panels(*shape, size, **shared) as (figure, all_axes):
        grid = all_axes if len(titles) > 1 else all_axes.T
        for row, (value, label) in zip(grid, values.items(), strict=True):
            floor = floors.get(value, 0.0)
            for axes, title in zip(row, titles, strict=True):
                panel_rows = frame[frame[panel] == title] if panel else frame
                places = list(dict.fromkeys(panel_rows[across]))
                texts = panel_rows[across].dtype.kind not in "iuf"
                if value in ideals:
                    axes.axhline(ideals[value], color="0.6", linewidth=0.7)
                for at, name in enumerate(names):
                    line = panel_rows[panel_rows[by] == name] if by else panel_rows
                    points = [places.index(each) for each in line[across]]
                    look = nth_look(at) | {"label": str(name), "clip_on": False}
                    draw_line(
                        axes,
                        points if texts else line[across],
                        _with_ends(line, value),
                        value,
                        floor or -np.inf,
                        **look,
                    )
                if texts:
                    name_places(figure, axes, places, shape[1])
                axes.set(yscale="log" if floor else "linear")
            row[0].set_ylabel(_sentence(label))
            if floor:
                name_floor(row[0], floor, 2)
        for axes, title in zip(grid[0], titles, strict=True):
            axes.set_title(str(title) if len(titles) > 1 else "")
        for axes in all_axes[-1]:
            axes.set_xlabel(_sentence(across.replace("_", " ")))
        if by:
            _legend(figure, grid[0][0])
        return figure


_BETWEEN_KINDS = 0.066
"""Inches between the kinds that share a row of `estimate_figure`."""


def estimate_figure(
    frame: pd.DataFrame,
    rows: str,
    values: Mapping[str, str],
    by: str = "",
    *,
    ideals: Mapping[str, float] = NOTHING,
) -> ShownFigure:
    """Draw estimates with their intervals one below another, in a panel for each value.

    Args:
        frame: one row per estimate, in order from the top.
        rows: the column with the names of the rows; estimates with the same name share a row.
        values: labels of the horizontal axes, by column.
        by: the column that determines the color; empty if all have the same color.
        ideals: where a value has a line of reference.
    """
    names = list(dict.fromkeys(frame[rows]))
    kinds = list(dict.fromkeys(frame[by])) if by else [""]
    crowded = by and len(frame) > len(names)
    # Room for all kinds of a row, and for a gap to the next row.
    row_height = max(0.3, _BETWEEN_KINDS * (len(kinds) + 1)) if crowded else 0.2
    apart = _BETWEEN_KINDS / row_height if crowded else 0.0
    size = (PAGE, 0.8 + row_height * len(names))
    with panels(1, len(values), size, sharey=True) as (figure, (grid,)):
        for axes, (value, label) in zip(grid, values.items(), strict=True):
            if value in ideals:
                axes.axvline(ideals[value], color="0.6", linewidth=0.7)
            for at, kind in enumerate(kinds):
                kind_rows = _with_ends(frame[frame[by] == kind] if by else frame, value)
                shift = apart * ((len(kinds) - 1) / 2 - at)
                look = nth_look(at) | {"linestyle": "none"}
                for first, row in enumerate(kind_rows.to_dict("records")):
                    ends = tuple(row[f"{value}{end}"] for end in ENDS)
                    height = len(names) - 1 - names.index(row[rows]) + shift
                    draw_interval(axes, height, ends, **look, label=None if first else str(kind))
            axes.set_xlabel(_sentence(label))
        grid[0].set_yticks(range(len(names) - 1, -1, -1), names)
        # Half a row on either side, so that no interval lies on the frame.
        grid[0].set_ylim(-0.5, len(names) - 0.5)
        if by:
            _legend(figure, grid[0])
        return figure


def _sentence(label: str) -> str:
    """Return a label with a capital first letter; a symbol stays unchanged."""
    return label[:1].upper() + label[1:] if label[:2].isascii() and label[:2].isalpha() else label


def _legend(figure: ShownFigure, axes: Axes) -> None:
    legend_below(figure, *axes.get_legend_handles_labels(), MOST_IN_A_ROW)


def _with_ends(frame: pd.DataFrame, value: str) -> Any:
    """The frame with the ends of a column's intervals, missing where there is none."""
    missing = {f"{value}_{end}" for end in ("lower", "upper")} - {*frame.columns}
    return frame.assign(**dict.fromkeys(missing, np.nan))


def pareto(points: Mapping[str, tuple[float, float]]) -> list[tuple[float, float]]:
    """Points that no other point beats in both respects, from fastest to most accurate."""
    best = math.inf
    kept = []
    # From fast to slow: keep a slower point only if its error is smaller.
    for seconds, error in sorted(points.values()):
        if error < best:
            kept.append((seconds, error))
            best = error
    return kept
