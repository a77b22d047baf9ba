"""The figure of predictions under label shift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.figures.sigma_shift import label_shift_figure
from calibration.self_knowledge import label_shift
from tests.calibration.drawn import assert_within
from tests.calibration.self_knowledge.claims import random_records

PANELS = (("sigma", "factuality"), ("rogan_gladen", "emq"))
"""Of four curves that differ, two in each panel."""


def test_lines_and_bands_are_those_of_the_table() -> None:
    shift = label_shift(random_records(0), prevalences=[0.8, 0.2, 0.5], n_splits=20)
    figure = label_shift_figure(shift, title="a_$b")
    order = [1, 2, 0]
    drawn = []
    for axes, names in zip(figure.axes, PANELS, strict=True):
        diagonal, *lines = axes.lines
        np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
        for line, band, name in zip(lines, axes.collections, names, strict=True):
            np.testing.assert_array_equal(line.get_xdata(), [0.2, 0.5, 0.8])
            np.testing.assert_array_equal(line.get_ydata(), shift.mean[name][order])
            corners = band.get_paths()[0].vertices
            for ends in (shift.lower[name], shift.upper[name]):
                expected = np.column_stack([shift.prevalence, ends])
                near = (np.abs(corners - point).sum(axis=1) < 1e-12 for point in expected)
                assert all(each.any() for each in near)
        drawn += [text.get_text().replace("\n", " ") for text in axes.texts]
    assert drawn == ["σ", "factuality of the half", "Rogan–Gladen", "EMQ"]
    assert figure.get_supxlabel().endswith("means over 40 halves; bands hold 95% of them")
    assert figure.get_suptitle() == "a_$b"


def test_nothing_leaves_the_figure() -> None:
    figure = label_shift_figure(label_shift(random_records(1), n_splits=10), title="title")
    figure.draw_without_rendering()
    assert_within(figure)


def test_what_has_no_prediction_has_no_line() -> None:
    shift = label_shift(random_records(0), n_splits=10)
    nothing = np.full_like(shift.prevalence, np.nan)
    figure = label_shift_figure(replace(shift, mean={**shift.mean, "sigma": nothing}))
    curves = sum(len(axes.lines) - 1 for axes in figure.axes)
    assert curves == len(shift.mean) - 1
