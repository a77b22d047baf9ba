"""Intervals by inverted tests: a folded normal number by quadrature, and scores as they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, t

from calibration.forecasts import forecasts
from calibration.intervals import DeviationScores, inverted_intervals, response_weights
from calibration.scores.intervals.deviations import DEVIATION_SCORES, MOST_GROUPS
from calibration.scores.miscalibration.logistic_calibration import Smoother
from calibration.scores.sample_scores import context_of, sample_scores
from calibration.validation import Floats
from tests.calibration.coverage_simulation import draw


def absolute(deviation: Floats) -> Floats:
    return np.abs(deviation)


@pytest.mark.parametrize("distance", [0.5, 1.5, 3.0, 6.0])
def test_the_interval_of_a_folded_normal_number(distance: float) -> None:
    n = 400
    generator = np.random.default_rng(int(10 * distance))
    own = generator.normal(size=n)
    own = (own - own.mean()) / own.std() + distance / math.sqrt(n)
    scores = DeviationScores(
        np.array([own.mean()]),
        np.array([own.mean()]),
        own[:, np.newaxis],
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
    assert lower[0] * math.sqrt(n) == pytest.approx(least, abs=0.2)
    assert upper[0] * math.sqrt(n) == pytest.approx(most, abs=0.2)
    assert error[0] * math.sqrt(n) == pytest.approx(
        math.sqrt(1 + distance**2 - _folded(distance) ** 2), abs=0.05
    )


def _folded(mean: float) -> float:
    """Mean of |mean + normal number|."""
    return float(2 * norm.pdf(mean) + mean * (1 - 2 * norm.cdf(-mean)))


@pytest.mark.parametrize("smoother", list(Smoother))
@pytest.mark.parametrize("seed", [0, 1])
def test_deviations_of_the_data_give_the_scores_of_the_data(seed: int, smoother: Smoother) -> None:
    p, y, responses = draw(np.random.default_rng(seed), 30)
    weights = np.random.default_rng(seed).integers(1, 3, p.size)
    points = forecasts(p, y, weights, responses)
    assert points.p.size <= 256
    names = [name for own in DEVIATION_SCORES for name in own]
    context = context_of(points, names, smoother=smoother)
    found = sample_scores(context.whole, context, names)
    for own, make in DEVIATION_SCORES.items():
        made = make(points, context)
        assert made is not None
        for name, value in zip(own, made.statistic(made.deviation), strict=True):
            if name == "rms_calibration_error_debiased":
                value = max(value, 0.0)
            # The mesh of smooth ECE and the count that loess takes for its share are coarse.
            coarse = name == "smooth_ece" or smoother is Smoother.LOESS
            tolerance = 0.02 if coarse else 1e-9
            assert value == pytest.approx(found[name].value, rel=tolerance, abs=1e-12), name


def test_debiased_scores_of_a_population_are_the_plain_ones() -> None:
    p, y, responses = draw(np.random.default_rng(2), 40)
    points = forecasts(p, y, None, responses)
    context = context_of(points, ())
    for own, make in DEVIATION_SCORES.items():
        if "ece_debiased" not in own:
            continue
        made = make(points, context)
        assert made is not None
        ece, debiased, rms, rms_debiased = made.population(made.deviation)
        assert (ece, rms) == (debiased, rms_debiased)
        noisy = made.statistic(made.deviation)
        assert noisy[1] < ece
        assert noisy[3] < rms


@pytest.mark.parametrize("smoother", list(Smoother))
def test_a_curve_without_a_shift_is_at_no_distance(smoother: Smoother) -> None:
    # Of more values than there are groups, whose curves are then of their mean logits.
    generator = np.random.default_rng(3)
    p = generator.uniform(0.01, 0.99, 600)
    points = forecasts(p, generator.random(600) < p, None, np.repeat(np.arange(60), 10))
    assert points.p.size > MOST_GROUPS
    names = ("ici", "e50", "e90", "emax")
    made = DEVIATION_SCORES[names](points, context_of(points, names, smoother=smoother))
    assert made is not None
    # Loess of a straight line is that line, but for rounding.
    least = 0.0 if smoother is Smoother.SPLINE else 1e-12
    assert np.abs(made.population(np.zeros_like(made.deviation))).max() <= least
