"""Calibration slope and intercept, and the flexible curve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.forecasts import ScoreStatus, pooled
from calibration.scores import calibration_line, flexible_calibration, score_table
from calibration.scores.miscalibration.loess import loess_curve
from calibration.scores.miscalibration.logistic import fit_logistic, sigmoid
from calibration.scores.miscalibration.logistic_calibration import (
    restricted_cubic_spline,
    weighted_quantiles,
)
from tests.calibration.references import r_claims, r_values
from tests.refusals import refused


def test_hand_values() -> None:
    # At two probabilities the line goes through both shares: logit q of logit p.
    p = [0.2] * 4 + [0.8] * 4
    y = [1, 0, 0, 0, 1, 1, 1, 0]
    line = calibration_line(p, y)
    assert line.slope == pytest.approx(math.log(3) / math.log(4), abs=1e-12)
    assert line.intercept == pytest.approx(0, abs=1e-12)
    assert line.in_the_large == pytest.approx(0, abs=1e-12)
    # Every atom's distance is 1/4 - 1/5.
    flexible = flexible_calibration(p, y)
    for value in (flexible.ici, flexible.e50, flexible.e90, flexible.emax):
        assert value == pytest.approx(0.05, abs=1e-12)
    assert flexible.status == "ok"
    # Constant forecasts: no slope, the difference of logits in the large, a curve at the share.
    line = calibration_line([0.2] * 4, [1, 1, 0, 0])
    assert line.status == "constant_forecast"
    assert math.isnan(line.slope)
    assert line.in_the_large == pytest.approx(math.log(4), abs=1e-12)
    assert flexible_calibration([0.2] * 4, [1, 1, 0, 0]).ici == pytest.approx(0.3, abs=1e-12)


def test_agreement_with_statsmodels_on_a_spline_with_weights() -> None:
    import statsmodels.api as sm

    generator = np.random.default_rng(4)
    p = generator.uniform(0.02, 0.98, 500)
    y = generator.random(500) < np.sin(p * np.pi / 2) ** 2
    weights = generator.integers(1, 4, 500)
    logit = np.log(p / (1 - p))
    knots = np.sort(np.repeat(logit, weights))
    knots = knots[np.ceil(knots.size * np.array([0.05, 0.35, 0.65, 0.95])).astype(int) - 1]
    columns = np.vstack([np.ones(500), logit, restricted_cubic_spline(logit, knots)]).T
    family = sm.families.Binomial()
    curve = sm.GLM(y, columns, family=family, freq_weights=weights).fit(tol=1e-14).predict(columns)
    distance = np.abs(curve - p)
    flexible = flexible_calibration(p, y, weights=weights)
    # Both solve to below 1e-10.
    assert flexible.ici == pytest.approx(np.average(distance, weights=weights), abs=1e-9)
    assert flexible.emax == pytest.approx(distance.max(), abs=1e-9)
    repeated = np.repeat(distance, weights)
    for share, value in ((0.5, flexible.e50), (0.9, flexible.e90)):
        expected = np.quantile(repeated, share, method="inverted_cdf")
        assert value == pytest.approx(expected, abs=1e-9)


def test_the_spline_is_linear_beyond_its_outer_knots() -> None:
    knots = np.array([-2.0, -0.5, 0.7, 2.2])
    for x in (np.linspace(-9, -2, 20), np.linspace(2.2, 9, 20)):
        columns = restricted_cubic_spline(x, knots)
        assert columns.shape == (2, 20)
        # Cubes of numbers up to 11, rounded to 1e-13.
        assert np.abs(np.diff(columns, n=2, axis=1)).max() < 1e-11
    assert (restricted_cubic_spline(np.array([-5.0, -2.0]), knots) == 0).all()


def test_extreme_forecasts_are_clipped_and_said_to_be() -> None:
    p, y = [0.0, 0.3, 0.6, 1.0], [0, 1, 0, 1]
    line = calibration_line(p, y)
    assert line.status == line.in_the_large_status == "clipped"
    near = calibration_line([1e-6, 0.3, 0.6, 1 - 1e-6], y)
    assert near.status == "ok"
    assert line.slope == near.slope
    assert calibration_line(p, y, clip=0.01).slope != line.slope
    # A spline of four columns fits four atoms without error; it needs more of them.
    assert flexible_calibration(p, y).status == "separated"
    assert flexible_calibration(p * 3, [*y, 1, 0, 1, 0, *y]).status == "clipped"


@pytest.mark.parametrize(
    ("p", "y", "status"),
    [
        ([0.2, 0.8], [1, 1], "one_class"),
        ([0.2, 0.8], [0, 1], "separated"),
        ([0.2, 0.8], [1, 0], "separated"),
        # A tie at the threshold does not give the slope an end.
        ([0.2, 0.5, 0.5, 0.8], [0, 0, 1, 1], "separated"),
        ([0.2, 0.2], [0, 1], "constant_forecast"),
    ],
)
def test_what_is_not_defined_has_a_status(p: list[float], y: list[int], status: str) -> None:
    line = calibration_line(p, y)
    assert line.status == status
    assert math.isnan(line.slope)
    assert math.isnan(line.intercept)


def test_newton_converges_from_far_away_and_stops_where_there_is_no_maximum() -> None:
    generator = np.random.default_rng(6)
    columns = np.stack([np.ones(200), generator.normal(size=200) * 5])
    true = (generator.random(200) < sigmoid(columns[1])).astype(float)
    near = fit_logistic(columns, np.ones(200), true)
    far = fit_logistic(columns, np.ones(200), true, start=np.array([8.0, -9.0]))
    assert near.status is far.status is ScoreStatus.OK
    # The error left is the square of a step below 1e-6, scaled by the columns.
    np.testing.assert_allclose(far.coefficients, near.coefficients, rtol=0, atol=1e-10)
    ordered = (columns[1] > 0).astype(float)
    assert fit_logistic(columns, np.ones(200), ordered).status is ScoreStatus.SEPARATED
    alike = np.ones((2, 200))
    assert fit_logistic(alike, np.ones(200), true).status is ScoreStatus.SEPARATED


def test_rows_in_parts_give_the_same_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    import calibration.scores.miscalibration.logistic as module

    generator = np.random.default_rng(8)
    columns = np.stack([np.ones(1000), generator.normal(size=1000)])
    weight, offset = generator.random(1000), generator.normal(size=1000)
    true = weight * (generator.random(1000) < 0.4)
    whole = fit_logistic(columns, weight, true, offset=offset)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    parts = fit_logistic(columns, weight, true, offset=offset)
    # Sums in another order.
    np.testing.assert_allclose(parts.coefficients, whole.coefficients, rtol=0, atol=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_weighted_quantiles_are_those_of_repeated_values(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = np.abs(generator.normal(size=1000)) if seed else np.zeros(300)
    if seed == 2:
        values = np.round(values, 1)
    weight = generator.integers(0, 4, values.size)
    found = weighted_quantiles(values, weight.astype(float), (0.01, 0.5, 0.9, 1.0))
    repeated = np.repeat(values, weight)
    expected = np.quantile(repeated, [0.01, 0.5, 0.9, 1.0], method="inverted_cdf")
    assert list(found) == expected.tolist()


def test_left_out_extremes_are_those_of_val_prob() -> None:
    p, _, y, _ = r_claims()
    with_ends = p.copy()
    with_ends[[2, 49]], with_ends[[6, 89]] = 0, 1
    line = calibration_line(with_ends, y, extremes="leave-out")
    intercept, slope, *_ = r_values("rms", "left_out")
    # lrm of rms stops at 1e-7 or so.
    assert (line.intercept, line.slope) == pytest.approx((intercept, slope), abs=1e-6)
    assert (line.n_clipped, line.status) == (4, "ok")
    rest = np.delete(np.arange(y.size), [2, 49, 6, 89])
    alone = flexible_calibration(p[rest], y[rest])
    found = flexible_calibration(with_ends, y, extremes="leave-out")
    for name in ("ici", "e50", "e90", "emax"):
        assert getattr(found, name) == pytest.approx(getattr(alone, name), abs=1e-9)
    assert found.n_clipped == 4
    # Moved, the slope is a matter of where to.
    moved = [calibration_line(with_ends, y, clip=clip) for clip in (1e-9, 1e-6, 1e-2)]
    beyond = int(((with_ends < 0.01) | (with_ends > 0.99)).sum())
    assert [each.n_clipped for each in moved] == [4, 4, beyond]
    assert moved[0].slope < moved[1].slope < moved[2].slope
    table = score_table(with_ends, y, n_bootstrap=0, scores=["calibration_slope", "ici", "brier"],
                        extremes="leave-out")  # fmt: skip
    assert [row.n_clipped for row in table] == [4, 4, 0]
    assert table[0].value == line.slope
    assert table[1].value == pytest.approx(found.ici, rel=1e-12)
    nothing = calibration_line([0, 1, 0], [0, 1, 1], extremes="leave-out")
    assert (nothing.status, nothing.n_clipped) == ("one_class", 3)


def test_loess_is_that_of_r() -> None:
    p, _, y, _ = r_claims()
    found = flexible_calibration(p, y, smoother="loess")
    mean, median, ninety, largest = r_values("stats", "loess")
    # Normal equations here, a QR decomposition there.
    assert (found.ici, found.emax) == pytest.approx((mean, largest), abs=1e-10)
    sample = pooled(p, y)
    distance = np.abs(np.interp(p, sample.p, loess_curve(sample)) - p)
    # R's quantiles are between two atoms, ours are of one.
    assert np.quantile(distance, [0.5, 0.9]) == pytest.approx([median, ninety], abs=1e-10)
    assert found.e50 == np.quantile(distance, 0.5, method="inverted_cdf")
    assert (found.status, found.n_clipped) == ("ok", 0)
    table = score_table(p, y, n_bootstrap=0, scores=["ici"], smoother="loess")
    assert table[0].value == found.ici


def test_loess_takes_a_weight_for_so_many_atoms_and_few_distinct_probabilities() -> None:
    generator = np.random.default_rng(5)
    p = np.round(generator.random(80), 1)
    y = generator.random(80) < p
    weights = generator.integers(0, 4, 80)
    weighted = flexible_calibration(p, y, weights=weights, smoother="loess")
    repeated = flexible_calibration(np.repeat(p, weights), np.repeat(y, weights), smoother="loess")
    assert weighted.ici == pytest.approx(repeated.ici, abs=1e-10)
    # At two probabilities the curve goes through both shares.
    two = pooled([0.2] * 4 + [0.8] * 4, [1, 0, 0, 0, 1, 1, 1, 0])
    np.testing.assert_allclose(loess_curve(two), [0.25, 0.75], atol=1e-9)
    # A quadratic share is found without error, wherever it is not cut.
    grid = np.repeat(np.linspace(0.05, 0.95, 40), 2)
    shares = np.stack([1 - grid[::2] ** 2, grid[::2] ** 2], axis=1).ravel()
    exact = pooled(grid, np.tile([0, 1], 40), shares * 9)
    np.testing.assert_allclose(loess_curve(exact), exact.p**2, atol=1e-9)


def test_a_curve_that_is_not_defined_says_why() -> None:
    for smoother in ("spline", "loess"):
        found = flexible_calibration([0.2, 0.8], [1, 1], smoother=smoother)
        assert found.status == "one_class"
        assert np.isnan(found.ici)
    refused("smoother is 'lowess'; choose one of spline", flexible_calibration, [0.1], [1],
            smoother="lowess")  # fmt: skip
    refused("extremes is 'drop'; choose one of clip, leave-out", calibration_line, [0.1], [1],
            extremes="drop")  # fmt: skip


def test_clip_is_checked() -> None:
    for clip in (0, 0.5, -1, "small", True):
        refused("clip is", calibration_line, [0.2, 0.8], [0, 1], clip=clip)
