"""Intervals by inverted tests: a folded normal number by quadrature, and scores as they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, t

from calibration.forecasts import forecasts
from calibration.intervals import DeviationScores, inverted_intervals, response_weights
from calibration.scores import REGISTRY
from calibration.scores.cells import MOST_GROUPS
from calibration.scores.definition import SampleSettings
from calibration.scores.registry import sample_scores
from calibration.validation import Floats
from tests.calibration.coverage_simulation import draw


def absolute(deviation: Floats) -> Floats:
    return np.abs(deviation)[..., 0]


@pytest.mark.parametrize("distance", [0.5, 1.5, 3.0, 6.0])
def test_the_interval_of_a_folded_normal_number(distance: float) -> None:
    n = 400
    generator = np.random.default_rng(int(10 * distance))
    values = generator.normal(size=n)
    values = (values - values.mean()) / values.std() + distance / math.sqrt(n)
    scores = DeviationScores(
        np.array([values.mean()]),
        np.array([values.mean()]),
        values[:, np.newaxis],
        np.ones(n),
        absolute,
        absolute,
    )
    lower, upper, error = inverted_intervals(scores, response_weights(n, 4000, 0), 0.95)
    # In standard errors: what means have |mean + normal number| as far out as the distance.
    tail = norm.sf(t.ppf(0.975, n - 1))

    def beyond(mean: float) -> float:
        return float(norm.sf(distance - mean) + norm.cdf(-distance - mean))

    least = 0.0 if beyond(0) > tail else brentq(lambda mean: beyond(mean) - tail, 0, 20)
    most = brentq(lambda mean: 1 - beyond(mean) - tail, 0, 20)
    # Quantiles of 4000 replicates have an error of 0.05; straight lines between populations add
    # about as much where the noise folds.
    assert lower * math.sqrt(n) == pytest.approx(least, abs=0.2)
    assert upper * math.sqrt(n) == pytest.approx(most, abs=0.2)
    assert error * math.sqrt(n) == pytest.approx(
        math.sqrt(1 + distance**2 - _folded(distance) ** 2), abs=0.05
    )


def _folded(mean: float) -> float:
    """Mean of |mean + normal number|."""
    return float(2 * norm.pdf(mean) + mean * (1 - 2 * norm.cdf(-mean)))


@pytest.mark.parametrize("seed", [0, 1])
def test_deviations_of_the_data_give_the_scores_of_the_data(seed: int) -> None:
    p, y, responses = draw(np.random.default_rng(seed), 30)
    weights = np.random.default_rng(seed).integers(1, 3, p.size)
    points = forecasts(p, y, weights, responses)
    assert points.p.size <= 256
    for name, score in REGISTRY.items():
        if score.deviations is None:
            continue
        made = score.deviations(points, SampleSettings())
        assert made is not None
        value = sample_scores(points.sample(), SampleSettings(), [name])[name].value
        # The mesh of smooth ECE is coarse.
        tolerance = 0.02 if name == "smooth_ece" else 1e-9
        statistic = float(made.statistic(made.deviation))
        assert statistic == pytest.approx(value, rel=tolerance, abs=1e-12), name


def test_the_debiased_error_of_a_population_is_the_plain_one() -> None:
    p, y, responses = draw(np.random.default_rng(2), 40)
    points = forecasts(p, y, None, responses)
    make = REGISTRY["ece_debiased"].deviations
    assert make is not None
    made = make(points, SampleSettings())
    assert made is not None
    plain = float(np.abs(made.deviation).sum())
    assert float(made.population(made.deviation)) == plain
    assert float(made.statistic(made.deviation)) < plain


def test_a_curve_without_a_shift_is_at_no_distance() -> None:
    # Of more values than there are groups, whose curves are then of their mean logits.
    generator = np.random.default_rng(3)
    p = generator.uniform(0.01, 0.99, 600)
    points = forecasts(p, generator.random(600) < p, None, np.repeat(np.arange(60), 10))
    assert points.p.size > MOST_GROUPS
    make = REGISTRY["e90"].deviations
    assert make is not None
    made = make(points, SampleSettings())
    assert made is not None
    assert made.population(np.zeros_like(made.deviation)) == 0.0
