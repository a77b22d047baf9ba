"""Venues of tables and figures: widths of their columns and pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from factormodels.errors import InputError, unknown_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 72.27
"""Points of LaTeX in an inch."""


@dataclass(frozen=True)
class Venue:
    """Room for tables and figures, in points of LaTeX.

    Attributes:
        column: width of a column.
        page: width of the text over all columns; equal to `column` for a single column.
        height: height of the text.
        size: font size of the document, as an option of its class: 10 or 11.
        floats: whether tables and figures are floats, with a caption.
    """

    column: float
    page: float
    height: float = 550.0
    size: int = 10
    floats: bool = True


VENUES = {
    "article": Venue(345.0, 345.0),
    "acl": Venue(219.08, 455.24, 700.0, 11),
    "icml": Venue(234.88, 487.82, 648.0),
    "neurips": Venue(397.48, 397.48, 648.0),
    "iclr": Venue(397.48, 397.48, 648.0),
    "aaai": Venue(239.39, 505.89, 648.0),
    "slides": Venue(307.29, 307.29, 170.0, 11, floats=False),
}
"""Venues by name: LaTeX's own article and beamer, and the styles published by the venues."""

DEFAULT_VENUE = "article"

VENUE_MEANING = (
    f"Venue of LaTeX tables and figures: {', '.join(VENUES)}, or widths of a column and of the "
    "text in points, such as 219x455."
)
"""Description of settings that name a venue."""


def venue_named(name: str) -> Venue:
    """The venue with a given name, or with one or two widths in points, such as 345 or 219x455.

    Raises:
        InputError: if it is neither.
    """
    if name in VENUES:
        return VENUES[name]
    widths = re.fullmatch(r"(\d{2,4}(?:\.\d+)?)(?:x(\d{2,4}(?:\.\d+)?))?", name)
    if widths is None:
        raise InputError(
            f"{unknown_name(f'the venue {name!r}', name, VENUES)}; or give widths of a column and "
            "of the text in points, such as 219x455"
        )
    column, page = float(widths[1]), float(widths[2] or widths[1])
    if column > page:
        raise InputError(f"the venue {name!r}: its column is wider than its page; give 219x455")
    # The larger size, since a document with smaller letters then has room to spare.
    return Venue(column, page, size=11)


@contextmanager
def fitted(figure: Figure, venue: Venue) -> Iterator[bool]:
    """Give a figure the width available to it; yield whether it takes more than a column.

    A figure slightly wider than a column is narrowed to it, and one wider than the page to the
    page. Letters keep their size, and the figure's own width is restored afterward.
    """
    from calibration.figures.shown_figure import ShownFigure

    width = figure.get_figwidth()
    points = width * POINTS
    wide = points > _NEARLY * venue.column and venue.page > venue.column
    figure.set_figwidth(min(points, venue.page if wide else venue.column) / POINTS)
    try:
        yield wide
    finally:
        figure.set_figwidth(width)
        if isinstance(figure, ShownFigure):
            figure.arrange()


_NEARLY = 1.2
"""Factor by which a figure may exceed a column and still be drawn for one."""
