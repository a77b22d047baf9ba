"""Replicates and the jackknife: whole responses are drawn, and a mean has its known error."""

from __future__ import annotations

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
from calibration.intervals.replicates import JACKKNIFE_GROUPS
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
