"""Figure of the risk-coverage curves of one or more methods."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calibration.curves import RiskCurve
from calibration.figures.curve_notes import band_note, check_curves, span
from calibration.figures.panels import (
    LETTERS_BESIDE,
    alike,
    name_lines,
    panel_grid,
    parts,
    steps_coincide,
    write_title,
)
from calibration.figures.reliability_diagram import draw_band
from calibration.figures.style import COLORS, DASHES
from factormodels.errors import InputError
from factormodels.nouns import counted_range

if TYPE_CHECKING:
    from calibration.figures.shown_figure import ShownFigure

_NAME_LINE = 0.15
"""Height of a line of a name beside a curve, in inches."""

_ABOVE = 1.05
"""Height of the axis of risks, as a multiple of the highest band."""

_AXES = {
    True: "Coverage: share of verdicts kept. Selective risk: share of the kept that are wrong.",
    False: "Coverage: share of claims kept. Selective risk: share of the kept that are false.",
}
"""Sentences that define the axes, by whether the rule is ``verdict``."""


def risk_coverage_figure(
    methods: Mapping[str, RiskCurve], *, title: str | None = None
) -> ShownFigure:
    """Draw risk-coverage curves of one or more methods, with bands.

    The name of a curve is at its end, with its area (AURC) and the excess over the smallest area
    with the same errors. Methods whose curves coincide are drawn once and named together. More than
    three curves are distributed over several panels.

    Args:
        methods: curves with the same rule, by the name that the figure shows, in drawing order.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure with the width of a column (3.4 inches), or of a page (6.9 inches) with
        several panels; `save_figure` writes it. Its `caption` defines the axes and the bands.

    Raises:
        InputError: if there is no method, a value is not a RiskCurve, or the rules differ.
    """
    check_curves(methods, RiskCurve, "risk_curve")
    rules = {curve.rule for curve in methods.values()}
    if len(rules) > 1:
        raise InputError(
            "methods have the rules 'claim' and 'verdict'; draw each in its own figure"
        )

    def entry(names: Sequence[str]) -> str:
        areas = span([methods[name].area for name in names])
        excess = span([methods[name].excess for name in names])
        return f"{' = '.join(names)}\nAURC {areas}\nexcess {excess}"

    highest = max(float(curve.upper.max()) for curve in methods.values())
    height = min(1.0, highest * _ABOVE) or 1.0
    # On a low axis, small differences of risk are seen.
    grouped = parts(alike(methods, partial(_same_risk, height=height)))
    shown = [{entry(names): methods[names[0]] for names in part} for part in grouped]
    lines = max(sum(_lines(name) for name in panel) for panel in shown)
    inches = max(2.3, lines * _NAME_LINE + 1.0)
    of_verdicts = rules.pop() == "verdict"
    with panel_grid(len(shown), (inches, inches), most=2, sharex=True, sharey=True) as (
        figure,
        places,
    ):
        for axes, panel in zip(places, shown, strict=True):
            drawn = {}
            for row, (name, curve) in enumerate(panel.items()):
                draw_band(axes, curve.coverage, curve.lower, curve.upper, COLORS[row])
                (drawn[name],) = axes.plot(
                    curve.coverage, curve.risk, color=COLORS[row], linestyle=DASHES[row],
                    linewidth=1.2, zorder=3,
                )  # fmt: skip
            axes.set(xlim=(0, 1), ylim=(0, height))
            axes.set_xticks(np.linspace(0, 1, 6))
            name_lines(axes, drawn)
        figure.supxlabel("Coverage", fontsize=8.0)
        figure.supylabel("Selective risk", fontsize=8.0)
        claims = counted_range([curve.n_atoms for curve in methods.values()], "claim")
        bands = band_note(list(methods.values()))
        figure.caption = f"{claims}. {_AXES[of_verdicts]} {bands}."
        if title:
            write_title(figure, title)
    return figure


def _lines(name: str) -> int:
    """Return the number of lines of a name beside a curve."""
    return sum(len(textwrap.wrap(line, LETTERS_BESIDE)) for line in name.split("\n"))


def _same_risk(first: RiskCurve, second: RiskCurve, height: float) -> bool:
    return steps_coincide((first.coverage, first.risk), (second.coverage, second.risk), height)
