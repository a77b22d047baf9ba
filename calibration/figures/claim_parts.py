"""Figure of a response's probabilities before and after learning, with the parts of log odds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibration.figures.panels import PAGE, legend_below, nth_color, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def claim_parts_figure(frame: pd.DataFrame, parts: tuple[str, ...]) -> Figure:
    """Draw probabilities of a response's claims above, and the parts of their log odds below.

    Args:
        frame: a row for each claim, in order: claim, label (1, 0 or nan), before and after, and a
            column for each part.
        parts: the columns of parts.
    """
    places = frame["claim"].to_numpy()
    with panels(2, 1, (PAGE, 3.6), sharex=True) as (figure, ((above,), (below,))):
        above.vlines(places, frame["before"], frame["after"], color="0.7", linewidth=0.8)
        above.plot(places, frame["before"], "o", color="0.5", fillstyle="none", label="before")
        for label, marker, name in ((1, "^", "after, true"), (0, "v", "after, false")):
            claims = frame[frame["label"] == label]
            above.plot(
                claims["claim"], claims["after"], marker, color=nth_color(1 - label), label=name
            )
        above.set_ylabel("Predicted probability")
        above.set_ylim(0, 1)
        up, down = np.zeros(len(frame)), np.zeros(len(frame))
        for at, name in enumerate(parts):
            values = frame[name].to_numpy()
            below.bar(
                places, values, bottom=np.where(values >= 0, up, down),
                color=nth_color(at + 2), label=name, width=0.8,
            )  # fmt: skip
            up, down = up + np.maximum(values, 0), down + np.minimum(values, 0)
        below.axhline(0, color="0.4", linewidth=0.7)
        below.set_ylabel("Part of the log odds")
        below.set_xlabel("Claim")
        named = [axes.get_legend_handles_labels() for axes in (above, below)]
        handles = [handle for drawn, _ in named for handle in drawn]
        legend_below(
            figure, handles, [name for _, labels in named for name in labels], len(handles)
        )
        return figure
