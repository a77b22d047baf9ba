"""Visual faults of a figure: overlapping texts, legends over data, empty panels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from calibration.figures.points import panel_has_points

_DPI = 200
"""Pixels in an inch of the picture, enough for letters to have the widths that files give them."""

_SLACK = 1.0
"""Pixels that a box may lie over another or outside the figure: it has room for any letter."""

_EDGE = 0.02
"""Inches of a figure's edge that hold no text."""

_FAINT = 0.05
"""Share of the way from white to black below which a pixel is no ink."""

_COVERED = 32
"""Pixels of ink below a text or legend from which on it covers something."""


def figure_faults(figure: Figure) -> list[str]:
    """Return what is wrong with a figure that has its final size and layout, a sentence each."""
    figure.set_dpi(_DPI)
    ink = _ink_without_texts(figure)
    legends = [legend for legend in figure.findobj(Legend) if legend.get_visible()]
    texts = list(drawn_texts(figure))
    return [
        *_outside(figure, texts),
        *_over_each_other(figure, texts),
        *_over_data(figure, ink, texts, legends),
        *(
            f"panel {at} is empty"
            for at, axes in enumerate(figure.axes, 1)
            if axes.get_visible() and not panel_has_points(axes)
        ),
    ]


def drawn_texts(figure: Figure) -> Iterator[Text]:
    """Yield the texts that are drawn; of an axis those of ticks within its limits."""
    unseen = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            # Where ticks stand on the page: on a logarithmic axis they lie far apart that are near
            # each other in number.
            scaled = axis.get_transform().transform
            low, high = sorted(scaled(axis.get_view_interval()))
            slack = 1e-9 * (high - low)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                within = low - slack <= scaled(tick.get_loc()) <= high + slack
                if not (within and axes.axison and axes.get_visible() and axis.get_visible()):
                    unseen |= {tick.label1, tick.label2}
        if not (axes.axison and axes.get_visible()):
            unseen |= {axes.xaxis.label, axes.yaxis.label}
    for text in figure.findobj(Text):
        if text not in unseen and text.get_visible() and text.get_text().strip():
            yield text


def _called(text: Text) -> str:
    return repr(" ".join(text.get_text().split()))


def _outside(figure: Figure, texts: list[Text]) -> Iterator[str]:
    """Yield what of the texts is outside the figure, or touches its edge."""
    page = figure.bbox
    for text in texts:
        box = text.get_window_extent()
        ends = (box.x0 - page.x0, box.y0 - page.y0, page.x1 - box.x1, page.y1 - box.y1)
        if min(ends) < -_SLACK:
            yield f"{_called(text)} is outside the figure"
        elif min(ends) < _EDGE * _DPI:
            yield f"{_called(text)} touches the edge of the figure"


def _over_each_other(figure: Figure, texts: list[Text]) -> Iterator[str]:
    """Yield overlapping texts; the ink of slanted ones is compared."""
    boxes = [text.get_window_extent() for text in texts]
    for (label, box), (other, second) in combinations(zip(texts, boxes, strict=True), 2):
        shared = Bbox.intersection(box, second)
        if shared is None or min(shared.width, shared.height) <= _SLACK:
            continue
        slanted = label.get_rotation() % 90 or other.get_rotation() % 90
        if slanted and not (_ink_of(figure, label) & _ink_of(figure, other)).any():
            continue
        yield f"{_called(label)} is over {_called(other)}"


def _ink_of(figure: Figure, text: Text) -> Any:
    """Return the pixels of a text alone."""
    width, height = figure.canvas.get_width_height()
    renderer = _renderer(width, height, _DPI)
    text.draw(renderer)
    return np.asarray(renderer.buffer_rgba())[:, :, 3] > 0


def _over_data(figure: Figure, ink: Any, texts: list[Text], legends: list[Legend]) -> Iterator[str]:
    """Yield which texts and legends have something drawn below them."""
    named = {text for legend in legends for text in legend.get_texts()}
    for text in texts:
        # A text with a background of its own is meant to stand on something.
        if text in named or text.get_bbox_patch() is not None:
            continue
        if text.get_rotation() % 90:
            covered = int((ink & _ink_of(figure, text)).sum())
        else:
            covered = _inside(ink, text.get_window_extent())
        if covered >= _COVERED:
            yield f"{_called(text)} is over data"
    for legend in legends:
        if _inside(ink, legend.get_window_extent()) >= _COVERED:
            first = _called(legend.get_texts()[0])
            yield f"the legend that begins with {first} is over data"


class _NoLetters(RendererAgg):
    """Draws everything but letters, which are placed all the same."""

    def draw_text(self, *given: Any, **named: Any) -> None:
        """Draw nothing."""


# matplotlib has no types for its renderers.
_renderer: Any = RendererAgg
_without_letters: Any = _NoLetters


def _ink_without_texts(figure: Figure) -> Any:
    """Draw a figure without its letters and legends, and return its pixels that are not white."""
    samples = [
        artist
        for legend in figure.findobj(Legend)
        for artist in legend.findobj(lambda artist: isinstance(artist, (Line2D, Patch, Collection)))
    ]
    for artist in samples:
        artist.set_visible(False)
    renderer = _without_letters(*figure.canvas.get_width_height(), _DPI)
    figure.draw(renderer)
    for artist in samples:
        artist.set_visible(True)
    red, green, blue = np.moveaxis(np.asarray(renderer.buffer_rgba())[:, :, :3], 2, 0)
    return np.minimum(np.minimum(red, green), blue) < (1 - _FAINT) * 255


def _inside(ink: Any, box: Bbox) -> int:
    """Return how many pixels of ink a box holds, without its outermost two pixels."""
    height = len(ink)
    left, right = max(round(box.x0) + 2, 0), max(round(box.x1) - 2, 0)
    top, bottom = max(height - round(box.y1) + 2, 0), max(height - round(box.y0) - 2, 0)
    return int(ink[top:bottom, left:right].sum())
