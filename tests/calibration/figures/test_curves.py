"""Figures of curves: what is drawn is what the curves say, and nothing is cut off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from calibration import corp_curve, reliability_bins, reliability_diagram, save_figure
from calibration.curves import (
    CorpCurve,
    ReliabilityBins,
    RiskCurve,
    risk_curve,
)
from calibration.figures import (
    corp_diagram,
    risk_coverage_figure,
)
from calibration.figures.style import COLORS, PAPER_STYLE
from factormodels.errors import InputError
from tests.calibration.drawn import (
    TITLE,
    assert_apart,
    assert_within,
    heading_of,
    legend_of,
)
from tests.refusals import refused

TERMS = (
    "MCB and DSC: miscalibration and discrimination, of the CORP decomposition of the Brier score."
)


def pairs(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    p = generator.random(120)
    return p, generator.random(120) < p, np.arange(120) // 6


def corp_of(seed: int, band: str = "confidence") -> CorpCurve:
    p, y, responses = pairs(seed)
    return corp_curve(p, y, responses=responses, n_bootstrap=15, band=band)


def risk_of(seed: int, rule: str = "verdict") -> RiskCurve:
    p, y, responses = pairs(seed)
    return risk_curve(p, y, responses=responses, n_bootstrap=15, rule=rule)


def bins_of(seed: int) -> ReliabilityBins:
    p, y, responses = pairs(seed)
    return reliability_bins(p, y, responses=responses, n_bootstrap=15)


def names_of(figure: Any) -> list[str]:
    """Names beside the curves of all panels."""
    return [text.get_text().replace("\n", " ") for axes in figure.axes for text in axes.texts]


FIGURES: dict[str, tuple[Callable[..., Any], Callable[[int], Any]]] = {
    "corp": (corp_diagram, corp_of),
    "risk": (risk_coverage_figure, risk_of),
    "reliability": (reliability_diagram, bins_of),
}


def test_corp_curves_and_bands_are_drawn_as_they_are() -> None:
    methods = {"exact": corp_of(0), "lbp": corp_of(1, "consistency")}
    (diagram,) = corp_diagram(methods).axes
    diagonal, *lines, _ = diagram.lines
    assert np.array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    rugs = [patch.get_data() for patch in diagram.patches if isinstance(patch, StepPatch)]
    for line, band, rug, curve in zip(
        lines, diagram.collections, rugs, methods.values(), strict=True
    ):
        np.testing.assert_array_equal(line.get_xdata(), curve.p)
        np.testing.assert_array_equal(line.get_ydata(), curve.recalibrated)
        corners = np.asarray(band.get_paths()[0].vertices)
        assert corners[:, 1].min() == min(curve.lower.min(), curve.lower[-1])
        assert corners[:, 1].max() == curve.upper.max()
        heights = rug[0] - rug[2]
        np.testing.assert_allclose(heights / heights.max(), curve.histogram / curve.histogram.max())
    assert len(diagram.collections) == 2
    without = corp_diagram({"exact": corp_of(0, "none")})
    assert len(without.axes[0].collections) == 0


def test_bins_stand_beside_the_curve_with_their_intervals_in_place_of_its_band() -> None:
    p, y, responses = pairs(0)
    how: dict[str, Any] = {"responses": responses, "n_bootstrap": 15}
    bins = reliability_bins(p, y, strategy="quantile", n_bins=5, **how)
    figure = corp_diagram({"exact": corp_of(0)}, bins={"exact": bins})
    (diagram,) = figure.axes
    points: Any = diagram.containers[0]
    marks, _, (bars,) = points.lines
    np.testing.assert_array_equal(marks.get_xydata(), np.c_[bins.mean_predicted, bins.observed])
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.c_[bins.lower, bins.upper], atol=1e-15)
    # The bars are the only collection: there is no band.
    assert list(diagram.collections) == [bars]
    assert figure.caption == (
        "120 claims. Lines: isotonic regression (CORP). Points: bins with 95% intervals "
        f"(bootstrap over 20 responses). {TERMS}"
    )
    for wrong in ({"lbp": bins}, {"exact": bins, "lbp": bins}):
        refused("bins and methods differ in", corp_diagram, {"exact": corp_of(0)}, bins=wrong)


def test_names_stand_above_their_panel() -> None:
    for draw, make in (FIGURES["corp"], FIGURES["reliability"]):
        figure = draw({"exact": make(0), "lbp": make(1)})
        figure.draw_without_rendering()
        (panel,) = figure.axes
        names, data = panel.get_legend().get_window_extent(), panel.bbox
        # Letters may reach a pixel below their baseline.
        assert names.y0 >= data.y1 - 1.0


def test_names_come_with_their_numbers_and_the_note_says_what_bands_are() -> None:
    curve = corp_of(0)
    terms = curve.decomposition
    # On one line, however long the name.
    numbers = f"(MCB\xa0{terms.miscalibration:.4f},\xa0DSC\xa0{terms.discrimination:.4f})"
    figure = corp_diagram({"exact": curve})
    assert legend_of(figure.axes[0]) == [f"exact {numbers}"]
    assert figure.caption == f"120 claims. 95% confidence bands, 20 responses. {TERMS}"
    mixed = {"a": curve, "b": corp_of(0, "consistency")}
    assert corp_diagram(mixed).caption == f"120 claims. 95% bands, 20 responses. {TERMS}"
    assert corp_diagram({"a": corp_of(0, "none")}).caption == f"120 claims. No band. {TERMS}"
    risk = risk_of(0)
    figure = risk_coverage_figure({"exact": risk})
    assert names_of(figure) == [f"exact AURC {risk.area:.4f} excess {risk.excess:.4f}"]
    assert figure.caption.startswith("120 claims. Coverage: ")
    assert figure.caption.endswith(" 95% confidence bands, 20 responses.")
    p, y, _ = pairs(0)
    alone = risk_curve(p, y, n_bootstrap=5)
    caption = risk_coverage_figure({"x": alone}).caption
    assert caption.endswith(" 95% confidence bands, claims independent.")
    caption = risk_coverage_figure({"x": alone, "y": risk}).caption
    assert caption.endswith(" 95% confidence bands.")


def test_curves_that_coincide_are_one_and_a_panel_has_at_most_three() -> None:
    p, y, responses = pairs(0)
    near = np.clip(p + 1e-3 * np.sin(np.arange(len(p))), 0, 1)
    how: dict[str, Any] = {"responses": responses, "n_bootstrap": 5}
    both = {"exact": corp_curve(p, y, **how), "lbp": corp_curve(near, y, **how)}
    (name,) = legend_of(corp_diagram(both).axes[0])
    low, high = sorted(each.decomposition.miscalibration for each in both.values())
    range_text = "\xa0to\xa0".join(dict.fromkeys((f"{low:.4f}", f"{high:.4f}")))
    assert name.startswith(f"exact = lbp (MCB\xa0{range_text},\xa0DSC")
    risks = {"exact": risk_curve(p, y, **how), "lbp": risk_curve(near, y, **how)}
    (name,) = names_of(risk_coverage_figure(risks))
    assert name.startswith("exact = lbp AURC")
    for kind in ("corp", "risk"):
        draw, make = FIGURES[kind]
        figure = draw({str(i): make(i) for i in range(5)})
        assert len(figure.axes) == 2
        assert figure.get_size_inches()[0] == pytest.approx(6.9)
    lines: list[Any] = [*corp_diagram({str(i): corp_of(i) for i in range(3)}).axes[0].lines][1:-1]
    assert [line.get_color() for line in lines] == list(COLORS[:3])
    assert len({str(line._dash_pattern) for line in lines}) == 3


def test_risks_are_compared_at_the_height_of_their_axis() -> None:
    responses = np.repeat(np.arange(120), 40)
    sure = np.linspace(1.0, 0.6, len(responses))
    risks = {}
    # Of the less sure half, 2% are false of one method and 4% of the other.
    for name, every in (("a", 50), ("b", 25)):
        true = np.ones(len(responses), dtype=bool)
        true[-len(responses) // 2 :: every] = False
        risks[name] = risk_curve(sure, true, responses=responses, n_bootstrap=5)
    assert np.abs(risks["a"].risk - risks["b"].risk).max() < 0.02
    assert len(names_of(risk_coverage_figure(risks))) == 2


def test_risk_curves_and_axes() -> None:
    methods = {"exact": risk_of(0, "claim"), "lbp": risk_of(1, "claim")}
    figure = risk_coverage_figure(methods)
    (axes,) = figure.axes
    for line, curve in zip(axes.lines, methods.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), curve.coverage)
        np.testing.assert_array_equal(line.get_ydata(), curve.risk)
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("Coverage", "Selective risk")
    assert "claims kept" in figure.caption
    assert "verdicts kept" in risk_coverage_figure({"x": risk_of(0)}).caption


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("n_methods", [1, 6])
@pytest.mark.slow
def test_nothing_is_cut_off_or_overlaps(kind: str, n_methods: int, tmp_path: Path) -> None:
    draw, make = FIGURES[kind]
    names = [f"A LONG NAME OF METHOD $x_{i}$, (fr2, implication), yes, jpg" for i in range(6)]
    figure = draw({name: make(i) for i, name in enumerate(names[:n_methods])}, title=TITLE)
    save_figure(figure, tmp_path / "figure", ["png"])
    # As in the files: on fewer pixels letters are wider.
    figure.set_dpi(PAPER_STYLE["savefig.dpi"])
    assert_within(figure)
    lower = heading_of(figure, TITLE).y0
    legends = [legend for axes in figure.axes if (legend := axes.get_legend()) is not None]
    beside = [text for axes in figure.axes for text in axes.texts]
    boxes = [each.get_window_extent() for each in legends or beside]
    assert boxes
    assert all(box.y1 < lower for box in boxes)
    assert_apart(boxes)
    assert_apart([axes.get_window_extent() for axes in figure.axes])


def test_names_stay_clear_of_what_runs_between_two_points(tmp_path: Path) -> None:
    # Bars reach into the upper left; between its first two points a line runs below on the right.
    p = np.tile([0.1, 0.6, 0.95], 40)
    bins = reliability_bins(p, p > 0.5, responses=np.arange(120) // 30, n_bootstrap=5)
    methods = {
        f"{name}: a method by a long name": replace(
            bins,
            mean_predicted=bins.mean_predicted - apart,
            observed=np.array([0.0, 0.55, 1.0]),
            lower=np.array([0.0, 0.25, 0.9]),
            upper=np.array([0.05, 0.9, 1.0]),
        )
        for name, apart in (("one", 0.0), ("two", 0.02), ("three", 0.04))
    }
    figure = reliability_diagram(methods)
    save_figure(figure, tmp_path / "figure", ["png"])
    axes = figure.axes[0]
    legend = axes.get_legend()
    assert legend is not None
    box = legend.get_window_extent()
    for each in methods.values():
        x = np.linspace(each.mean_predicted[0], each.mean_predicted[-1], 300)
        for ends in (each.lower, each.observed, each.upper):
            places = axes.transData.transform(
                np.stack([x, np.interp(x, each.mean_predicted, ends)], 1)
            )
            assert not any(box.contains(*point) for point in places)


@pytest.mark.parametrize("kind", FIGURES)
def test_files_are_the_same_bytes_each_time(kind: str, tmp_path: Path) -> None:
    draw, make = FIGURES[kind]
    written = []
    for name in ("first", "second"):
        paths = save_figure(draw({"exact": make(0)}), tmp_path / name, ["pdf", "png", "svg"])
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]


@pytest.mark.parametrize("kind", FIGURES)
def test_methods_are_checked(kind: str) -> None:
    draw, _ = FIGURES[kind]
    refused("methods is empty", draw, {})
    refused(r"methods\['exact'\] is of type list; give", draw, {"exact": [0.1]})


def test_curves_that_cannot_share_a_figure_are_refused() -> None:
    with pytest.raises(InputError, match="rules 'claim' and 'verdict'; draw each in its own"):
        risk_coverage_figure({"a": risk_of(0), "b": risk_of(0, "claim")})
