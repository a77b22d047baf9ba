"""The figure of predictions under label shift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.figures.sigma_shift import label_shift_figure
from calibration.self_knowledge import label_shift
from tests.calibration.drawn import assert_within, legend_of
from tests.calibration.self_knowledge.claims import random_records


def test_lines_and_bands_are_those_of_the_table() -> None:
    shift = label_shift(random_records(0), prevalences=[0.8, 0.2, 0.5], n_splits=20)
    figure = label_shift_figure(shift, title="a_$b")
    (axes,) = figure.axes
    diagonal, *lines = axes.lines
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    order = [1, 2, 0]
    for line, band, name in zip(lines, axes.collections, shift.mean, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [0.2, 0.5, 0.8])
        np.testing.assert_array_equal(line.get_ydata(), shift.mean[name][order])
        corners = band.get_paths()[0].vertices
        for ends in (shift.lower[name], shift.upper[name]):
            expected = np.column_stack([shift.prevalence, ends])
            assert all((np.abs(corners - point).sum(axis=1) < 1e-12).any() for point in expected)
    assert legend_of(axes) == ["σ", "Rogan–Gladen", "EMQ", "factuality of the half"]
    texts = [text.get_text() for text in figure.texts]
    assert texts == ["means over 40 halves; bands hold 95% of them", "a_$b"]


def test_nothing_leaves_the_figure() -> None:
    figure = label_shift_figure(label_shift(random_records(1), n_splits=10), title="title")
    figure.draw_without_rendering()
    assert_within(figure)


def test_what_has_no_prediction_has_no_line() -> None:
    shift = label_shift(random_records(0), n_splits=10)
    nothing = np.full_like(shift.prevalence, np.nan)
    figure = label_shift_figure(replace(shift, mean={**shift.mean, "sigma": nothing}))
    assert len(figure.axes[0].lines) == 1 + len(shift.mean) - 1
