"""The plots of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibration.figures.style import COLOURS, MARKERS, paper_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from numpy.typing import NDArray

Score = tuple[float, float, float]
"""A score with the ends of its interval; NaN where there is none."""

MAX_ROWS = 30
"""Answers in one plot of scores."""

_WIDTH = 6.9
_ROW_INCHES = 0.15
_NAME_CHARACTERS = 46
_BINS = 20


@dataclass(frozen=True)
class ScoredRow:
    """A row of a plot of scores.

    Attributes:
        name: what stands beside it.
        exact: whether it is the answer of the exact backend, which has a colour of its own.
        scores: by measure.
    """

    name: str
    exact: bool
    scores: Mapping[str, Score]


def scores_figure(rows: Sequence[ScoredRow], measures: Mapping[str, str]) -> Figure:
    """Scores with their intervals: a row for every answer, a panel per measure.

    Args:
        rows: the answers, each named beside its row.
        measures: the measures to show, with the title of each.
    """
    from textwrap import fill

    from calibration.figures.shown_figure import ShownFigure

    names = [fill(row.name, _NAME_CHARACTERS) for row in rows]
    lines = [1 + name.count("\n") for name in names]
    # A name of two lines takes the room of two rows.
    height = [sum(lines[:row]) + lines[row] / 2 for row in range(len(rows))]
    with paper_style():
        figure = ShownFigure(
            figsize=(_WIDTH, _ROW_INCHES * (sum(lines) + 1) + 0.5), layout="constrained"
        )
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axes, (measure, title) in zip(panels, measures.items(), strict=True):
            for row, y in zip(rows, height, strict=True):
                estimate, *ends = row.scores[measure]
                number = 0 if row.exact else 1
                if np.isfinite(ends).all():
                    axes.plot(ends, [y, y], color=COLOURS[number], linewidth=1.0)
                axes.plot([estimate], [y], MARKERS[number], color=COLOURS[number], markersize=3.5)
            axes.set_xlabel(title)
            axes.grid(axis="x", color="0.5", alpha=0.25, linewidth=0.5)
        panels[0].set_yticks(height, names)
        _as_plain_text(panels[0].get_yticklabels())
        # Upside down, so that the first row is at the top.
        panels[0].set_ylim(sum(lines) + 0.4, -0.4)
        for axes in panels:
            axes.tick_params(axis="y", length=0)
    return figure


def posteriors_figure(p: NDArray[np.float64], label: NDArray[np.float64]) -> Figure:
    """How posteriors are spread over [0, 1], by human label.

    Args:
        p: posteriors (n,).
        label: labels (n,), 1, 0, or NaN where there is none.
    """
    from matplotlib.ticker import MaxNLocator

    from calibration.figures.shown_figure import ShownFigure

    groups = {
        "labelled true": (label == 1, COLOURS[0]),
        "labelled false": (label == 0, COLOURS[1]),
        "unlabelled": (np.isnan(label), "0.55"),
    }
    shown = {name: (p[own], colour) for name, (own, colour) in groups.items() if own.any()}
    with paper_style():
        figure = ShownFigure(figsize=(3.4, 2.6), layout="constrained")
        axes = figure.add_subplot()
        axes.hist(
            [values for values, _ in shown.values()],
            bins=np.linspace(0.0, 1.0, _BINS + 1).tolist(),
            stacked=True,
            label=[f"{name} ({len(values):,})" for name, (values, _) in shown.items()],
            color=[colour for _, colour in shown.values()],
            # Without colour the hatching tells.
            hatch=["////" if name == "labelled false" else "" for name in shown],
            edgecolor="white",
            linewidth=0.4,
        )
        axes.set(xlim=(0, 1), xlabel="Posterior probability of being true", ylabel="Claims")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.axvline(0.5, color="0.5", linewidth=0.6, linestyle=(0, (4, 3)))
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def _as_plain_text(texts: Iterable[Text]) -> None:
    """Have names that hold a dollar sign drawn as they are."""
    for text in texts:
        text.set_parse_math(False)
