"""Figures as notebooks show them: as the last expression of a cell, without pyplot."""

from __future__ import annotations

import struct

from IPython.core.formatters import DisplayFormatter

from calibration import reliability_bins, reliability_diagram


def test_a_figure_is_the_picture_of_its_cell() -> None:
    figure = reliability_diagram({"a": reliability_bins([0.1, 0.4, 0.9], [False, True, True])})
    shown, about = DisplayFormatter().format(figure)  # type: ignore[no-untyped-call]
    picture = shown["image/png"]
    assert picture.startswith(b"\x89PNG")
    width = struct.unpack(">I", picture[16:20])[0]
    # Two pixels of the picture for each of the page, so that it is sharp on screens of today.
    assert width == round(200 * figure.get_figwidth())
    assert about["image/png"]["width"] == round(100 * figure.get_figwidth())
