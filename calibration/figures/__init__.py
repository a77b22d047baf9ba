"""Figures for papers, drawn with matplotlib's objects: no window, no global state."""

from __future__ import annotations

from calibration.figures.curves import (
    corp_diagram,
    group_figure,
    risk_coverage_figure,
    score_histograms,
)
from calibration.figures.profile import calibration_plot
from calibration.figures.reliability import reliability_diagram
from calibration.figures.style import (
    COLOURS,
    DASHES,
    MARKERS,
    PAPER_STYLE,
    paper_style,
    save_figure,
)

__all__ = [
    "COLOURS",
    "DASHES",
    "MARKERS",
    "PAPER_STYLE",
    "calibration_plot",
    "corp_diagram",
    "group_figure",
    "paper_style",
    "reliability_diagram",
    "risk_coverage_figure",
    "save_figure",
    "score_histograms",
]
