"""One panel in the width of a column, with its legend above and strips below."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calibration.figures.style import paper_style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text


@dataclass(frozen=True)
class Sheet:
    """The measurements of a figure of one panel, in inches."""

    n_strips: int
    legend_height: float
    title_height: float

    width: ClassVar[float] = 3.4
    left: ClassVar[float] = 0.56
    right: ClassVar[float] = 0.12
    side: ClassVar[float] = width - left - right
    gap: ClassVar[float] = 0.09
    label: ClassVar[float] = 0.17
    bottom: ClassVar[float] = 0.40

    @property
    def strip(self) -> float:
        return 0.34 if self.n_strips <= 3 else 0.22

    @property
    def strips_height(self) -> float:
        return self.n_strips * (self.strip + self.gap)

    @property
    def top_of_diagram(self) -> float:
        return self.bottom + self.strips_height + self.side

    @property
    def height(self) -> float:
        title = self.title_height + 0.03 if self.title_height else 0.0
        return self.top_of_diagram + self.legend_height + 0.14 + title

    def rectangle(self, bottom: float, height: float) -> tuple[float, float, float, float]:
        """Place of axes as matplotlib wants it, in fractions of the figure."""
        return (
            self.left / self.width,
            bottom / self.height,
            self.side / self.width,
            height / self.height,
        )


def panel_figure(
    draw: Callable[[Axes], Sequence[Artist]],
    entries: Sequence[str],
    *,
    labels: tuple[str, str],
    strips: Sequence[Callable[[Axes], None]] = (),
    strips_label: str = "",
    title: str | None = None,
) -> Figure:
    """Figure of one panel, as high as its legend, strips and title need.

    Args:
        draw: draws the panel and returns the handles of the legend.
        entries: text of each handle, shown as it is.
        labels: of the horizontal and the vertical axis.
        strips: each draws one strip below the panel, sharing its horizontal axis.
        strips_label: of the vertical axis of all strips.
        title: text above the figure, or None.
    """
    from calibration.figures.shown_figure import ShownFigure

    with paper_style():
        figure = ShownFigure()
        panel = figure.add_axes((0.0, 0.0, 1.0, 1.0), label="diagram")
        handles = draw(panel)
        panel.set_ylabel(labels[1])
        # The figure is as high as legend and title need, which is known once their text is set.
        legend_height = draw_legend(panel, handles, entries, figure.dpi)
        heading = figure.text(0.0, 0.0, "", ha="center", va="top", fontsize=8.5)
        wrap([heading], [title or ""], heading, figure.dpi, Sheet.side)
        title_height = heading.get_window_extent().height / figure.dpi if title else 0.0
        sheet = Sheet(len(strips), legend_height, title_height)
        figure.set_size_inches(sheet.width, sheet.height)
        panel.set_position(sheet.rectangle(sheet.bottom + sheet.strips_height, sheet.side))
        for row, draw_one in enumerate(strips):
            below = sheet.bottom + (sheet.n_strips - 1 - row) * (sheet.strip + sheet.gap)
            strip = figure.add_axes(
                sheet.rectangle(below, sheet.strip), label="strip", sharex=panel
            )
            draw_one(strip)
        panel.tick_params(labelbottom=not strips)
        last = figure.axes[-1]
        last.tick_params(labelbottom=True)
        last.set_xlabel(labels[0])
        panel.yaxis.set_label_coords(
            sheet.label / sheet.width,
            (sheet.top_of_diagram - sheet.side / 2) / sheet.height,
            transform=figure.transFigure,
        )
        if strips:
            figure.text(
                sheet.label / sheet.width,
                (sheet.bottom + (sheet.strips_height - sheet.gap) / 2) / sheet.height,
                strips_label,
                rotation=90,
                ha="right",
                va="center",
            )
        middle = (sheet.left + sheet.side / 2) / sheet.width
        heading.set_position((middle, 1 - 0.06 / sheet.height))
    return figure


def draw_legend(
    axes: Axes,
    handles: Sequence[Artist],
    entries: Sequence[str],
    dots_per_inch: float,
) -> float:
    """Draw the legend above a panel, and return its height in inches."""
    legend = axes.legend(
        handles,
        [str(row) for row in range(len(handles))],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0 + 0.07 / Sheet.side),
        borderaxespad=0.0,
        handlelength=2.0,
        labelspacing=0.25,
        borderpad=0.0,
    )
    # Names are set here: matplotlib would leave out one that begins with an underscore.
    wrap(legend.get_texts(), entries, legend, dots_per_inch, Sheet.side)
    return float(legend.get_window_extent().height / dots_per_inch)


def wrap(
    texts: Sequence[Text],
    contents: Sequence[str],
    whole: Artist,
    dots_per_inch: float,
    width: float,
) -> None:
    """Fill texts, as they are and in lines so short that `whole` is no wider, in inches."""
    for columns in range(60, 9, -5):
        for text, content in zip(texts, contents, strict=True):
            # Two dollar signs in a name are not mathematics.
            text.set_parse_math(False)
            text.set_text(textwrap.fill(content, columns))
        if whole.get_window_extent().width <= width * dots_per_inch:
            return
