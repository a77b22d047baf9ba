"""Figures for papers, drawn with matplotlib without windows or global state."""

from __future__ import annotations

from calibration.figures.corp_diagram import corp_diagram
from calibration.figures.reliability_diagram import reliability_diagram
from calibration.figures.risk_coverage_figure import risk_coverage_figure
from calibration.figures.style import (
    COLORS,
    DASHES,
    MARKERS,
    PAPER_STYLE,
    paper_style,
    save_figure,
)

__all__ = [
    "COLORS",
    "DASHES",
    "MARKERS",
    "PAPER_STYLE",
    "corp_diagram",
    "paper_style",
    "reliability_diagram",
    "risk_coverage_figure",
    "save_figure",
]
