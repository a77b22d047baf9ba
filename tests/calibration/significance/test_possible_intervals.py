"""No interval leaves what resamples reach, nor the range of its score: whatever the differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibration.forecasts import forecasts
from calibration.intervals import (
    IntervalSettings,
    PairedDifference,
    RatioSums,
    Scale,
    estimate_all,
    mean_interval,
)
from calibration.scores import REGISTRY
from calibration.significance import (
    paired_bootstrap,
    paired_t_test,
    score_difference,
)
from calibration.validation import Floats
from tests.calibration.coverage_simulation import of_sample
from tests.calibration.scored import OF_PROBABILITIES, scored

KINDS = ("sparse", "tied", "constant", "outlier", "plain")

ROUNDING = 1e-12
"""Sums of a few dozen numbers of size 1 in another order."""

FEW = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def differences(kind: str, size: int, scale: float, generator: np.random.Generator) -> Floats:
    """Return differences of two methods, (size,), of at most `scale` but for rounding."""
    noise = generator.normal(0, 1e-12, size)
    if kind == "sparse":
        return np.where(generator.random(size) < 0.15, generator.normal(0, scale, size), 0.0)
    if kind == "tied":
        return generator.choice([-scale, 0.0, scale], size)
    if kind == "constant":
        return np.full(size, scale)
    if kind == "outlier":
        noise[generator.integers(size)] = generator.choice([-scale, scale])
        return noise
    return generator.normal(0, scale, size)


CASES = {
    "kind": st.sampled_from(KINDS),
    "n_responses": st.integers(2, 30),
    "scale": st.sampled_from([1e-9, 1e-5, 1e-2, 1.0]),
    "seed": st.integers(0, 10_000),
}


def inside(lower: float, upper: float, lowest: float, highest: float) -> bool:
    """Say whether an interval is none, or is within bounds but for rounding."""
    margin = ROUNDING * max(1.0, abs(lowest), abs(highest))
    return math.isnan(lower) or lowest - margin <= lower <= upper <= highest + margin


@FEW
@given(**CASES)
def test_intervals_of_a_mean_difference_are_between_those_of_responses(
    kind: str, n_responses: int, scale: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), generator.integers(1, 5, n_responses))
    first = differences(kind, responses.size, scale, generator)
    zero = np.zeros(responses.size)
    sizes = np.bincount(responses)
    means = np.bincount(responses, first) / sizes
    bounds = float(means.min()), float(means.max())
    compared = paired_bootstrap(first, zero, responses, n_bootstrap=200)
    assert inside(compared.lower, compared.upper, *bounds)
    compared = paired_t_test(means, np.zeros(n_responses), alternative="two-sided")
    assert inside(compared.lower, compared.upper, *bounds)
    below = sizes[:, np.newaxis].astype(float)
    first_sums, other = (
        RatioSums(above[:, np.newaxis], below, "mean", Scale.NUMBER)
        for above in (means * sizes, np.zeros(n_responses))
    )
    for method in ("delta", "bootstrap"):
        made = estimate_all(
            [first_sums, PairedDifference(other, first_sums)],
            IntervalSettings(method, n_bootstrap=200),
        )
        for each in made:
            assert inside(float(each.lower[0]), float(each.upper[0]), *bounds), each.method


def resamples(n_responses: int) -> Iterator[Floats]:
    """Yield how often each response is in every sample of as many, drawn with replacement."""
    for drawn in itertools.combinations_with_replacement(range(n_responses), n_responses):
        yield np.bincount(drawn, minlength=n_responses).astype(float)


SMOOTH = ("brier", "auroc", "auprc", "aurc", "calibration_in_the_large")


@settings(FEW, max_examples=15)
@given(**{**CASES, "n_responses": st.integers(2, 5), "score": st.sampled_from(SMOOTH)})
@pytest.mark.slow
def test_differences_of_scores_are_reached_by_some_resample(
    kind: str, n_responses: int, scale: float, seed: int, score: str
) -> None:
    generator = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), 5)
    p = np.round(generator.uniform(0.05, 0.95, responses.size), 2)
    y = (generator.random(p.size) < p).astype(float)
    y[:2] = 0, 1
    second = np.clip(p + differences(kind, p.size, scale, generator), 0, 1)
    difference = score_difference(score, p, second, y, responses, n_bootstrap=200)
    reached = []
    sides = [forecasts(each, y, None, responses) for each in (p, second)]
    for weights in resamples(n_responses):
        values = [of_sample(side.sample(weights), (score,))[score] for side in sides]
        reached.append(values[0] - values[1])
    finite = [value for value in reached if math.isfinite(value)]
    assert inside(difference.lower, difference.upper, min(finite), max(finite))


@settings(FEW, max_examples=4)
@given(**{**CASES, "n_responses": st.integers(2, 12)})
@pytest.mark.slow
def test_every_interval_is_in_the_range_of_its_score(
    kind: str, n_responses: int, scale: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), generator.integers(1, 5, n_responses))
    y = generator.integers(0, 2, responses.size)
    # Forecasts as good as certain, but for differences of this kind.
    p = np.clip(np.abs(y - 0.01) + differences(kind, y.size, scale, generator), 0, 1)
    for name, each in scored(p, y, responses, n_bootstrap=20).items():
        lowest, highest = REGISTRY[name].range
        assert math.isnan(each.lower) or lowest <= each.lower <= each.upper <= highest, each


@pytest.mark.parametrize("kind", KINDS)
def test_differences_of_every_score_are_in_their_range(kind: str) -> None:
    generator = np.random.default_rng(KINDS.index(kind))
    responses = np.repeat(np.arange(12), 4)
    p = generator.uniform(0.02, 0.98, responses.size)
    y = generator.random(p.size) < p
    second = np.clip(p + differences(kind, p.size, 1e-2, generator), 0, 1)
    for score in OF_PROBABILITIES:
        difference = score_difference(score, p, second, y, responses, n_bootstrap=20)
        lowest, highest = REGISTRY[score].range
        width = highest - lowest
        assert (
            math.isnan(difference.lower) or -width <= difference.lower <= difference.upper <= width
        ), difference


@pytest.mark.parametrize("n_responses", [40, 110])
@pytest.mark.parametrize("score", ["auroc", "auprc"])
def test_one_response_that_differs_pulls_a_score_one_way(score: str, n_responses: int) -> None:
    rng = np.random.default_rng(1)
    responses = np.repeat(np.arange(n_responses), 6)
    y = rng.random(responses.size) < 0.6
    p = np.clip(rng.random(responses.size), 0.01, 0.99)
    better = p.copy()
    better[:6] = np.where(y[:6], 0.99, 0.01)
    difference = score_difference(score, p, better, y, responses)
    # A resample without that response has a difference of 0; none has one the other way.
    near, far = sorted((difference.lower, difference.upper), key=abs)
    assert near * np.sign(difference.value) >= -1e-9
    assert far * np.sign(difference.value) >= abs(difference.value)


def test_two_backends_that_agree_have_no_wide_interval() -> None:
    """Seen once: [-0.0896, 0.0000], of probabilities that hardly move."""
    from experiments import posteriors

    posteriors_of = [
        posteriors("factcheck-bench", variant="FR2", backend=name) for name in ("exact", "lbp")
    ]
    labels, responses = posteriors_of[0]["label"], posteriors_of[0]["response"]
    p = [each["p"].to_numpy() for each in posteriors_of]
    given: Any = (*p, labels, responses)
    moved = np.abs(p[0] - p[1]).max()
    assert 0 < moved < 0.01
    difference = score_difference("brier", *given)
    assert -2 * moved <= difference.lower <= difference.value
    assert difference.value <= difference.upper <= 2 * moved
    assert difference.method == "bootstrap"
    known = labels.notna().to_numpy()
    losses = [(each - labels.to_numpy(dtype=float))[known] ** 2 for each in p]
    tested = paired_bootstrap(losses[0], losses[1], responses[known])
    assert (tested.lower, tested.upper) == pytest.approx(
        (difference.lower, difference.upper), rel=1e-9, abs=ROUNDING
    )


def test_a_difference_of_nothing_has_an_error() -> None:
    """Methods that differ in every claim, but not on the whole."""
    p, q = [0.2, 0.4, 0.6, 0.8], [0.4, 0.2, 0.8, 0.6]
    difference = score_difference("expected_precision", p, q, [0, 0, 1, 1], ["a", "b", "c", "d"])
    assert difference.value == pytest.approx(0, abs=1e-15)
    # The standard deviation of four differences of 0.2, by the root of 4.
    assert difference.standard_error == pytest.approx(0.2 * math.sqrt(4 / 3) / 2)
    assert difference.status == "ok"


def test_a_mean_of_the_unit_interval_stays_in_it() -> None:
    means = np.array([0.3, 0.6, 0.8, 0.9, 0.95])
    mean, lower, upper = mean_interval([*means, float("nan")])
    assert mean == pytest.approx(0.71)
    # In the logit, by hand: Student's t with 4 degrees of freedom.
    half = 2.7764451 * means.std(ddof=1) / math.sqrt(5) / (0.71 * 0.29)
    assert lower == pytest.approx(1 / (1 + math.exp(half - math.log(71 / 29))), rel=1e-6)
    assert mean < upper < 0.95
    # No further than any response.
    assert mean_interval([0.9, 0.95, 1.0, 0.99])[1] == 0.9
    assert all(map(math.isnan, mean_interval([])))
    assert all(map(math.isnan, mean_interval([0.5])[1:]))
