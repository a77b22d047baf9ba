"""Scores of many samples at once are those of each sample alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from calibration.forecasts import Extremes, forecasts
from calibration.scores.definition import SampleSettings
from calibration.scores.families.corp import _isotonic_gains
from calibration.scores.many_samples import COMPILED, scores_of_samples
from calibration.scores.registry import sample_scores


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("extremes", Extremes)
def test_compiled_scores_are_those_of_each_sample(seed: int, extremes: Extremes) -> None:
    rng = np.random.default_rng(seed)
    n, n_responses = int(rng.integers(4, 90)), int(rng.integers(2, 9))
    p = rng.random(n).round(int(rng.integers(1, 4)))
    p[rng.random(n) < 0.1] = rng.choice([0.0, 1.0])
    y = rng.random(n) < p
    weights = rng.choice([1.0, 2.0, 0.5], n) if seed % 2 else None
    points = forecasts(p, y, weights, rng.integers(0, n_responses, n))
    names = [*COMPILED, "calibration_in_the_large", "auprc"][:: -1 if seed % 3 else 1]
    settings = SampleSettings(extremes=extremes)
    draws = rng.integers(0, 3, (25, points.n_responses)).astype(float)
    draws[0] = 0.0
    compiled = scores_of_samples(points, settings, names)(draws)
    assert np.isnan(compiled[0]).all()
    defined = 0
    for row, values in zip(draws[1:], compiled[1:], strict=True):
        sample = points.sample(row)
        if sample.total <= 0:
            assert np.isnan(values).all()
            continue
        alone = sample_scores(sample, settings, names)
        expected = np.array([alone[name].value for name in names])
        np.testing.assert_allclose(values, expected, rtol=1e-8, atol=1e-9)
        defined += int(np.isfinite(expected).sum())
    assert defined > 100


@pytest.mark.parametrize("of_mean", [False, True])
def test_isotonic_gains_are_those_of_scipy(of_mean: bool) -> None:
    rng = np.random.default_rng(3)
    weight = rng.dirichlet(np.ones(30))
    forecast = np.sort(rng.random(30))
    rows = forecast + rng.normal(0, 0.3, (40, 30))
    expected = []
    for row in rows:
        after = np.clip(isotonic_regression(row, weights=weight).x, 0, 1)
        before = np.clip(np.full(30, row @ weight) if of_mean else forecast, 0, 1)
        loss = row * (1 - before) ** 2 + (1 - row) * before**2
        expected.append((loss - after * (1 - after)) @ weight)
    gains = _isotonic_gains(weight, rows.reshape(4, 10, 30), None if of_mean else forecast)
    np.testing.assert_allclose(gains.ravel(), expected, rtol=1e-9, atol=1e-12)
