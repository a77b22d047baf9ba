"""Calibration of one or more methods, group by group."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibration.curves import GroupCalibration
from calibration.figures.curve_notes import band_note, check_curves
from calibration.figures.panels import (
    COLUMN,
    alike,
    coincide,
    legend_above,
    panels,
    parts,
)
from calibration.figures.style import COLOURS, MARKERS
from calibration.validation import Floats
from factormodels.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def group_figure(
    methods: Mapping[str, GroupCalibration],
    *,
    group_label: str = "Group",
    title: str | None = None,
) -> Figure:
    """Observed share less mean probability, group by group, with intervals.

    Above 0 a method's probabilities are too low in the group, below 0 too high. A panel has at most
    three methods; further ones are in panels below.

    Args:
        methods: calibration by group, by the name that the figure shows; the same groups in each.
        group_label: what the groups are, below the horizontal axis.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide; `save_figure` writes it.

    Raises:
        InputError: if there is no method, one is not a GroupCalibration, or groups differ.
    """
    check_curves(methods, GroupCalibration, "group_calibration")
    groups = next(iter(methods.values())).groups
    for name, calibration in methods.items():
        if calibration.groups != groups:
            raise InputError(
                f"methods[{name!r}] has the groups {_listed(calibration.groups)}, the first method "
                f"{_listed(groups)}; give the same order to group_calibration"
            )
    place = np.arange(len(groups), dtype=np.float64)
    counts = next(iter(methods.values())).n_atoms.tolist()
    columns = max(5, 62 // len(groups))
    ticks = [
        f"{textwrap.fill(str(group), columns)}\n{count:,}"
        for group, count in zip(groups, counts, strict=True)
    ]
    below = 0.45 + 0.12 * max(tick.count("\n") for tick in ticks)
    rows = parts(alike(methods, _same_groups))
    names = [[" = ".join(each) for each in row] for row in rows]
    above = 0.14 * sum(len(textwrap.wrap(name, 56)) for row in names for name in row)
    size = (COLUMN, below + above + 1.5 * len(rows) + (0.3 if title else 0.1))
    with panels(len(rows), 1, size, sharex=True, sharey=True) as (figure, grid):
        for axes, row, shown in zip(grid.flat, rows, names, strict=True):
            axes.axhline(0, color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
            apart = min(0.7 / len(row), 0.22)
            points = [
                _draw_gaps(axes, place + (at - (len(row) - 1) / 2) * apart, methods[each[0]], at)
                for at, each in enumerate(row)
            ]
            legend_above(axes, points, shown)
            axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.set_xticks(place, ticks)
        for tick in axes.get_xticklabels():
            tick.set_parse_math(False)
        note = band_note(list(methods.values()))
        figure.supxlabel(
            f"{group_label}, with its number of claims\n{note}", fontsize=8.0, parse_math=False
        )
        figure.supylabel("Observed share − mean probability", fontsize=8.0)
        if title:
            figure.suptitle(textwrap.fill(title, 58), fontsize=8.5, parse_math=False)
    return figure


def _same_groups(one: GroupCalibration, other: GroupCalibration) -> bool:
    return all(
        coincide(getattr(one, name), getattr(other, name)) for name in ("gap", "lower", "upper")
    )


def _draw_gaps(axes: Axes, place: Floats, calibration: GroupCalibration, at: int) -> Line2D:
    axes.vlines(
        place, calibration.lower, calibration.upper,
        color=COLOURS[at], linewidth=1.2, alpha=0.6, zorder=2,
    )  # fmt: skip
    (points,) = axes.plot(
        place, calibration.gap, color=COLOURS[at], linestyle="none", marker=MARKERS[at],
        markersize=4.5, markeredgecolor="white", markeredgewidth=0.5, zorder=3,
    )  # fmt: skip
    return points


def _listed(groups: Sequence[Hashable]) -> str:
    return ", ".join(map(repr, groups))
