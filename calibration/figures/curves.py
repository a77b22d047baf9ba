"""Figures of the curves of `calibration.curves`: CORP, risk-coverage, histograms, groups."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibration.curves import CorpCurve, GroupCalibration, LabelHistogram, RiskCurve
from calibration.curves.reliability import HISTOGRAM_BINS
from calibration.figures.sheet import Sheet, draw_histogram, panel_figure, wrap
from calibration.figures.style import COLOURS, DASHES, MARKERS, paper_style
from factormodels.errors import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Curve = TypeVar("Curve", CorpCurve, RiskCurve, GroupCalibration, LabelHistogram)

_PANEL = 0.85
"""Height of a panel of `score_histograms`, in inches."""

_BAND_OPACITY = 0.18


def corp_diagram(methods: Mapping[str, CorpCurve], *, title: str | None = None) -> Figure:
    """CORP reliability curves of one or more methods, with their bands, histograms below.

    The legend gives the CORP terms of each method's Brier score. Confidence bands are around the
    curves, consistency bands around the diagonal: there a curve that leaves its own band shows
    that the method is not calibrated.

    Args:
        methods: curves by the name that the legend shows, drawn in this order.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide; `save_figure` writes it.

    Raises:
        InputError: if there is no method, or one is not a CorpCurve.
    """
    _check(methods, CorpCurve, "corp_curve")

    def draw(axes: Axes) -> list[Artist]:
        axes.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        handles = []
        for row, curve in enumerate(methods.values()):
            look = _look(row)
            if curve.band != "none":
                axes.fill_between(
                    curve.at,
                    curve.lower,
                    curve.upper,
                    color=look["color"],
                    alpha=_BAND_OPACITY,
                    linewidth=0,
                    zorder=2,
                )
            (line,) = axes.plot(curve.p, curve.recalibrated, zorder=3, clip_on=False, **look)
            handles.append(line)
        _unit_square(axes)
        return [*handles, _patch_handle()]

    strips = [
        partial(draw_histogram, histogram=curve.histogram, colour=COLOURS[row % len(COLOURS)])
        for row, curve in enumerate(methods.values())
    ]
    entries = [
        f"{name}: MCB {curve.decomposition.miscalibration:.4f}, "
        f"DSC {curve.decomposition.discrimination:.4f}"
        for name, curve in methods.items()
    ]
    return panel_figure(
        draw,
        [*entries, _band_note(list(methods.values()))],
        labels=("Predicted probability of being true", "Isotonic share of true atoms"),
        strips=strips,
        strips_label="Atoms",
        title=title,
    )


def risk_coverage_figure(methods: Mapping[str, RiskCurve], *, title: str | None = None) -> Figure:
    """Risk-coverage curves of one or more methods, with their bands.

    The legend gives each method's area under the curve, and how much of it is in excess of the
    least that its errors allow.

    Args:
        methods: curves by the name that the legend shows, drawn in this order, all of one rule.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide; `save_figure` writes it.

    Raises:
        InputError: if there is no method, one is not a RiskCurve, or their rules differ.
    """
    _check(methods, RiskCurve, "risk_curve")
    rules = {curve.rule for curve in methods.values()}
    if len(rules) > 1:
        raise InputError(
            "methods have the rules 'claim' and 'verdict'; draw each in its own figure"
        )

    def draw(axes: Axes) -> list[Artist]:
        handles = []
        for row, curve in enumerate(methods.values()):
            look = _look(row)
            axes.fill_between(
                curve.coverage,
                curve.lower,
                curve.upper,
                color=look["color"],
                alpha=_BAND_OPACITY,
                linewidth=0,
                zorder=2,
            )
            (line,) = axes.plot(curve.coverage, curve.risk, zorder=3, **look)
            handles.append(line)
        highest = max(float(curve.upper.max()) for curve in methods.values())
        axes.set_xlim(0, 1)
        axes.set_ylim(0, min(1.0, highest * 1.05) or 1.0)
        axes.set_xticks(np.linspace(0, 1, 6))
        return [*handles, _patch_handle()]

    of_verdicts = rules.pop() == "verdict"
    entries = [
        f"{name}: AURC {curve.area:.4f}, excess {curve.excess:.4f}"
        for name, curve in methods.items()
    ]
    return panel_figure(
        draw,
        [*entries, _band_note(list(methods.values()))],
        labels=(
            "Coverage: share of verdicts kept" if of_verdicts else "Coverage: share of claims kept",
            "Risk: share of them wrong" if of_verdicts else "Risk: share of them false",
        ),
        title=title,
    )


def score_histograms(methods: Mapping[str, LabelHistogram], *, title: str | None = None) -> Figure:
    """Histogram of p for each method, true atoms upwards and false ones downwards.

    Args:
        methods: histograms by the name that each panel shows, drawn in this order.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide; `save_figure` writes it.

    Raises:
        InputError: if there is no method, or one is not a LabelHistogram.
    """
    _check(methods, LabelHistogram, "label_histogram")
    from matplotlib.figure import Figure as NewFigure

    def draw(axes: Axes, histogram: LabelHistogram) -> None:
        edges = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)
        for counts, colour in ((histogram.true, COLOURS[0]), (-histogram.false, COLOURS[1])):
            axes.bar(
                edges[:-1],
                counts,
                width=1 / HISTOGRAM_BINS,
                align="edge",
                color=colour,
                edgecolor="white",
                linewidth=0.4,
            )
        axes.axhline(0, color="black", linewidth=0.6)
        most = max(int(histogram.true.max()), int(histogram.false.max()))
        axes.set_xlim(0, 1)
        ends = [-int(histogram.false.max()), int(histogram.true.max())]
        axes.set_ylim(min(ends[0], -0.2 * most) * 1.08, max(ends[1], 0.2 * most) * 1.08)
        # A small count beside the other would be written over the zero.
        ticks = [0, *(end for end in ends if abs(end) >= 0.3 * most)]
        axes.set_yticks(ticks, [f"{abs(tick):,}" for tick in ticks])
        axes.set_xticks(np.linspace(0, 1, 6))

    with paper_style():
        figure = NewFigure(figsize=(Sheet.width, 1.0))
        texts = [figure.text(0, 0, "", ha="left", va="bottom") for _ in methods]
        for text, name in zip(texts, methods, strict=True):
            wrap([text], [name], text, figure.dpi, Sheet.side)
        heading = figure.text(0, 0, "", ha="center", va="top", fontsize=8.5)
        wrap([heading], [title or ""], heading, figure.dpi, Sheet.side)
        heights = [text.get_window_extent().height / figure.dpi for text in texts]
        above = heading.get_window_extent().height / figure.dpi + 0.09 if title else 0.02
        total = above + 0.40 + sum(heights) + len(texts) * (_PANEL + 0.12)
        figure.set_size_inches(Sheet.width, total)
        heading.set_position(((Sheet.left + Sheet.side / 2) / Sheet.width, 1 - 0.04 / total))
        top = total - above
        first: Axes | None = None
        for text, height, histogram in zip(texts, heights, methods.values(), strict=True):
            top -= height + _PANEL + 0.12
            axes = figure.add_axes(
                (Sheet.left / Sheet.width, top / total, Sheet.side / Sheet.width, _PANEL / total),
                sharex=first,
            )
            first = first or axes
            draw(axes, histogram)
            axes.tick_params(labelbottom=False)
            text.set_position((Sheet.left / Sheet.width, (top + _PANEL + 0.04) / total))
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("Predicted probability of being true")
        figure.text(
            Sheet.label / Sheet.width,
            (0.40 + (total - above - 0.40) / 2) / total,
            "Atoms: false below, true above",
            rotation=90,
            ha="right",
            va="center",
        )
    return figure


def group_figure(
    methods: Mapping[str, GroupCalibration],
    *,
    group_label: str = "Group",
    title: str | None = None,
) -> Figure:
    """Observed share less mean probability, group by group, with intervals.

    Above 0 a method's probabilities are too low in the group, below 0 too high.

    Args:
        methods: calibration by group, by the name that the legend shows; the same groups in each.
        group_label: what the groups are, below the horizontal axis.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide; `save_figure` writes it.

    Raises:
        InputError: if there is no method, one is not a GroupCalibration, or groups differ.
    """
    _check(methods, GroupCalibration, "group_calibration")
    groups = next(iter(methods.values())).groups
    for name, calibration in methods.items():
        if calibration.groups != groups:
            raise InputError(
                f"methods[{name!r}] has the groups {_listed(calibration.groups)}, the first method "
                f"{_listed(groups)}; give the same order to group_calibration"
            )
    place = np.arange(len(groups), dtype=np.float64)
    counts = next(iter(methods.values())).n_atoms.tolist()
    columns = max(5, 56 // len(groups))
    ticks = [
        f"{textwrap.fill(str(group), columns)}\n{count:,}"
        for group, count in zip(groups, counts, strict=True)
    ]
    lines = max(tick.count("\n") for tick in ticks)
    offsets = (np.arange(len(methods)) - (len(methods) - 1) / 2) * min(0.7 / len(methods), 0.22)

    def draw(axes: Axes) -> list[Artist]:
        axes.axhline(0, color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        handles = []
        for row, (calibration, offset) in enumerate(zip(methods.values(), offsets, strict=True)):
            colour = COLOURS[row % len(COLOURS)]
            axes.vlines(
                place + offset,
                calibration.lower,
                calibration.upper,
                color=colour,
                linewidth=1.2,
                alpha=0.6,
                zorder=2,
            )
            (points,) = axes.plot(
                place + offset,
                calibration.gap,
                color=colour,
                linestyle="none",
                marker=MARKERS[row % len(MARKERS)],
                markersize=4.5,
                markeredgecolor="white",
                markeredgewidth=0.5,
                zorder=3,
            )
            handles.append(points)
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.set_xticks(place, ticks)
        for tick in axes.get_xticklabels():
            tick.set_parse_math(False)
        axes.tick_params(axis="x", length=0)
        return [*handles, _interval_handle()]

    return panel_figure(
        draw,
        [*methods, _band_note(list(methods.values()))],
        labels=(f"{group_label}, with its number of atoms", "Observed share − mean probability"),
        title=title,
        height=1.9,
        bottom=0.45 + 0.135 * lines,
    )


def _check(methods: Mapping[str, Any], kind: type[Any], maker: str) -> None:
    if not methods:
        raise InputError("methods is empty; give at least one method by name")
    for name, curve in methods.items():
        if not isinstance(curve, kind):
            raise InputError(
                f"methods[{name!r}] is of type {type(curve).__name__}; give what {maker} returns"
            )


def _look(row: int) -> dict[str, Any]:
    return {
        "color": COLOURS[row % len(COLOURS)],
        "linestyle": DASHES[row % len(DASHES)],
        "linewidth": 1.2,
    }


def _unit_square(axes: Axes) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_yticks(np.linspace(0, 1, 6))


def _patch_handle() -> Any:
    from matplotlib.patches import Patch

    return Patch(color="0.4", alpha=0.3, linewidth=0)


def _interval_handle() -> Line2D:
    from matplotlib.lines import Line2D as Line

    return Line([], [], color="0.4", linewidth=1.2, linestyle="none", marker="|", markersize=7)


def _band_note(curves: Sequence[CorpCurve | RiskCurve | GroupCalibration]) -> str:
    """Say what the bands or intervals are, and of how many responses."""
    first = curves[0]
    bands = {curve.band for curve in curves if isinstance(curve, CorpCurve)}
    if bands == {"none"}:
        return "No band"
    kind = "intervals" if isinstance(first, GroupCalibration) else "confidence bands"
    if len(bands) == 1:
        kind = f"{bands.pop()} bands"
    elif bands:
        kind = "bands"
    levels = {curve.level for curve in curves}
    note = f"{100 * levels.pop():g}% {kind}" if len(levels) == 1 else kind
    numbers = {curve.n_responses for curve in curves}
    if len(numbers) > 1:
        return note
    n_responses = numbers.pop()
    if n_responses is None:
        return f"{note}, atoms independent"
    return f"{note}, {n_responses:,} responses"


def _listed(groups: Sequence[Hashable]) -> str:
    return ", ".join(map(repr, groups))
