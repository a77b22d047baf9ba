"""The frontier of error against time, whatever was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOOR = 1e-12
"""Smaller errors are drawn here: they are rounding, and their size says nothing."""


def pareto(found: Mapping[str, tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other beats in both, from the fastest to the most accurate."""
    best = math.inf
    kept = []
    # From fast to slow: a slower one earns its place only by a smaller error.
    for seconds, error in sorted(found.values()):
        if error < best:
            kept.append((seconds, error))
            best = error
    return kept


def draw_frontier(
    axes: Axes,
    found: Mapping[str, tuple[float, float]],
    looks: Mapping[str, Mapping[str, Any]],
) -> None:
    """Draw (seconds, error) by name, and the frontier as steps behind them."""
    axes.set(xscale="log", yscale="log")
    # What is reached at a time stays reached until the next point.
    axes.step(*zip(*pareto(found), strict=True), where="post", color="0.7", linewidth=0.8, zorder=1)
    for name, (seconds, error) in found.items():
        axes.plot([seconds], [error], zorder=2, clip_on=False, **looks[name])
