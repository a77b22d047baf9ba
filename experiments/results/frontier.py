"""The frontier of error against time, whatever was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


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
