"""The figure of accuracy against time: its legend."""

from __future__ import annotations

import math

import pandas as pd

from experiments.networks.frontier_figure import frontier_figure


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
