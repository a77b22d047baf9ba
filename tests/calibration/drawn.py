"""Checks of drawn figures: legends, and artists inside the figure that do not overlap."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from matplotlib.image import imread

TITLE = "A title about factcheck-bench graphs and more than fits on one line of a column"


def legend_of(axes: Any) -> list[str]:
    """Return the texts of a legend, each on one line."""
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text().replace("\n", " ") for text in legend.get_texts()]


def assert_within(figure: Any) -> None:
    """Check that nothing leaves a figure."""
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(drawn.x0, drawn.y0) > 0
    assert drawn.x1 < width
    assert drawn.y1 < height


def assert_nothing_is_cut(path: Path) -> None:
    """Check that the outermost pixels of a picture have the color of its corner."""
    pixels = imread(path)
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == pixels[0, 0]).all(), f"{path}: something leaves the picture"


def assert_apart(boxes: list[Any]) -> None:
    """Check that no two boxes overlap."""
    assert not any(box.overlaps(other) for box, other in itertools.combinations(boxes, 2))


def heading_of(figure: Any, title: str) -> Any:
    """Return the box of a title, which a figure must show once."""
    (heading,) = (text for text in figure.texts if text.get_text().replace("\n", " ") == title)
    return heading.get_window_extent()
