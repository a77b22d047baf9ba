"""Figures of the study of accuracy against time: error by axis, and the frontier of each level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.bench.frontier import FLOOR, pareto

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "atoms": "Atoms",
    "density": "Density",
    "strength": "Strength",
    "contradictions": "Share of contradictions",
}
