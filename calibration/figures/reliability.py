"""Reliability diagrams of one or more methods."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.curves.reliability import HISTOGRAM_BINS, ReliabilityBins
from calibration.figures.panels import COLUMN, MOST_CURVES, PAGE, coincide, parts, together
from calibration.figures.style import COLOURS, DASHES, MARKERS, paper_style
from factormodels.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_PANELS_IN_A_ROW = 3
_RUG = 0.055
"""Height of a row of the rug, in units of the vertical axis."""


def reliability_diagram(
    methods: Mapping[str, ReliabilityBins],
    *,
    title: str | None = None,
    panels: Mapping[str, str] | None = None,
) -> Figure:
    """Reliability diagram of one or more methods, with a rug of P below.

    Points lie at the mean predicted probability and the observed share of true atoms of each bin,
    bands are their intervals; on the diagonal a method is calibrated. The rug has a row of bars
    for each method, as high as the number of its atoms in each of 21 equal parts of [0, 1].
    Methods whose points nowhere lie farther apart than 0.01 are drawn once and named together; of
    more than three curves every few have a panel of their own.

    Args:
        methods: reliability bins by the name that the figure shows, drawn in this order.
        title: text above the figure, or None.
        panels: what keeps methods in one panel, by their names; used for more than three curves.

    Returns:
        A matplotlib Figure as wide as a column (3.4 inches), or as a page (6.9 inches) where there
        are several panels; `save_figure` writes it.

    Raises:
        InputError: if there is no method, or one is not given as ReliabilityBins.
    """
    if not methods:
        raise InputError("methods is empty; give at least one method's reliability bins by name")
    for name, bins in methods.items():
        if not isinstance(bins, ReliabilityBins):
            raise InputError(
                f"methods[{name!r}] is of type {type(bins).__name__}; give what reliability_bins "
                "returns"
            )
    parts = _panels(methods, panels or {})
    entries, note = _entries({name: bins for part in parts for name, bins in part.items()})
    from matplotlib.figure import Figure as NewFigure

    columns = min(len(parts), _PANELS_IN_A_ROW)
    rows = -(-len(parts) // columns)
    width, characters = (COLUMN, 58) if columns == 1 else (PAGE, 120)
    most = max(map(len, parts))
    with paper_style():
        figure = NewFigure(figsize=(width, rows * (width / columns + 0.1) + 0.55))
        figure.set_layout_engine("constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes, part in zip(grid.flat, parts, strict=False):
            named = [(entries[name], bins) for name, bins in part.items()]
            _draw_panel(axes, named, -0.03 - _RUG * most, 44 - 10 * (columns - 1))
        for axes in grid.flat[len(parts) :]:
            axes.remove()
        texts = [
            figure.supylabel("Observed share of true atoms", fontsize=8.0),
            figure.supxlabel(
                "\n".join(
                    ["Predicted probability of being true", *textwrap.wrap(note, characters)]
                ),
                fontsize=8.0,
            ),
        ]
        if title:
            texts.append(figure.suptitle(textwrap.fill(title, characters), fontsize=8.5))
        for text in texts:
            # Two dollar signs in a name are not mathematics.
            text.set_parse_math(False)
    return figure


def _panels(
    methods: Mapping[str, ReliabilityBins], together: Mapping[str, str]
) -> list[dict[str, ReliabilityBins]]:
    """The curves of each panel."""
    curves = coinciding(methods)
    if len(curves) <= MOST_CURVES:
        return [curves]
    groups: dict[str, dict[str, ReliabilityBins]] = {}
    for name, bins in methods.items():
        groups.setdefault(together.get(name, ""), {})[name] = bins
    found = []
    for group in groups.values():
        own = coinciding(group)
        found += [{name: own[name] for name in names} for names in parts(list(own))]
    return found


def coinciding(methods: Mapping[str, ReliabilityBins]) -> dict[str, ReliabilityBins]:
    """Methods by name, those whose curves coincide once and named together ("a = b")."""
    return together(methods, _coincide)


def _coincide(one: ReliabilityBins, other: ReliabilityBins) -> bool:
    return (
        one.n_atoms == other.n_atoms
        and one.interval == other.interval
        and len(one.count) == len(other.count)
        and coincide(one.mean_predicted, other.mean_predicted)
        and coincide(one.observed, other.observed)
    )


def _entries(methods: Mapping[str, ReliabilityBins]) -> tuple[dict[str, str], str]:
    """Text of each method's name, and what the bands are.

    What all methods share (number of atoms, kind of interval) is told once.
    """
    bins = list(methods.values())
    sizes = {each.n_atoms for each in bins}
    kinds = {(each.level, each.interval, each.n_responses) for each in bins}
    note = "bands: intervals"
    if len(kinds) == 1:
        level, interval, n_responses = kinds.pop()
        how = "Wilson, atoms independent"
        if interval == "bootstrap":
            how = f"bootstrap over {n_responses:,} responses"
        note = f"bands: {100 * level:g}% intervals ({how})"
    if len(sizes) == 1:
        return {name: name for name in methods}, f"{sizes.pop():,} atoms; {note}"
    return {name: f"{name} ({each.n_atoms:,} atoms)" for name, each in methods.items()}, note


def _draw_panel(
    axes: Axes, methods: Sequence[tuple[str, ReliabilityBins]], floor: float, characters: int
) -> None:
    """Draw the diagonal, the methods with their names, and the rug, down to `floor`."""
    axes.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    lines = []
    for row, (_, bins) in enumerate(methods):
        colour = COLOURS[row]
        axes.fill_between(
            bins.mean_predicted,
            bins.lower,
            bins.upper,
            color=colour,
            alpha=0.16,
            linewidth=0,
            zorder=2,
        )
        lines += axes.plot(
            bins.mean_predicted,
            bins.observed,
            color=colour,
            linestyle=DASHES[row],
            marker=MARKERS[row],
            markeredgecolor="white",
            markeredgewidth=0.5,
            clip_on=False,
            zorder=3,
        )
        bottom = -0.03 - _RUG * (row + 1)
        # One outline: a patch for every bar takes most of the time of the figure.
        axes.stairs(
            bottom + bins.histogram / max(int(bins.histogram.max()), 1) * 0.85 * _RUG,
            np.arange(HISTOGRAM_BINS + 1) / HISTOGRAM_BINS,
            baseline=bottom,
            fill=True,
            color=colour,
        )
    axes.axhline(0.0, color="0.75", linewidth=0.5, zorder=0)
    axes.set(xlim=(0, 1), ylim=(floor, 1), aspect="equal")
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.spines["left"].set_bounds(0, 1)
    _name(axes, lines, methods, characters)


def _name(
    axes: Axes,
    lines: Sequence[Line2D],
    methods: Sequence[tuple[str, ReliabilityBins]],
    characters: int,
) -> None:
    """Name the curves in a corner that they leave free, or above where they leave none."""
    names = [textwrap.fill(name, characters) for name, _ in methods]
    height = 0.06 * sum(1 + name.count("\n") for name in names) + 0.04
    x = np.concatenate([bins.mean_predicted for _, bins in methods])
    highest = np.concatenate([bins.upper for _, bins in methods])
    lowest = np.concatenate([bins.lower for _, bins in methods])
    if not (highest[x < 0.55] > 1 - height).any():
        place: dict[str, Any] = {"loc": "upper left"}
    elif not (lowest[x > 0.4] < height).any():
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, _RUG * len(methods))}
    else:
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.02)}
    legend = axes.legend(
        lines,
        [str(row) for row in range(len(lines))],
        borderaxespad=0.1,
        handlelength=2.0,
        labelspacing=0.25,
        fontsize=7.0,
        **place,
    )
    # Names are set here: matplotlib would leave out one that begins with an underscore.
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
