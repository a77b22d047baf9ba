"""The anytime trace as a figure: brackets, estimates and marginals against processor time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from calibration.figures.panels import PAGE, legend_below, panels
from calibration.figures.style import COLORS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from calibration.figures.shown_figure import ShownFigure

_NARROWEST = 1e-3
"""Minimum distance from the answer, in nats, up to which the axis is linear; beyond it, the axis is
logarithmic."""

_SHORTEST = 1e-4
"""Smallest number of seconds shown; runs that end sooner are drawn there."""


_PALETTE = (*COLORS, "#882255", "#999933", "#332288", "#44AA99")
"""Colors of algorithms: four of Paul Tol's muted palette follow, since `auto` runs up to eleven."""

_DECADES_WITH_MORE = 1.6
"""Number of decades of seconds up to which numbers between powers of ten are labeled."""


def distances(marginals: pd.DataFrame, answer: np.ndarray) -> pd.Series:
    """Mean |Δp| between the marginals of each step and the marginals of the answer, by step."""
    off = np.abs(marginals["p"].to_numpy() - np.tile(answer, marginals["step"].nunique()))
    return marginals.assign(off=off).groupby("step", sort=False)["off"].mean()


def trace_figure(trace: pd.DataFrame, distance: pd.Series) -> ShownFigure:
    """Bounds on and estimates of log Z, and distances of marginals, against processor time.

    Args:
        trace: a frame of `inference.trace.Trace`.
        distance: mean distance of marginals to the answer by step, as `distances` gives it.
    """
    families = [str(name).partition("(")[0] for name in trace["algorithm"]]
    names = dict.fromkeys(families)
    colors = {name: _PALETTE[at % len(_PALETTE)] for at, name in enumerate(names)}
    seconds = trace["processor_seconds"].clip(lower=_SHORTEST)
    apart = distance[distance > 0.0]
    count = 2 if len(apart) else 1
    with panels(1, count, (PAGE if count == 2 else PAGE / 2, 2.6)) as (figure, (grid,)):
        _draw_log_z(grid[0], trace, seconds, families, colors)
        for step, value in apart.items():
            at = int(trace.index[trace["step"] == step][0])
            look = {"color": colors[families[at]], "marker": "o", "markersize": 3.5}
            grid[1].plot([seconds[at]], [value], linestyle="none", **look)
        for axes in grid:
            axes.set_xlabel("Processor seconds")
            # Tick labels of a logarithmic axis that is shorter than a decade overlap.
            if seconds.max() >= 10.0 * seconds.min():
                axes.set_xscale("log")
                # One number between powers of ten, and none if there are two or more powers: more
                # numbers would overlap in a narrow column.
                axes.xaxis.set_minor_locator(LogLocator(subs=(3.0,)))
                axes.xaxis.set_major_formatter(FuncFormatter(_signed))
                is_short = seconds.max() < 10.0**_DECADES_WITH_MORE * seconds.min()
                axes.xaxis.set_minor_formatter(
                    FuncFormatter(_signed) if is_short else NullFormatter()
                )
            else:
                axes.set_xlim(0.0, 1.2 * seconds.max())
        if count == 2:
            grid[1].set(yscale="log", ylabel="Mean distance to the answer")
        handles = [
            grid[0].plot([], [], "s", color=color, markersize=4)[0] for color in colors.values()
        ]
        shapes = {"upper bound": "v", "lower bound": "^", "estimate ± 2 SE": "o"}
        if trace["bethe"].notna().any():
            shapes["Bethe value, no SE"] = "x"
        handles += [
            grid[0].plot([], [], marker, color="0.4", fillstyle="none", markersize=4)[0]
            for marker in shapes.values()
        ]
        legend_below(figure, handles, [*colors, *shapes], 6, columnspacing=1.2, handletextpad=0.2)
        return figure


def _draw_log_z(
    axes: Axes,
    trace: pd.DataFrame,
    seconds: pd.Series,
    families: list[str],
    colors: dict[str, str],
) -> None:
    """Draw the best bracket as a band, and the result of each run, as distances from the center."""
    center, width = _center(trace)
    ends = trace[["best_lower", "best_upper"]].replace([-np.inf, np.inf], np.nan) - center
    until = [*seconds, 1.2 * seconds.iloc[-1]]
    lower, upper = (np.append(ends[side], ends[side].iloc[-1]) for side in ends)
    band: dict[str, Any] = {"step": "post", "color": "0.5", "linewidth": 0.0}
    axes.fill_between(until, lower, upper, alpha=0.25, **band)
    for at, family in enumerate(families):
        row = trace.iloc[at]
        for name, marker in (("upper", "v"), ("lower", "^"), ("bethe", "x")):
            if np.isfinite(row[name]):
                look: dict[str, Any] = {"marker": marker, "color": colors[family], "markersize": 4}
                axes.plot([seconds.iloc[at]], [row[name] - center], fillstyle="none", **look)
        if np.isfinite(row["estimate"]):
            error = 2.0 * row["error"] if np.isfinite(row["error"]) else 0.0
            axes.errorbar(
                [seconds.iloc[at]],
                [row["estimate"] - center],
                yerr=[error],
                fmt="o",
                color=colors[family],
                markersize=3,
                linewidth=0.8,
            )
    linear = max(width, _NARROWEST)
    axes.set_yscale("symlog", linthresh=linear, linscale=0.8)
    drawn = np.abs(axes.dataLim.intervaly)
    reach = int(np.ceil(np.log10(max(drawn.max(initial=linear), linear) / linear)))
    decades = [linear * 10.0**power for power in range(0, reach + 1, max(1, reach // 3))]
    axes.set_yticks([*(-each for each in reversed(decades)), 0.0, *decades])
    axes.yaxis.set_major_formatter(FuncFormatter(_signed))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.axhline(0.0, color="0.6", linewidth=0.6, zorder=0)
    if reach == 0:
        # A single answer, or a narrow bracket, is drawn in the middle.
        axes.set_ylim(-1.3 * linear, 1.3 * linear)
    axes.set_ylabel(f"log Z − {center:.6g} (nats)".replace("− -", "+ "))


def _signed(value: float, _: object) -> str:
    return f"{value:.3g}".replace("-", "−")


def _center(trace: pd.DataFrame) -> tuple[float, float]:
    """The middle of the last bracket, or the last number; and half the bracket's width."""
    lower, upper = trace["best_lower"].iloc[-1], trace["best_upper"].iloc[-1]
    if np.isfinite(lower) and np.isfinite(upper):
        return float(0.5 * (lower + upper)), float(0.5 * max(upper - lower, 0.0))
    numbers = trace[["estimate", "bethe", "best_lower", "best_upper"]].to_numpy().ravel()
    finite = numbers[np.isfinite(numbers)]
    return (float(finite[-1]) if len(finite) else 0.0), 0.0
