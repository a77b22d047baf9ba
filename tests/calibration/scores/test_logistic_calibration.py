"""Calibration slope and intercept, and the flexible curve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.forecasts import ScoreStatus
from calibration.scores import calibration_line, flexible_calibration
from calibration.scores.logistic import fit_logistic, sigmoid
from calibration.scores.logistic_calibration import restricted_cubic_spline, weighted_quantiles
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
    import calibration.scores.logistic as module

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


def test_clip_is_checked() -> None:
    for clip in (0, 0.5, -1, "small", True):
        refused("clip is", calibration_line, [0.2, 0.8], [0, 1], clip=clip)
