"""The figure of predictions of the factuality as it shifts, for a paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibration.figures.style import COLOURS, DASHES, MARKERS, paper_style
from calibration.self_knowledge.prediction import LabelShift

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (3.4, 3.5)
_MARKED = 5
"""One point in so many has a marker: few are enough to tell lines of nineteen apart."""

_NAMES = {
    "sigma": "σ",
    "rogan_gladen": "Rogan–Gladen",
    "emq": "EMQ",
    "factuality": "factuality of the half",
}
_PALETTE = {"sigma": 6, "rogan_gladen": 0, "emq": 1, "factuality": 2}
"""Colours: sigma and the factuality have those of the figure over positions."""


def label_shift_figure(shift: LabelShift, *, title: str | None = None) -> Figure:
    """Predictions of the factuality against the factuality that is predicted.

    A line is the mean prediction over splits, a band holds the middle `shift.level` of them; the
    diagonal is a prediction that is right. What has no prediction anywhere has no line.

    Args:
        shift: the predictions, as `label_shift` returns them.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure; `calibration.save_figure` writes it.
    """
    import numpy as np
    from matplotlib.figure import Figure

    places = np.argsort(shift.prevalence)
    across = shift.prevalence[places]
    with paper_style():
        figure = Figure(figsize=_SIZE)
        axes = figure.add_axes((0.14, 0.17, 0.82, 0.62))
        axes.plot((0, 1), (0, 1), color="0.6", linewidth=0.8, linestyle=(0, (1, 1)), zorder=1)
        for number, (name, mean) in enumerate(shift.mean.items()):
            if np.isnan(mean).all():
                continue
            colour = COLOURS[_PALETTE.get(name, number) % len(COLOURS)]
            lower, upper = shift.lower[name][places], shift.upper[name][places]
            axes.fill_between(across, lower, upper, color=colour, alpha=0.13, linewidth=0)
            axes.plot(
                across,
                mean[places],
                color=colour,
                label=_NAMES.get(name, name),
                linestyle=DASHES[number % len(DASHES)],
                marker=MARKERS[number % len(MARKERS)],
                markevery=(number % _MARKED, _MARKED),
                markeredgecolor="white",
                markeredgewidth=0.5,
            )
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("Factuality of the other half, reweighted")
        axes.set_ylabel("Predicted factuality")
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.02),
            ncols=2,
            borderaxespad=0.0,
            borderpad=0.0,
            handlelength=2.4,
            columnspacing=1.4,
            labelspacing=0.25,
        )
        figure.text(
            0.02,
            0.02,
            f"means over {2 * shift.n_splits:,} halves; bands hold {100 * shift.level:g}% of them",
            fontsize=6.5,
            color="0.3",
            parse_math=False,
        )
        if title:
            figure.text(0.5, 0.975, title, ha="center", va="top", fontsize=8.5, parse_math=False)
    return figure
