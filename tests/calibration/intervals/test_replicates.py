"""Replicates and the jackknife: whole responses are drawn, and a mean has its known error."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from calibration.forecasts import Sample, forecasts
from calibration.intervals import (
    jackknife_error,
    jackknife_weights,
    of_samples,
    percentile_interval,
    replicates,
    response_weights,
)
from calibration.intervals.replicates import JACKKNIFE_GROUPS, jackknife, reach
from calibration.scores.families.pointwise import mean_loss
from calibration.validation import Floats
from tests.calibration.coverage_simulation import draw


def brier_of(sample: Sample) -> Floats:
    return np.array([mean_loss(sample, "brier")])


def test_the_jackknife_of_a_mean_has_its_standard_error() -> None:
    generator = np.random.default_rng(4)
    p = generator.random(60)
    points = forecasts(p, generator.random(60) < p)
    left_out = replicates(of_samples(points, brier_of), jackknife_weights(60, seed=0))
    losses = (np.repeat(points.p, points.sizes) - points.y) ** 2
    assert jackknife_error(left_out)[0] == pytest.approx(losses.std(ddof=1) / math.sqrt(60))
    # Of many responses groups are left out, one of which has about as much to say.
    n = 20 * JACKKNIFE_GROUPS
    p = generator.random(n)
    points = forecasts(p, generator.random(n) < p)
    errors = []
    for seed in range(20):
        left_out = replicates(of_samples(points, brier_of), jackknife_weights(n, seed))
        assert len(left_out) == JACKKNIFE_GROUPS
        errors.append(jackknife_error(left_out)[0])
    losses = (np.repeat(points.p, points.sizes) - points.y) ** 2
    # Each has a relative error of 1 / sqrt(200) = 0.07, the mean of twenty of 0.016.
    assert np.mean(errors) == pytest.approx(losses.std(ddof=1) / math.sqrt(n), rel=0.06)


def test_the_jackknife_leaves_out_values_that_are_not_finite() -> None:
    generator = np.random.default_rng(6)
    left_out = generator.normal(size=(30, 3))
    left_out[[2, 5], 1], left_out[1:, 2] = [np.nan, np.inf], np.nan
    whole, some, none = jackknife_error(left_out)
    kept = np.delete(left_out[:, 1], [2, 5])
    # The root of (n - 1) / n times the sum of squared deviations (Efron 1982).
    assert whole == pytest.approx(math.sqrt(29 * left_out[:, 0].var()), rel=1e-12)
    assert some == pytest.approx(math.sqrt(27 * kept.var()), rel=1e-12)
    assert math.isnan(none)


def test_the_jackknife_says_how_each_response_moves_a_value() -> None:
    values = np.random.default_rng(7).normal(size=(6, 2))

    def means(weights: Floats) -> Floats:
        return np.asarray(weights @ values / weights.sum(axis=1, keepdims=True))

    means_of_data = values.mean(axis=0)
    error, influence, n_groups = jackknife(means, means_of_data, 6, seed=3)
    assert n_groups == 6
    for number in range(6):
        without = np.delete(values, number, axis=0).mean(axis=0)
        assert influence[number] == pytest.approx(means_of_data - without, abs=1e-12)
    assert error == pytest.approx(values.std(axis=0, ddof=1) / math.sqrt(6), rel=1e-12)


@pytest.mark.parametrize("degree", [1, 2])
def test_resamples_reach_the_least_and_largest_response_and_no_further(degree: int) -> None:
    """All 6^6 resamples of a mean, and of its square."""
    values = np.random.default_rng(8).uniform(0.1, 3.0, 6)

    def statistic(weights: Floats) -> Floats:
        return np.asarray((weights @ values / weights.sum(axis=1)) ** degree)[:, np.newaxis]

    draws = np.array(list(itertools.combinations_with_replacement(range(6), 6)))
    every = statistic((draws[:, :, np.newaxis] == np.arange(6)).sum(axis=1).astype(np.float64))
    _, influence, _ = jackknife(statistic, statistic(np.ones((1, 6)))[0], 6, seed=0)
    wanted = np.array([-np.inf]), np.array([np.inf])
    lowest, highest = reach(statistic, influence, wanted)
    assert lowest[0] == pytest.approx(every.min(), abs=1e-12)
    assert highest[0] == pytest.approx(every.max(), abs=1e-12)
    # One response has no range.
    alone = reach(statistic, influence[:1], wanted)
    assert (alone[0][0], alone[1][0]) == (-math.inf, math.inf)


def test_percentiles_of_no_finite_replicate_are_none() -> None:
    nothing = percentile_interval(np.array([[np.nan], [np.inf]]), 0.95)
    assert all(np.isnan(end).all() for end in nothing)


def test_replicates_draw_whole_responses() -> None:
    p, y, responses = draw(np.random.default_rng(5), 40)
    points = forecasts(p, y, None, responses)
    total = of_samples(points, lambda sample: np.array([sample.total]))
    totals = replicates(total, response_weights(40, 50, seed=0))[:, 0]
    sizes = np.bincount(responses)
    assert np.ptp(totals) > 0
    by_hand = np.random.default_rng(0).integers(0, 40, (50, 40))
    assert totals.tolist() == sizes[by_hand].sum(axis=1).tolist()
    # Without responses, each replicate has as many atoms as the data.
    atoms = forecasts(p, y)
    total = of_samples(atoms, lambda sample: np.array([sample.total]))
    alone = replicates(total, response_weights(p.size, 5, seed=0))[:, 0]
    assert alone.tolist() == [p.size] * 5
