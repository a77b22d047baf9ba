"""CORP reliability curves of one or more methods, in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.curves import CorpCurve
from calibration.figures.curve_notes import band_note, check_curves, span
from calibration.figures.panels import (
    alike,
    parts,
    steps_coincide,
)
from calibration.figures.reliability_diagram import DrawnCurve, draw_band, square_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def corp_diagram(methods: Mapping[str, CorpCurve], *, title: str | None = None) -> Figure:
    """CORP reliability curves of one or more methods, with their bands and a rug of p below.

    Each name is followed by the CORP terms of the method's Brier score. Confidence bands are around
    the curves, consistency bands around the diagonal: there a curve that leaves its own band shows
    that the method is not calibrated. Methods whose curves coincide are drawn once and named
    together; more than three curves are spread over several panels.

    Args:
        methods: curves by the name that the figure shows, drawn in this order.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure as wide as a column (3.4 inches), or as a page (6.9 inches) where there
        are several panels; `save_figure` writes it.

    Raises:
        InputError: if there is no method, or one is not a CorpCurve.
    """
    check_curves(methods, CorpCurve, "corp_curve")
    groups = alike(methods, _same_corp)

    def entry(names: Sequence[str]) -> str:
        terms = [methods[name].decomposition for name in names]
        miscalibration = span([each.miscalibration for each in terms])
        discrimination = span([each.discrimination for each in terms])
        return f"{' = '.join(names)}\nMCB {miscalibration}, DSC {discrimination}"

    return square_panels(
        [{entry(names): methods[names[0]] for names in part} for part in parts(groups)],
        _draw_corp,
        label="Isotonic share of true claims",
        note=band_note(list(methods.values())),
        title=title,
    )


def _draw_corp(axes: Axes, curve: CorpCurve, look: dict[str, Any]) -> DrawnCurve:
    if curve.band != "none":
        draw_band(axes, curve.at, curve.lower, curve.upper, look["color"])
    look = {**look, "marker": "none", "linewidth": 1.2}
    (line,) = axes.plot(curve.p, curve.recalibrated, zorder=3, clip_on=False, **look)
    lower, upper = (
        np.concatenate([ends, curve.recalibrated]) for ends in (curve.lower, curve.upper)
    )
    return DrawnCurve(line, np.concatenate([curve.at[: len(curve.lower)], curve.p]), lower, upper)


def _same_corp(one: CorpCurve, other: CorpCurve) -> bool:
    return one.band == other.band and steps_coincide(
        (one.p, one.recalibrated), (other.p, other.recalibrated)
    )
