"""Figures of the study of accuracy against time: error by axis, and the frontier of each level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.results.frontier import FLOOR, pareto

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "atoms": "Atoms",
    "density": "Density",
    "strength": "Strength",
    "contradictions": "Frustrated cycles (contradictions)",
}

DRAWN_FLOOR = 1e-9
"""Smaller errors are drawn on the lower edge: between them there is rounding only."""


def error_figure(errors: pd.DataFrame) -> Figure:
    """Return the mean error of each backend against what is varied, one panel per axis.

    Args:
        errors: one row per axis, level and backend, with `mean_error` and the ends of its interval.
    """
    from matplotlib.figure import Figure

    from calibration.figures.style import paper_style

    looks = _looks(errors["backend"])
    names = list(dict.fromkeys(errors["axis"]))
    with paper_style():
        figure = Figure(figsize=(7.0, 2.7), layout="constrained")
        axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for place, axis in zip(axes, names, strict=True):
            own = errors[errors["axis"] == axis]
            levels = sorted(set(own["level"]))
            for backend, line in own.groupby("backend", sort=False):
                _error_line(place, line.sort_values("level"), looks[str(backend)])
            place.set_xticks(range(len(levels)), _level_names(axis, own, levels))
            place.set(xlabel=TITLES.get(axis, axis), yscale="log")
            place.margins(x=0.08)
        axes[0].set_ylabel("mean |Δp|")
        name_floor(axes[0], DRAWN_FLOOR, 2)
        _legend(figure, axes[0], looks)
    return figure


def frontier_figure(measured: pd.DataFrame) -> Figure:
    """Return error against time on each level of each axis, with the frontier as steps.

    Args:
        measured: one row per axis, level, graph and backend, with `seconds`, `total_error` and
            `variables`.
    """
    from matplotlib.figure import Figure

    from calibration.figures.style import paper_style

    looks = _looks(measured["backend"])
    names = list(dict.fromkeys(measured["axis"]))
    levels = [sorted(set(measured["level"][measured["axis"] == axis])) for axis in names]
    columns = max(map(len, levels))
    with paper_style():
        figure = Figure(figsize=(7.0, 1.5 * len(names) + 0.5), layout="constrained")
        axes = figure.subplots(len(names), columns, sharex=True, sharey=True, squeeze=False)
        for row, axis, own in zip(axes, names, levels, strict=True):
            for place in row[len(own) :]:
                place.set_axis_off()
            for place, level in zip(row, own, strict=False):
                chosen = (measured["axis"] == axis) & (measured["level"] == level)
                _panel(place, measured[chosen], looks)
                place.set_title(f"{axis} {level:g}", pad=2.0)
        name_floor(axes[0][0], DRAWN_FLOOR, 2)
        for place in axes[-1]:
            place.set_xlabel("seconds per call")
        for place in axes[:, 0]:
            place.set_ylabel("mean |Δp|")
        _legend(figure, axes[0][0], looks)
    return figure


def frontier_points(group: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Return (median seconds, mean error) by backend, of those that answered every graph.

    Graphs that some backend was not measured on are left out: all are held to the same.
    """
    shared = group.groupby("graph")["backend"].size()
    group = group[group["graph"].isin(shared.index[shared == shared.max()])]
    found = {}
    for backend, own in group.groupby("backend", sort=False):
        if own["total_error"].notna().all():
            error = own["total_error"].sum() / own["variables"].sum()
            found[str(backend)] = (float(own["seconds"].median()), max(float(error), FLOOR))
    return found


def _level_names(axis: str, own: pd.DataFrame, levels: Sequence[float]) -> list[str]:
    if axis != "contradictions":
        return [f"{level:g}" for level in levels]
    shares = own.groupby("level")["frustrated"].mean()
    return [f"{shares[level]:.2f}\n({level:g})" for level in levels]


def _error_line(place: Axes, line: pd.DataFrame, look: dict[str, Any]) -> None:
    values, lower, upper = (
        np.maximum(line[name].fillna(line["mean_error"]).to_numpy(np.float64), DRAWN_FLOOR)
        for name in ("mean_error", "mean_error_lower", "mean_error_upper")
    )
    reach = np.maximum([values - lower, upper - values], 0.0)
    place.errorbar(range(len(values)), values, yerr=reach, linewidth=0.9, elinewidth=0.6, **look)


def _panel(place: Axes, group: pd.DataFrame, looks: dict[str, dict[str, Any]]) -> None:
    found = {
        name: (seconds, max(error, DRAWN_FLOOR))
        for name, (seconds, error) in frontier_points(group).items()
    }
    front = pareto(found)
    place.set(xscale="log", yscale="log")
    place.step(*zip(*front, strict=True), where="post", color="0.7", linewidth=0.8, zorder=1)
    for name, (seconds, error) in found.items():
        look = {**looks[name], "linestyle": "none"}
        place.plot([seconds], [error], zorder=2, clip_on=False, **look)


def _looks(backends: Iterable[str]) -> dict[str, dict[str, Any]]:
    from calibration.figures.style import COLOURS, MARKERS

    return {
        str(name): {
            "color": COLOURS[at % len(COLOURS)],
            "marker": MARKERS[at % len(MARKERS)],
            "markersize": 3.5,
            # The palette begins anew after its end: from there on markers are hollow.
            "fillstyle": "full" if at < len(COLOURS) else "none",
        }
        for at, name in enumerate(dict.fromkeys(backends))
    }


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


def _legend(figure: Figure, place: Axes, looks: dict[str, dict[str, Any]]) -> None:
    handles = [place.plot([], [], **{**look, "linestyle": "none"})[0] for look in looks.values()]
    figure.legend(
        handles,
        list(looks),
        loc="outside lower center",
        ncols=min(len(looks), 8),
        columnspacing=1.2,
        handletextpad=0.2,
    )
