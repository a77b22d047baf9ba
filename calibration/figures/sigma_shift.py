"""The figure of predictions of the factuality as it shifts, for a paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibration.figures.panels import coincide, name_lines, nth_look, small_multiples, together
from calibration.self_knowledge.prediction import LabelShift

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKED = 5
"""One point in so many has a marker: few are enough to tell lines of nineteen apart."""

_NAMES = {
    "sigma": "σ",
    "factuality": "factuality\nof the half",
    "rogan_gladen": "Rogan–Gladen",
    "emq": "EMQ",
}


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

    order = np.argsort(shift.prevalence)
    across = shift.prevalence[order]
    means = {name: mean for name, mean in shift.mean.items() if not np.isnan(mean).all()}
    # What stays as it is under a shift, then what follows it.
    kept = sorted(means, key=lambda name: list(_NAMES).index(name) if name in _NAMES else 9)
    named = together({_NAMES.get(name, name): shift.mean[name] for name in kept}, coincide)
    of = {_NAMES.get(name, name): name for name in means}
    with small_multiples(list(named), (3.2, 2.6)) as (figure, places):
        for place, names in places:
            place.plot((0, 1), (0, 1), color="0.6", linewidth=0.8, linestyle=(0, (1, 1)), zorder=1)
            lines = {}
            for number, name in enumerate(names):
                first = of[name.split(" = ")[0]]
                look = nth_look(number) | {"markevery": (number % _MARKED, _MARKED)}
                lower, upper = shift.lower[first][order], shift.upper[first][order]
                place.fill_between(
                    across, lower, upper, color=look["color"], alpha=0.13, linewidth=0
                )
                (line,) = place.plot(across, named[name][order], **look)
                lines[name.replace(" = ", " =\n")] = line
            place.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
            name_lines(place, lines)
        places[0][0].set_ylabel("Predicted factuality")
        figure.supxlabel(
            "Factuality of the other half, reweighted\n"
            f"means over {2 * shift.n_splits:,} halves; "
            f"bands hold {100 * shift.level:g}% of them",
            fontsize=8.0,
        )
        if title:
            figure.suptitle(title, fontsize=8.5).set_parse_math(False)
        return figure
