"""The figure of accuracy against time: its legend and its numbers."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from experiments.networks.frontier_figure import frontier_figure
from tests.experiments.findings.embedded_figures import tiny_networks
from tests.figure_faults import figure_faults


def test_the_legend_names_the_backends_that_have_a_point() -> None:
    columns = ("backend", "seconds", "mean_error", "lower_error", "upper_error", "log_z_error")
    rows = [
        ("exact", 1e-3, 0.0, 0.0, 0.0, 0.0),
        # A bound without marginals is drawn in the lower panel alone.
        ("bounds", 1e-2, math.nan, -0.1, 0.2, math.nan),
        ("absent", math.nan, math.nan, math.nan, math.nan, math.nan),
    ]
    figure = frontier_figure(pd.DataFrame(rows, columns=columns).assign(dataset="grid"))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["exact", "bounds"]


@pytest.mark.parametrize("count", [1, 2, pytest.param(4, marks=pytest.mark.nightly)])
def test_networks_that_every_backend_answers_at_once(count: int) -> None:
    figure = frontier_figure(tiny_networks(count))
    assert figure_faults(figure) == []
    for axes in figure.axes:
        labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
        # Round numbers alone: powers of ten and 0.
        shown = [label.get_text() for label in labels if label.get_text()]
        assert all(
            re.fullmatch(r"\$\\mathdefault\{(0|[-−]?10\^\{.*\})\}\$", text) for text in shown
        )
        assert not [each for each in axes.get_xticklabels(minor=True) if each.get_text()]
    # Differences of log Z by rounding are drawn at 0.
    *_, lowest = figure.axes
    assert {float(y) for line in lowest.lines for y in np.ravel(line.get_ydata())} == {0.0}
