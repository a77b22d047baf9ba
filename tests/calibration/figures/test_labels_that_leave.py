"""Axis labels and titles longer than a figure are broken into lines, in every file of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from calibration.figures import save_figure
from calibration.figures.shown_figure import ShownFigure
from calibration.figures.style import paper_style
from tests.calibration.drawn import assert_nothing_is_cut

LONG = "Difference of the score between the first and the second setting (positive: worse)"


def labeled(which: str, kind: type[Figure] = Figure) -> Figure:
    with paper_style():
        figure = kind(figsize=(3.4, 2.0), layout="constrained")
        axes = figure.subplots(1, 2)[1]
        getattr(axes, f"set_{which}")(LONG)
    return figure


@pytest.mark.parametrize("which", ["xlabel", "ylabel", "title"])
def test_a_long_label_is_broken_and_whole_again_afterwards(which: str, tmp_path: Path) -> None:
    figure = labeled(which)
    (path,) = save_figure(figure, tmp_path / "long", formats=["png"])
    assert_nothing_is_cut(path)
    assert getattr(figure.axes[1], f"get_{which}")() == LONG
    # Drawn wide or high enough, the label is one line.
    figure.set_size_inches(*((3.4, 8) if which == "ylabel" else (12, 2)))
    (wide,) = save_figure(figure, tmp_path / "wide", formats=["png"])
    assert_nothing_is_cut(wide)


def test_a_notebook_shows_the_whole_label(tmp_path: Path) -> None:
    figure = labeled("xlabel", ShownFigure)
    assert isinstance(figure, ShownFigure)
    path = tmp_path / "shown.png"
    path.write_bytes(figure._repr_png_()[0])
    assert_nothing_is_cut(path)
