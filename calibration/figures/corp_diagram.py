"""CORP reliability diagrams of one or more methods, with bins and histograms of P."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from calibration.curves import CorpCurve, ReliabilityBins
from calibration.figures.curve_notes import band_note, check_curves, span
from calibration.figures.panels import shared_panels, steps_coincide
from calibration.figures.reliability_diagram import (
    draw_band,
    draw_points,
    kind_of_intervals,
    square_panels,
)
from factormodels.errors import InputError
from factormodels.nouns import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from calibration.figures.shown_figure import ShownFigure


def corp_diagram(
    methods: Mapping[str, CorpCurve],
    *,
    bins: Mapping[str, ReliabilityBins] = MappingProxyType({}),
    title: str | None = None,
    panels: Mapping[str, str] = MappingProxyType({}),
) -> ShownFigure:
    """Draw a reliability diagram of one or more methods: CORP curves, bins, and histograms of P.

    Each name is followed by the CORP terms of the method's Brier score. With `bins`, points with
    intervals replace the band of each curve; they show the raw frequencies that isotonic regression
    smooths. Confidence bands surround the curves. Consistency bands surround the diagonal, and a
    curve outside its band shows that the method is not calibrated. Methods whose curves coincide
    are drawn once and named together. More than three curves are distributed over several panels.

    Args:
        methods: curves by the name that the figure shows, drawn in this order.
        bins: bins of the methods by the same names, best of equal count
            (`reliability_bins(..., strategy="quantile")`); none for bands alone.
        title: text above the figure, or None.
        panels: text by method; methods with the same text share a panel if there are more than
            three curves.

    Returns:
        A matplotlib Figure with the width of a column (3.4 inches), or of a page (6.9 inches) with
        several panels; `save_figure` writes it. Its `caption` states sample sizes and describes
        bands and bars.

    Raises:
        InputError: if there is no method, a value is not a CorpCurve, or only some methods have
            bins.

    Source: Dimitriadis, Gneiting & Jordan 2021, "Stable reliability diagrams for probabilistic
    classifiers".
    """
    check_curves(methods, CorpCurve, "corp_curve")
    if bins:
        check_curves(bins, ReliabilityBins, "reliability_bins")
        if bins.keys() != methods.keys():
            lacking = next(iter(bins.keys() ^ methods.keys()))
            raise InputError(f"bins and methods differ in {lacking!r}; give bins of each method")

    def entry(names: Sequence[str]) -> str:
        terms = [methods[name].decomposition for name in names]
        miscalibration = span([each.miscalibration for each in terms])
        discrimination = span([each.discrimination for each in terms])
        # Spaces at which no line ends.
        numbers = f"(MCB {miscalibration}, DSC {discrimination})".replace(" ", "\N{NO-BREAK SPACE}")
        return f"{' = '.join(names)} {numbers}"

    shown = [
        {entry(names): names[0] for names in panel}
        for panel in shared_panels(methods, _same_corp, panels)
    ]
    points = {name: bins[first] for panel in shown for name, first in panel.items() if bins}
    return square_panels(
        [{name: methods[first] for name, first in panel.items()} for panel in shown],
        partial(_draw_corp, points),
        caption=_caption(methods, bins),
        title=title,
    )


def _caption(methods: Mapping[str, CorpCurve], bins: Mapping[str, ReliabilityBins]) -> str:
    sizes = {curve.n_atoms for curve in methods.values()}
    claims = counted(sizes.pop(), "claim") if len(sizes) == 1 else ""
    if not claims:
        claims = "; ".join(
            f"{name} {counted(curve.n_atoms, 'claim')}" for name, curve in methods.items()
        )
    if not bins:
        return f"{claims}. {band_note(list(methods.values()))}. {_TERMS}"
    kinds = dict.fromkeys(map(kind_of_intervals, bins.values()))
    intervals = next(iter(kinds)) if len(kinds) == 1 else "intervals"
    return f"{claims}. Lines: isotonic regression (CORP). Points: bins with {intervals}. {_TERMS}"


_TERMS = (
    "MCB and DSC: miscalibration and discrimination, of the CORP decomposition of the Brier score."
)


def _draw_corp(
    bins: Mapping[str, ReliabilityBins],
    axes: Axes,
    name: str,
    curve: CorpCurve,
    look: dict[str, Any],
) -> Line2D:
    if name in bins:
        draw_points(axes, bins[name], look)
    elif curve.band != "none":
        draw_band(axes, curve.at, curve.lower, curve.upper, look["color"])
    look = {**look, "marker": "none", "linewidth": 1.2}
    (line,) = axes.plot(curve.p, curve.recalibrated, zorder=3, clip_on=False, **look)
    return line


def _same_corp(first: CorpCurve, second: CorpCurve) -> bool:
    return first.band == second.band and steps_coincide(
        (first.p, first.recalibrated), (second.p, second.recalibrated)
    )
