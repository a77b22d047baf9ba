"""The annotated calibration plot of one method."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.curves.calibration_profile import CalibrationProfile
from calibration.figures.panels import COLUMN, legend_above, panels
from calibration.figures.score_histograms import draw_label_bars
from calibration.figures.style import COLOURS
from calibration.scores.registry import REGISTRY
from factormodels.errors import InputError
from factormodels.nouns import counted

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def calibration_plot(profile: CalibrationProfile, *, title: str | None = None) -> Figure:
    """Calibration plot with its scores written on it (val.prob of rms, CalibrationCurves).

    The flexible curve with its band, the logistic curve of slope and intercept, groups of about
    equal size with their intervals, and the diagonal; below, the p of true atoms upwards and of
    false ones downwards.

    Args:
        profile: as `calibration_profile` returns it.
        title: text above the figure, or None.

    Returns:
        A matplotlib Figure 3.4 inches wide; `save_figure` writes it.

    Raises:
        InputError: if `profile` is anything else.
    """
    if not isinstance(profile, CalibrationProfile):
        raise InputError(
            f"profile is of type {type(profile).__name__}; give what calibration_profile returns"
        )
    how = "claims independent"
    if profile.n_responses is not None:
        how = f"{counted(profile.n_responses, 'response')}"
    level = f"{100 * profile.level:g}%"
    entries = [
        f"Flexible, {level} band",
        "Logistic",
        f"Groups, {level} intervals",
        f"Ideal; {counted(profile.n_atoms, 'claim')}, {how}",
    ]
    size = (COLUMN, 4.6 if title else 4.3)
    with panels(2, 1, size, sharex=True, height_ratios=(7, 1)) as (figure, ((diagram,), (strip,))):
        legend_above(diagram, _draw(diagram, profile), entries)
        diagram.set_ylabel("Observed share of true claims")
        _draw_labels(strip, profile)
        strip.set(xlabel="Predicted probability of being true", ylabel="False  True")
        if title:
            figure.suptitle(textwrap.fill(title, 58), fontsize=8.5, parse_math=False)
    return figure


def annotation(profile: CalibrationProfile) -> str:
    """The scores as the plot shows them, a line each."""
    lines = []
    for row in profile.scores.values():
        text = f"{REGISTRY[row.name].title} "
        if not math.isfinite(row.value):
            lines.append(f"{text}({row.status.replace('_', ' ')})")
            continue
        text += f"{row.value:.3f}"
        lower, upper = row.interval
        if math.isfinite(lower) and math.isfinite(upper):
            text += f" [{lower:.3f}, {upper:.3f}]"
        lines.append(text)
    return "\n".join(lines)


def _draw(axes: Axes, profile: CalibrationProfile) -> list[Artist]:
    (ideal,) = axes.plot(
        [0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1
    )
    axes.fill_between(
        profile.at, profile.lower, profile.upper,
        color=COLOURS[0], alpha=0.18, linewidth=0, zorder=2,
    )  # fmt: skip
    (curve,) = axes.plot(profile.at, profile.curve, color=COLOURS[0], linewidth=1.2, zorder=4)
    (line,) = axes.plot(
        profile.at, profile.line, color=COLOURS[2], linewidth=1.0, linestyle=(0, (5, 2)), zorder=3
    )
    bins = profile.bins
    axes.vlines(
        bins.mean_predicted, bins.lower, bins.upper,
        color=COLOURS[1], linewidth=0.9, alpha=0.6, clip_on=False, zorder=5,
    )  # fmt: skip
    (groups,) = axes.plot(
        bins.mean_predicted, bins.observed, color=COLOURS[1], linestyle="none", marker="^",
        markersize=4.0, markeredgecolor="white", markeredgewidth=0.4, clip_on=False, zorder=6,
    )  # fmt: skip
    # Above a curve that lies low, below one that lies high: there the panel is empty.
    low = bool((profile.curve - profile.at).mean() < 0)
    place: dict[str, Any] = (
        {"x": 0.02, "y": 0.98, "ha": "left", "va": "top"}
        if low
        else {"x": 0.98, "y": 0.02, "ha": "right", "va": "bottom"}
    )
    axes.text(
        **place, s=annotation(profile), transform=axes.transAxes, fontsize=6.3, linespacing=1.2,
        parse_math=False, zorder=7,
        bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_yticks(np.linspace(0, 1, 6))
    return [curve, line, groups, ideal]


def _draw_labels(axes: Axes, profile: CalibrationProfile) -> None:
    histogram = profile.histogram
    draw_label_bars(axes, histogram)
    axes.axhline(0, color="black", linewidth=0.5)
    most = max(int(histogram.true.max()), int(histogram.false.max()))
    axes.set_ylim(-1.08 * most, 1.08 * most)
    axes.set_yticks([-most, most], [f"{most:,}", f"{most:,}"])
