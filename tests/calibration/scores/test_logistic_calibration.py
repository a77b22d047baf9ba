"""Calibration slope and intercept, and the flexible curve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration.estimate import Estimate, ScoreStatus
from calibration.intervals import student_quantile
from calibration.scores import calibration_line
from calibration.scores.families.logistic import restricted_cubic_spline, weighted_quantile
from calibration.scores.logistic import fit_logistic, sigmoid
from tests.calibration.references import r_claims, r_values
from tests.calibration.scored import scored
from tests.refusals import refused


def e90(p: Any, y: Any, **settings: Any) -> Estimate:
    return scored(p, y, scores=["e90"], **settings)["e90"]


def test_hand_values() -> None:
    # At two probabilities the line goes through both shares: logit q of logit p.
    p = [0.2] * 4 + [0.8] * 4
    y = [1, 0, 0, 0, 1, 1, 1, 0]
    line = calibration_line(p, y)
    assert line.slope == pytest.approx(math.log(3) / math.log(4), abs=1e-12)
    assert line.intercept == pytest.approx(0, abs=1e-12)
    assert line.in_the_large == pytest.approx(0, abs=1e-12)
    # Every atom's distance is 1/4 - 1/5.
    assert e90(p, y).value == pytest.approx(0.05, abs=1e-12)
    assert e90(p, y).status == "ok"
    # Constant forecasts: no slope, the difference of logits in the large, a curve at the share.
    line = calibration_line([0.2] * 4, [1, 1, 0, 0])
    assert line.status == "constant_forecast"
    assert math.isnan(line.slope)
    assert line.in_the_large == pytest.approx(math.log(4), abs=1e-12)
    assert e90([0.2] * 4, [1, 1, 0, 0]).value == pytest.approx(0.3, abs=1e-12)


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
    expected = np.quantile(np.repeat(distance, weights), 0.9, method="inverted_cdf")
    # Both solve to below 1e-10.
    assert e90(p, y, weights=weights).value == pytest.approx(expected, abs=1e-9)


def test_the_line_is_a_gee_of_labels_on_logits_clustered_by_response() -> None:
    import statsmodels.api as sm

    generator = np.random.default_rng(7)
    responses = np.repeat(np.arange(120), 6)
    logit = generator.normal(size=720)
    level = generator.normal(size=120)[responses]
    y = generator.random(720) < sigmoid(0.3 + 0.7 * logit + level)
    columns = np.column_stack([np.ones(720), logit])
    gee = sm.GEE(y.astype(float), columns, responses, family=sm.families.Binomial())
    fitted = gee.fit(cov_type="bias_reduced", ctol=1e-12)
    names = ("calibration_intercept", "calibration_slope")
    ours = scored(sigmoid(logit), y, responses, n_bootstrap=400, scores=names)
    for position, name in enumerate(names):
        # Both solve the same score equations to below 1e-8.
        assert ours[name].value == pytest.approx(fitted.params[position], abs=1e-8)
        # The redraws and the sandwich of Mancl and DeRouen both estimate the variance over
        # responses; a standard deviation of 400 redraws has an error of 3.5%.
        half = student_quantile(0.95, 119) * fitted.bse[position]
        ends = (fitted.params[position] - half, fitted.params[position] + half)
        assert ours[name].interval == pytest.approx(ends, abs=0.1 * half)
    # Claims of a response are alike: an interval that takes them as independent is too narrow.
    lower, upper = ours["calibration_intercept"].interval
    assert gee.fit(cov_type="naive").conf_int()[0] @ [-1, 1] < 0.8 * (upper - lower)


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
    assert e90(p, y).status == "separated"
    assert e90(p * 3, [*y, 1, 0, 1, 0, *y]).status == "clipped"


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
def test_undefined_scores_have_a_status(p: list[float], y: list[int], status: str) -> None:
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
    shares = (0.01, 0.5, 0.9, 1.0)
    quantiles = [weighted_quantile(values, weight.astype(float), share) for share in shares]
    repeated = np.repeat(values, weight)
    expected = np.quantile(repeated, shares, method="inverted_cdf")
    assert quantiles == expected.tolist()


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
    e90_left_out = e90(with_ends, y, extremes="leave-out")
    assert e90_left_out.value == pytest.approx(e90(p[rest], y[rest]).value, abs=1e-9)
    # Moved, the slope is a matter of where to.
    moved = [calibration_line(with_ends, y, clip=clip) for clip in (1e-9, 1e-6, 1e-2)]
    beyond = int(((with_ends < 0.01) | (with_ends > 0.99)).sum())
    assert [each.n_clipped for each in moved] == [4, 4, beyond]
    assert moved[0].slope < moved[1].slope < moved[2].slope
    table = scored(with_ends, y, scores=["calibration_slope", "e90"], extremes="leave-out")
    assert table["calibration_slope"].value == line.slope
    assert table["e90"].value == pytest.approx(e90_left_out.value, rel=1e-12)
    nothing = calibration_line([0, 1, 0], [0, 1, 1], extremes="leave-out")
    assert (nothing.status, nothing.n_clipped) == ("one_class", 3)


def test_a_curve_that_is_not_defined_says_why() -> None:
    undefined = e90([0.2, 0.8], [1, 1])
    assert undefined.status == "one_class"
    assert np.isnan(undefined.value)
    refused("extremes is 'drop'; choose one of clip, leave-out", calibration_line, [0.1], [1],
            extremes="drop")  # fmt: skip


def test_clip_is_checked() -> None:
    for clip in (0, 0.5, -1, "small", True):
        refused("clip is", calibration_line, [0.2, 0.8], [0, 1], clip=clip)
