"""Figure of quantities by relative position."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibration.figures.panels import COLUMN, PAGE, name_lines, name_places, nth_look, write_title
from calibration.figures.panels import panels as panels_of
from calibration.figures.style import COLORS
from calibration.intervals import IntervalMethod
from calibration.self_knowledge.positions import PositionTable
from factormodels.errors import InputError
from factormodels.nouns import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibration.figures.shown_figure import ShownFigure

_HEIGHT = 2.2
_DODGE = 0.09

_KINDS = {"supported": 2, "unsupported": 1, "irrelevant": 3}
"""Index in the palette of each kind of claim, equal in all panels."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Panel with some quantities of a table.

    Attributes:
        table: the table.
        quantities: names in the legend, by the names in the table.
        label: label of the vertical axis.
        colors: index in the palette of each quantity, in order.
        is_share: whether the axis ends at 1; otherwise it ends above the intervals.
        title: title of the panel.
    """

    table: PositionTable
    quantities: Mapping[str, str]
    label: str
    colors: tuple[int, ...]
    is_share: bool = True
    title: str = ""


def label_panels(table: PositionTable) -> tuple[Panel, Panel]:
    """Panels of shares and of numbers of claims (the paper's figure 1)."""
    colors = tuple(_KINDS.values())
    shares = {f"{kind}_share": kind for kind in _KINDS}
    numbers = {f"{kind}_number": kind for kind in _KINDS}
    what = "sentence" if table.average == "sentence" else "claim"
    return (
        Panel(table, shares, f"Share of claims (mean over {what}s)", colors),
        Panel(table, numbers, "Claims per sentence", colors, is_share=False),
    )


def knowledge_panels(table: PositionTable, title: str = "") -> tuple[Panel, Panel]:
    """Panels of SK and SU, and of factuality and sigma (the paper's figures 2 and 3)."""
    known = {"self_known": "Self-Known", "self_unknown": "Self-Unknown"}
    predicted = {"factuality": "factuality", "sigma": "σ"}
    return (
        Panel(table, known, "Share of claims", (0, 1), title=title),
        Panel(table, predicted, "Share of claims", (2, 6), title=title),
    )


def position_figure(panels: Sequence[Panel], *, title: str | None = None) -> ShownFigure:
    """Draw quantities by bin of relative position, with intervals.

    There are two panels in a row. A point without an error bar has no interval (see its status in
    the table). A bin has no point if the quantity is not defined.

    Args:
        panels: the panels.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure with the width of a column, or of a page with several panels, whose
        `caption` names the sample size and the intervals; `calibration.save_figure` writes it.

    Raises:
        InputError: if there is no panel, or a panel has no quantity.
    """
    if not panels:
        raise InputError("panels is empty; give at least one")
    columns = min(len(panels), 2)
    rows = math.ceil(len(panels) / columns)
    size = (COLUMN if columns == 1 else PAGE, rows * _HEIGHT + 0.2)
    with panels_of(rows, columns, size) as (figure, grid):
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        for axes, panel in zip(grid.flat, panels, strict=False):
            _draw(axes, panel)
            # The last cell, overall, is not a position.
            name_places(figure, axes, list(panel.table.positions[:-1]), columns)
        figure.caption = _note(panels)
        if title:
            write_title(figure, title)
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    if not panel.quantities:
        raise InputError("a panel has no quantity; name at least one of its table")
    table = panel.table
    # The last cell, overall, is not a position.
    n_bins = len(table.positions) - 1
    places = np.arange(n_bins, dtype=np.float64)
    highest = 0.0
    lines = {}
    for number, (name, label) in enumerate(panel.quantities.items()):
        estimates = table[name]
        middle = estimates.estimate[:n_bins]
        lower, upper = estimates.lower[:n_bins], estimates.upper[:n_bins]
        shift = (number - (len(panel.quantities) - 1) / 2) * _DODGE
        color = COLORS[panel.colors[number % len(panel.colors)] % len(COLORS)]
        has_interval = ~np.isnan(lower)
        axes.vlines(
            places[has_interval] + shift,
            lower[has_interval],
            upper[has_interval],
            color=color,
            linewidth=0.9,
            alpha=0.6,
        )
        look = nth_look(number) | {"color": color}
        (lines[label],) = axes.plot(places + shift, middle, clip_on=False, **look)
        tops = np.concatenate([middle, upper])
        highest = max(highest, float(np.nanmax(tops, initial=0.0)))
    axes.set_xlim(-0.5, n_bins - 0.5)
    axes.set_ylim(0, 1 if panel.is_share else highest * 1.05 or 1)
    axes.set_xlabel("Relative position of the sentence")
    axes.set_ylabel(panel.label)
    # Do not interpret dollar signs in a name as mathematics.
    axes.set_title(panel.title, pad=7.0).set_parse_math(False)
    name_lines(axes, lines)


def _note(panels: Sequence[Panel]) -> str:
    """Sentence on the sample size and the intervals."""
    table = panels[0].table
    estimates = next(iter(table.quantities.values()))
    how = "bootstrap" if estimates.method == IntervalMethod.BOOTSTRAP else "delta method"
    n_claims = sum(int(counts[-1]) for counts in table.n_claims.values())
    return (
        f"{counted(n_claims, 'claim')} in {counted(int(table.n_sentences[-1]), 'sentence')} of "
        f"{counted(int(table.n_responses[-1]), 'response')}; {100 * estimates.level:g}% intervals "
        f"({how} over responses)."
    )
