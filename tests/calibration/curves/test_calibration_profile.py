"""The annotated calibration plot: what it shows is what the scores and curves say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from calibration import reliability_bins, save_figure
from calibration.curves import calibration_profile, label_histogram
from calibration.figures import calibration_plot
from calibration.figures.calibration_plot import annotation
from calibration.forecasts import pooled
from calibration.scores import calibration_line
from calibration.scores.definition import SampleSettings
from calibration.scores.families.logistic import curve_of
from tests.calibration.drawn import TITLE, assert_column_wide, assert_within, heading_of, legend_of
from tests.calibration.scored import scored
from tests.refusals import refused


def claims(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    p = generator.random(160)
    return p, generator.random(160) < p**1.5, np.arange(160) // 8


def test_a_profile_is_what_its_parts_say() -> None:
    p, y, responses = claims()
    how: dict[str, Any] = {"responses": responses, "n_bootstrap": 30, "seed": 2}
    found = calibration_profile(p, y, scores=["e90", "brier"], **how)
    sample = pooled(p, y)
    curve, _ = curve_of(sample, SampleSettings())
    # Between points the curve is drawn straight.
    expected = np.interp(found.at, sample.p, curve)
    np.testing.assert_allclose(found.curve, expected, atol=1e-9)
    line = calibration_line(p, y)
    logit = np.log(found.at / (1 - found.at))
    np.testing.assert_allclose(
        np.log(found.line / (1 - found.line)), line.intercept + line.slope * logit, atol=1e-9
    )
    assert repr(found.scores) == repr(dict(scored(p, y, scores=["e90", "brier"], **how)))
    bins = reliability_bins(p, y, strategy="quantile", **how)
    assert found.bins.observed.tolist() == bins.observed.tolist()
    assert found.histogram.true.tolist() == label_histogram(p, y).true.tolist()
    inside = (found.lower <= found.curve) & (found.curve <= found.upper)
    assert inside.mean() > 0.9
    assert (found.n_atoms, found.n_responses, found.status) == (160, 20, "ok")


def test_the_plot_shows_it_within_its_bounds(tmp_path: Path) -> None:
    p, y, responses = claims(1)
    found = calibration_profile(p, y, responses=responses, n_bootstrap=20)
    figure = calibration_plot(found, title=TITLE)
    paths = save_figure(figure, tmp_path / "calibration", formats=("png",))
    assert paths[0].stat().st_size > 10_000
    assert_column_wide(figure)
    assert_within(figure)
    heading_of(figure, TITLE)
    panel, strip = figure.axes
    assert legend_of(panel) == [
        "Flexible, 95% band",
        "Logistic",
        "Groups, 95% intervals",
        "Ideal; 160 claims, 20 responses",
    ]
    (text,) = panel.texts
    assert text.get_text() == annotation(found)
    assert text.get_text().splitlines()[0].startswith("Brier 0.")
    assert len(text.get_text().splitlines()) == len(found.scores)
    box, inside = text.get_window_extent(), panel.get_window_extent()
    assert inside.x0 <= box.x0
    assert box.x1 <= inside.x1
    heights = [bar.get_height() for bar in strip.patches if isinstance(bar, Rectangle)]
    assert heights == [*found.histogram.true, *(-found.histogram.false)]


def test_what_is_not_defined_is_said_on_the_plot() -> None:
    found = calibration_profile([0.2, 0.8, 0.6], [1, 1, 1], n_bootstrap=10)
    assert found.status == "one_class"
    assert np.isnan(found.curve).all()
    assert "AUROC (one class)" in annotation(found)
    assert "Brier 0." in annotation(found)
    figure = calibration_plot(found)
    assert legend_of(figure.axes[0])[-1] == "Ideal; 3 claims, claims independent"
    assert math.isnan(found.line[0])


def test_bad_input_is_named() -> None:
    refused("profile is of type int", calibration_plot, 3)
