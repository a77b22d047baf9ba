"""Figures of the curves of `calibration.curves`: CORP, risk-coverage, histograms, groups."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibration.curves import CorpCurve, GroupCalibration, LabelHistogram, RiskCurve
from calibration.curves.reliability import HISTOGRAM_BINS
from calibration.figures.panels import (
    COINCIDE,
    COLUMN,
    alike,
    coincide,
    name_lines,
    panel_grid,
    panels,
    parts,
)
from calibration.figures.reliability import DrawnCurve, draw_band, square_panels
from calibration.figures.sheet import Sheet, wrap
from calibration.figures.style import COLOURS, DASHES, MARKERS, paper_style
from calibration.validation import Floats
from factormodels.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Curve = TypeVar("Curve", CorpCurve, RiskCurve, GroupCalibration, LabelHistogram)

_PANEL = 0.85
"""Height of a panel of `score_histograms`, in inches."""

_NAME_CHARACTERS = 20
"""Letters in a line of a name beside a curve."""

_NAME_LINE = 0.15
"""Height of such a line, in inches."""


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
    _check(methods, CorpCurve, "corp_curve")
    groups = alike(methods, _same_corp)

    def entry(names: Sequence[str]) -> str:
        terms = [methods[name].decomposition for name in names]
        miscalibration = _span([each.miscalibration for each in terms])
        discrimination = _span([each.discrimination for each in terms])
        return f"{' = '.join(names)}\nMCB {miscalibration}, DSC {discrimination}"

    return square_panels(
        [{entry(names): methods[names[0]] for names in part} for part in parts(groups)],
        _draw_corp,
        label="Isotonic share of true atoms",
        note=_band_note(list(methods.values())),
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


def risk_coverage_figure(methods: Mapping[str, RiskCurve], *, title: str | None = None) -> Figure:
    """Risk-coverage curves of one or more methods, with their bands.

    A curve's name stands beside its end, with its area (AURC) and how much of that is in excess of
    the least that its errors allow. Methods whose curves coincide are drawn once and named
    together; more than three curves are spread over several panels.

    Args:
        methods: curves by the name that the figure shows, drawn in this order, all of one rule.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure as wide as a column (3.4 inches), or as a page (6.9 inches) where there
        are several panels; `save_figure` writes it.

    Raises:
        InputError: if there is no method, one is not a RiskCurve, or their rules differ.
    """
    _check(methods, RiskCurve, "risk_curve")
    rules = {curve.rule for curve in methods.values()}
    if len(rules) > 1:
        raise InputError(
            "methods have the rules 'claim' and 'verdict'; draw each in its own figure"
        )

    def entry(names: Sequence[str]) -> str:
        areas = _span([methods[name].area for name in names])
        excess = _span([methods[name].excess for name in names])
        name = textwrap.fill(" = ".join(names), _NAME_CHARACTERS)
        return f"{name}\nAURC {areas}\nexcess {excess}"

    grouped = parts(alike(methods, _same_risk))
    shown = [{entry(names): methods[names[0]] for names in part} for part in grouped]
    lines = max(sum(1 + name.count("\n") for name in panel) for panel in shown)
    height = max(2.3, lines * _NAME_LINE + 1.0)
    highest = max(float(curve.upper.max()) for curve in methods.values())
    of_verdicts = rules.pop() == "verdict"
    across = "Coverage: share of verdicts kept" if of_verdicts else "Coverage: share of claims kept"
    with panel_grid(len(shown), (height, height), most=2, sharex=True, sharey=True) as (
        figure,
        places,
    ):
        for axes, panel in zip(places, shown, strict=True):
            drawn = {}
            for row, (name, curve) in enumerate(panel.items()):
                draw_band(axes, curve.coverage, curve.lower, curve.upper, COLOURS[row])
                (drawn[name],) = axes.plot(
                    curve.coverage, curve.risk, color=COLOURS[row], linestyle=DASHES[row],
                    linewidth=1.2, zorder=3,
                )  # fmt: skip
            axes.set(xlim=(0, 1), ylim=(0, min(1.0, highest * 1.05) or 1.0))
            axes.set_xticks(np.linspace(0, 1, 6))
            name_lines(axes, drawn)
        characters = 58 if len(places) == 1 else 120
        note = textwrap.wrap(_band_note(list(methods.values())), characters)
        figure.supxlabel("\n".join([across, *note]), fontsize=8.0)
        figure.supylabel(
            "Risk: share of them wrong" if of_verdicts else "Risk: share of them false",
            fontsize=8.0,
        )
        if title:
            figure.suptitle(textwrap.fill(title, characters), fontsize=8.5, parse_math=False)
    return figure


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
        draw_label_bars(axes, histogram)
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
            # One panel has no room for more.
            "Atoms: false below, true above" if len(methods) > 1 else "False   True",
            rotation=90,
            ha="right",
            va="center",
        )
    return figure


def draw_label_bars(axes: Axes, histogram: LabelHistogram) -> None:
    """Draw the bars of true atoms upwards and those of false ones downwards."""
    edges = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)[:-1]
    for counts, colour in ((histogram.true, COLOURS[0]), (-histogram.false, COLOURS[1])):
        axes.bar(
            edges, counts, width=1 / HISTOGRAM_BINS, align="edge", color=colour,
            edgecolor="white", linewidth=0.4,
        )  # fmt: skip


def group_figure(
    methods: Mapping[str, GroupCalibration],
    *,
    group_label: str = "Group",
    title: str | None = None,
) -> Figure:
    """Observed share less mean probability, group by group, with intervals.

    Above 0 a method's probabilities are too low in the group, below 0 too high. A panel has at most
    three methods; further ones are in panels below.

    Args:
        methods: calibration by group, by the name that the figure shows; the same groups in each.
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
    columns = max(5, 62 // len(groups))
    ticks = [
        f"{textwrap.fill(str(group), columns)}\n{count:,}"
        for group, count in zip(groups, counts, strict=True)
    ]
    below = 0.45 + 0.12 * max(tick.count("\n") for tick in ticks)
    rows = parts(alike(methods, _same_groups))
    names = [[textwrap.fill(" = ".join(each), 56) for each in row] for row in rows]
    above = 0.14 * sum(1 + name.count("\n") for row in names for name in row)
    size = (COLUMN, below + above + 1.5 * len(rows) + (0.3 if title else 0.1))
    with panels(len(rows), 1, size, sharex=True, sharey=True) as (figure, grid):
        for axes, row, shown in zip(grid.flat, rows, names, strict=True):
            axes.axhline(0, color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
            apart = min(0.7 / len(row), 0.22)
            points = [
                _draw_gaps(axes, place + (at - (len(row) - 1) / 2) * apart, methods[each[0]], at)
                for at, each in enumerate(row)
            ]
            legend = axes.legend(
                points, [str(at) for at in range(len(row))], loc="lower left",
                bbox_to_anchor=(0.0, 1.0), borderaxespad=0.1, handlelength=1.0, labelspacing=0.2,
                borderpad=0.1, fontsize=7.0,
            )  # fmt: skip
            for text, name in zip(legend.get_texts(), shown, strict=True):
                text.set_parse_math(False)
                text.set_text(name)
            axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.set_xticks(place, ticks)
        for tick in axes.get_xticklabels():
            tick.set_parse_math(False)
        note = _band_note(list(methods.values()))
        figure.supxlabel(
            f"{group_label}, with its number of atoms\n{note}", fontsize=8.0, parse_math=False
        )
        figure.supylabel("Observed share − mean probability", fontsize=8.0)
        if title:
            figure.suptitle(textwrap.fill(title, 58), fontsize=8.5, parse_math=False)
    return figure


def _same_groups(one: GroupCalibration, other: GroupCalibration) -> bool:
    return all(
        coincide(getattr(one, name), getattr(other, name)) for name in ("gap", "lower", "upper")
    )


def _draw_gaps(axes: Axes, place: Floats, calibration: GroupCalibration, at: int) -> Line2D:
    axes.vlines(
        place, calibration.lower, calibration.upper,
        color=COLOURS[at], linewidth=1.2, alpha=0.6, zorder=2,
    )  # fmt: skip
    (points,) = axes.plot(
        place, calibration.gap, color=COLOURS[at], linestyle="none", marker=MARKERS[at],
        markersize=4.5, markeredgecolor="white", markeredgewidth=0.5, zorder=3,
    )  # fmt: skip
    return points


def _check(methods: Mapping[str, Any], kind: type[Any], maker: str) -> None:
    if not methods:
        raise InputError("methods is empty; give at least one method by name")
    for name, curve in methods.items():
        if not isinstance(curve, kind):
            raise InputError(
                f"methods[{name!r}] is of type {type(curve).__name__}; give what {maker} returns"
            )


def _same_corp(one: CorpCurve, other: CorpCurve) -> bool:
    return one.band == other.band and _near(
        (one.p, one.recalibrated), (other.p, other.recalibrated)
    )


def _same_risk(one: RiskCurve, other: RiskCurve) -> bool:
    return _near((one.coverage, one.risk), (other.coverage, other.risk))


def _near(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> bool:
    """Whether two curves of steps lie on each other, by the area between them.

    Where one steps a little earlier than the other they are far apart, but only there.
    """
    at = np.linspace(0.0, 1.0, 501)
    return bool(np.abs(np.interp(at, *one) - np.interp(at, *other)).mean() <= COINCIDE / 2)


def _span(values: Sequence[float]) -> str:
    """A number, or the least and the largest where they differ as printed."""
    ends = dict.fromkeys(f"{end:.4f}" for end in (min(values), max(values)))
    return " to ".join(ends)


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
