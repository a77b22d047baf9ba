"""Estimands over responses: standard errors, intervals, and where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from calibration.intervals import (
    Estimand,
    IntervalSettings,
    PairedDifference,
    RatioSums,
    Scale,
    Smooth,
    estimate_all,
    response_weights,
    wilson_interval,
)
from calibration.self_knowledge.formula import sigma, sigma_slopes
from tests.refusals import refused

DELTA = IntervalSettings("delta")


def sums(seed: int, n_responses: int = 25, n_cells: int = 3) -> RatioSums:
    generator = np.random.default_rng(seed)
    below = generator.integers(0, 9, (n_responses, n_cells)).astype(np.float64)
    return RatioSums(generator.binomial(below.astype(int), 0.7).astype(np.float64), below)


def column(above: ArrayLike, below: ArrayLike) -> RatioSums:
    numerator, denominator = (np.array(each, dtype=np.float64)[:, None] for each in (above, below))
    return RatioSums(numerator, denominator)


def test_standard_error_is_that_of_statsmodels_clustered_by_response() -> None:
    from statsmodels.regression.linear_model import OLS

    generator = np.random.default_rng(0)
    responses = np.repeat(np.arange(20), generator.integers(1, 9, 20))
    values = (generator.random(responses.size) < 0.6).astype(np.float64)
    totals = np.bincount(responses, weights=values), np.bincount(responses)
    ratio = column(*totals).named("share")
    result = OLS(values, np.ones_like(values)).fit(
        cov_type="cluster", cov_kwds={"groups": responses, "df_correction": True}
    )
    estimates = estimate_all((ratio,), DELTA)[0]
    assert estimates.estimate[0] == pytest.approx(result.params[0], abs=1e-12)
    # statsmodels corrects by R/(R-1) (n-1)/(n-1) for one parameter: the same factor.
    assert estimates.standard_error[0] == pytest.approx(result.bse[0], rel=1e-10)
    assert estimates.n_responses[0] == 20


@pytest.mark.parametrize("kind", ["ratio", "smooth", "difference"])
def test_influence_is_the_derivative_in_the_weight_of_a_response(kind: str) -> None:
    first, other = sums(1), sums(2)
    smooth = Smooth("sigma", (first, other), sigma, sigma_slopes)
    estimands: dict[str, Estimand] = {
        "ratio": first.named("share"),
        "smooth": smooth,
        "difference": PairedDifference(first.named("share"), smooth),
    }
    estimand = estimands[kind]
    step = 1e-5
    shifts = step * np.eye(25)
    rises = estimand.replicates(1 + shifts) - estimand.replicates(1 - shifts)
    # Central differences err by the square of the step.
    np.testing.assert_allclose(rises / (2 * step), estimand.influence(), rtol=0, atol=1e-8)


def test_delta_interval_is_symmetric_in_the_logit_with_students_t() -> None:
    from scipy.stats import t

    interval = estimate_all((sums(3).named("share"),), DELTA)[0]
    logit = np.log(interval.estimate / (1 - interval.estimate))
    sizes = sums(3).denominator
    # As many degrees of freedom as responses of equal size would have that say as much.
    effective = sizes.sum(axis=0) ** 2 / (sizes**2).sum(axis=0)
    assert (effective < interval.n_responses).all()
    reach = t.ppf(0.975, effective - 1) * interval.standard_error
    reach = reach / (interval.estimate * (1 - interval.estimate))
    np.testing.assert_allclose(interval.lower, 1 / (1 + np.exp(reach - logit)), rtol=1e-12)
    np.testing.assert_allclose(interval.upper, 1 / (1 + np.exp(-reach - logit)), rtol=1e-12)
    number = estimate_all((sums(3).named("number", Scale.NUMBER),), DELTA)[0]
    np.testing.assert_allclose(number.upper - number.estimate, number.estimate - number.lower)
    size = estimate_all((sums(3).named("size", Scale.POSITIVE),), DELTA)[0]
    reach = t.ppf(0.975, effective - 1) * size.standard_error / size.estimate
    np.testing.assert_allclose(np.log(size.upper / size.estimate), reach)
    np.testing.assert_allclose(np.log(size.estimate / size.lower), reach)


def test_bootstrap_interval_is_that_of_the_replicates_expanded_for_few_responses() -> None:
    from scipy.stats import norm, t

    ratio = sums(4, n_cells=1).named("share")
    settings = IntervalSettings(n_bootstrap=300, seed=5, level=0.9)
    estimates = estimate_all((ratio,), settings)[0]
    drawn = np.concatenate([ratio.replicates(w) for w in response_weights(25, 300, 5)])
    touching = int(estimates.n_responses[0])
    tail = norm.cdf(-t.ppf(0.95, touching - 1) * math.sqrt(touching / (touching - 1)))
    assert tail < 0.05
    expected = np.quantile(drawn, [tail, 1 - tail])
    np.testing.assert_allclose([estimates.lower[0], estimates.upper[0]], expected, rtol=1e-9)


def test_every_bit_of_wilsons_interval_is_that_of_statsmodels() -> None:
    from statsmodels.stats.proportion import proportion_confint

    rng = np.random.default_rng(0)
    trials = rng.integers(1, 500, 1000)
    share = rng.integers(0, trials + 1) / trials
    for level in (0.5, 0.95):
        expected = proportion_confint(share * trials, trials, alpha=1 - level, method="wilson")
        np.testing.assert_array_equal(wilson_interval(share, trials, level), expected)


def test_a_share_that_no_redraw_moves_has_wilsons_interval() -> None:
    # Newcombe 1998, table I, method 3: 0 of 20 gives 0 to 0.1611. Twenty responses, five claims
    # each, none true, count as twenty observations.
    ratio = column([0.0] * 20, [5.0] * 20).named("share")
    for method in ("bootstrap", "delta"):
        estimates = estimate_all((ratio,), IntervalSettings(method, n_bootstrap=50))[0]
        assert estimates.lower[0] == 0.0
        assert estimates.upper[0] == pytest.approx(0.1611, abs=5e-5)


def test_one_response_is_one_observation_of_a_share_and_none_of_anything_else() -> None:
    share = column([3.0, 0.0], [4.0, 0.0]).named("share")
    number = column([3.0, 0.0], [4.0, 0.0]).named("number", Scale.NUMBER)
    both = Smooth("sigma", (share, share), sigma, sigma_slopes)
    made = estimate_all((share, number, both), IntervalSettings(n_bootstrap=50))
    assert [each.estimate[0] for each in made] == [0.75, 0.75, 0.5]
    assert all(np.isnan(each.standard_error[0]) for each in made)
    low, high = wilson_interval(0.75, 1, 0.95)
    assert (made[0].lower[0], made[0].upper[0]) == (low, high)
    assert np.isnan([made[1].lower[0], made[2].upper[0]]).all()


@pytest.mark.parametrize("method", ["bootstrap", "delta"])
@pytest.mark.parametrize("scale", [Scale.NUMBER, Scale.UNIT, Scale.POSITIVE])
def test_rounding_is_no_spread_of_what_every_response_has(method: str, scale: Scale) -> None:
    sizes = np.arange(1.0, 10.0)
    sums_of_each = 0.1 * sizes
    # The last digit of one sum, as another order of its terms rounds it.
    sums_of_each[7] = np.nextafter(sums_of_each[7], 1.0)
    same = column(sums_of_each, sizes).named("the same", scale)
    settings = IntervalSettings(method, n_bootstrap=50)
    interval = estimate_all((same,), settings)[0]
    # An interval of it would be a point.
    assert 0.0 < interval.standard_error[0] < 1e-15
    assert np.isnan([interval.lower[0], interval.upper[0]]).all()
    # Rounding is relative to the estimate: an error of 1e-21 is none beside 1e-20.
    small = column(1e-20 * sizes, sizes + np.arange(9) % 2).named("small", Scale.NUMBER)
    interval = estimate_all((small,), settings)[0]
    assert interval.lower[0] < interval.estimate[0] < interval.upper[0] < 2e-20


def test_nothing_below_the_line_is_nan_without_a_warning() -> None:
    empty = column([0.0, 0.0], [0.0, 0.0]).named("share")
    for method in ("bootstrap", "delta"):
        estimates = estimate_all((empty,), IntervalSettings(method, n_bootstrap=50))[0]
        values = [estimates.estimate, estimates.lower, estimates.upper, estimates.standard_error]
        assert np.isnan(values).all()
        assert estimates.n_responses[0] == 0


def test_replicates_where_the_estimand_is_undefined_are_counted_and_left_out() -> None:
    ratio = column([1.0, 0.0, 2.0], [2.0, 0.0, 2.0]).named("share")
    estimates = estimate_all((ratio,), IntervalSettings(n_bootstrap=2000))[0]
    # All three draws are the empty response: (1/3)^3 = 1/27, 74 of 2000; 5 deviations are 42.
    assert 32 <= estimates.n_undefined[0] <= 116
    assert 0.5 <= estimates.lower[0] < 0.75 < estimates.upper[0] <= 1.0


def test_a_difference_redraws_both_together() -> None:
    share = sums(6).named("share")
    same = estimate_all((PairedDifference(share, share),), IntervalSettings(n_bootstrap=50))[0]
    np.testing.assert_array_equal(same.estimate, 0.0)
    # No redraw moves it, and a share's Wilson interval is not one of a difference.
    assert np.isnan(same.lower).all()
    shifted = RatioSums(share.numerator * 0.5, share.denominator)
    paired = estimate_all((PairedDifference(share, shifted.named("half")),), DELTA)[0]
    np.testing.assert_allclose(paired.estimate, -0.5 * share.estimate(), rtol=1e-12)
    np.testing.assert_allclose(
        paired.standard_error, 0.5 * estimate_all((share,), DELTA)[0].standard_error, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "jackknife"}, "interval method is 'jackknife'; choose one of bootstrap, delta"),
        ({"n_bootstrap": 0}, "n_bootstrap is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"level": 95}, "level is 95; give a number between 0 and 1"),
    ],
)
def test_bad_settings(settings: dict[str, object], message: str) -> None:
    refused(message, IntervalSettings, **settings)
