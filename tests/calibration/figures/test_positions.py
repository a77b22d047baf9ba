"""The figure over relative positions."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.figures.positions import Panel, knowledge_panels, label_panels, position_figure
from calibration.self_knowledge import IntervalSettings, label_positions, self_knowledge
from factormodels.errors import InputError
from tests.calibration.drawn import assert_apart, assert_within
from tests.calibration.self_knowledge.claims import in_sentence, random_records
from tests.refusals import refused

QUICK = IntervalSettings(n_bootstrap=50)


def test_points_and_intervals_are_those_of_the_table() -> None:
    table = label_positions(random_records(0), intervals=QUICK)
    figure = position_figure(label_panels(table), title="a_$b")
    shares, numbers = figure.axes
    for axes, suffix in ((shares, "share"), (numbers, "number")):
        kinds = ("supported", "unsupported", "irrelevant")
        assert [name.get_text() for name in axes.texts] == list(kinds)
        for line, bars, kind in zip(axes.lines, axes.collections, kinds, strict=True):
            estimates = table[f"{kind}_{suffix}"]
            np.testing.assert_array_equal(line.get_ydata(), estimates.estimate[:-1])
            ends = np.array([path.vertices for path in bars.get_paths()])
            np.testing.assert_array_equal(ends[:, 0, 1], estimates.lower[:-1])
            np.testing.assert_array_equal(ends[:, 1, 1], estimates.upper[:-1])
            np.testing.assert_allclose(np.asarray(line.get_xdata()), np.arange(5.0), atol=0.2)
        assert [label.get_text() for label in axes.get_xticklabels()] == list(table.positions[:-1])
    assert shares.get_ylim() == (0, 1)
    assert numbers.get_ylim()[1] > np.nanmax(table["supported_number"].estimate)
    texts = [text.get_text() for text in figure.texts]
    assert "a_$b" in texts
    # Sample sizes are for the caption.
    assert "12 responses; 95% intervals (bootstrap over responses)" in figure.caption
    assert not [text for text in texts if "responses" in text]


def test_nothing_of_a_panel_leaves_the_figure_or_covers_another() -> None:
    records = random_records(1)
    labels, knowledge = (
        label_positions(records, intervals=QUICK),
        self_knowledge(records, intervals=QUICK),
    )
    for panels in (
        knowledge_panels(knowledge),
        [*label_panels(labels), *knowledge_panels(knowledge)],
    ):
        figure = position_figure(panels, title="title")
        figure.draw_without_rendering()
        boxes = [box for axes in figure.axes if (box := axes.get_tightbbox()) is not None]
        assert len(boxes) == len(panels)
        assert_within(figure)
        assert_apart([*boxes, *(text.get_window_extent() for text in figure.texts)])
        for axes in figure.axes:
            assert_apart([name.get_window_extent() for name in axes.texts])


def test_an_undefined_bin_has_no_point() -> None:
    records = [*in_sentence("x", 1, 5, "S NS", "true"), *in_sentence("y", 5, 5, "S NS", "false")]
    table = self_knowledge(records, intervals=QUICK)
    figure = position_figure(knowledge_panels(table))
    sigma = figure.axes[1].lines[-1]
    empty = np.isnan(np.asarray(sigma.get_ydata(), dtype=np.float64))
    assert empty.tolist() == [False, True, True, True, False]


def test_bad_input_is_named() -> None:
    table = label_positions(random_records(2), intervals=QUICK)
    refused("panels is empty", position_figure, [])
    refused("no quantity", position_figure, [Panel(table, {}, "share", (0,))])
    with pytest.raises(InputError, match="there is no quantity 'sigma'"):
        position_figure([Panel(table, {"sigma": "s"}, "share", (0,))])
