"""The figures of long frames show every number and interval of the frame, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.findings.figures import estimate_figure, line_figure
from tests.calibration.drawn import assert_within

FRAME = pd.DataFrame(
    [
        {"case": case, "level": level, "by": by, "x": x, "x_lower": x - 0.1, "x_upper": x + 0.2}
        for case in ("a", "b")
        for by, shift in (("first", 0.0), ("second", 0.3))
        for level, x in ((1.0, 0.2 + shift), (3.0, 0.5 + shift))
    ]
)


def points(axes: Any) -> list[list[float]]:
    """Return the points of the lines of a panel that have a marker, in order."""
    lines = [line for line in axes.get_lines() if line.get_marker() not in ("None", "")]
    return [np.asarray(line.get_xydata()).ravel().tolist() for line in lines]


def arms(axes: Any) -> list[list[list[float]]]:
    """Return the ends of the intervals of a panel."""
    return [part.tolist() for each in axes.collections for part in each.get_segments()]


def test_lines_are_the_numbers_of_the_frame_in_a_panel_for_each_case() -> None:
    figure = line_figure(FRAME, "level", {"x": "what"}, by="by", panel="case", ideals={"x": 0.4})
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]
    for axes in figure.axes:
        assert points(axes) == [
            pytest.approx(each) for each in ([1, 0.2, 3, 0.5], [1, 0.5, 3, 0.8])
        ]
        ends = [(low[1], high[1]) for low, high in arms(axes)]
        wanted = [(x - 0.1, x + 0.2) for x in (0.2, 0.5, 0.5, 0.8)]
        assert np.array(ends) == pytest.approx(np.array(wanted))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "second"]
    figure.draw_without_rendering()
    assert_within(figure)


def test_values_below_the_floor_are_drawn_on_it_and_texts_are_categories() -> None:
    frame = pd.DataFrame({"size": ["small", "large"], "error": [0.0, 0.01]})
    (axes,) = line_figure(frame, "size", {"error": "error"}, floors={"error": 1e-6}).axes
    assert points(axes) == [pytest.approx([0, 1e-6, 1, 0.01])]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["small", "large"]
    assert axes.get_yscale() == "log"


def test_estimates_of_one_name_share_a_row() -> None:
    one_level = FRAME[FRAME["level"] == 1.0]
    figure = estimate_figure(one_level, "case", {"x": "what", "level": "level"}, by="by")
    left, right = figure.axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["a", "b"]
    heights = [each[1] for each in points(left)]
    # From above; two of a row stand side by side.
    assert sorted(round(height) for height in heights) == [0, 0, 1, 1]
    assert len(set(heights)) == 4
    assert [each[0] for each in points(left)] == pytest.approx([0.2, 0.2, 0.5, 0.5])
    figure.draw_without_rendering()
    assert_within(figure)
    # A column without ends has points alone.
    assert {tuple(low) == tuple(high) for low, high in arms(right)} == {True}


def test_rows_of_many_kinds_do_not_run_into_each_other() -> None:
    kinds = [f"k{number}" for number in range(6)]
    frame = pd.DataFrame(
        [{"case": case, "by": kind, "x": 0.5} for case in ("a", "b") for kind in kinds]
    )
    (axes,) = estimate_figure(frame, "case", {"x": "what"}, by="by").axes
    lower, upper = np.split(np.sort([each[1] for each in points(axes)]), 2)
    # The gap between two rows is wider than that between two kinds of one.
    assert upper.min() - lower.max() > 1.5 * np.diff(upper).max()
