"""Bins of a reliability diagram and their intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration import reliability_bins
from tests.calibration.scipy_bootstrap import scipy_bootstrap
from tests.refusals import refused


def clustered(seed: int, n_responses: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return calibrated p, labels that responses share entirely, and response ids."""
    generator = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), size)
    p = np.full(responses.size, 0.5)
    return p, np.repeat(generator.random(n_responses) < 0.5, size), responses


def test_hand_values() -> None:
    bins = reliability_bins([0.1, 0.2, 0.9, 0.7, 1.0], [0, 1, 1, 0, 1], n_bins=2)
    np.testing.assert_allclose(bins.mean_predicted, [0.15, 2.6 / 3], atol=1e-15)
    np.testing.assert_allclose(bins.observed, [0.5, 2 / 3], atol=1e-15)
    assert bins.count.tolist() == [2, 3]
    assert bins.edges.tolist() == [0.0, 0.5, 1.0]
    assert bins.position.tolist() == [0, 1]
    assert bins.n_atoms == 5
    assert bins.n_responses is None
    assert bins.interval == "wilson"


def test_a_perfect_forecast_lies_on_the_diagonal() -> None:
    bins = reliability_bins([0.0, 0.0, 1.0], [0, 0, 1])
    assert bins.mean_predicted.tolist() == bins.observed.tolist() == [0.0, 1.0]
    assert bins.position.tolist() == [0, 9]


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [1, 3, 10, 37])
def test_agreement_with_scikit_learn(strategy: str, n_bins: int) -> None:
    from sklearn.calibration import calibration_curve

    generator = np.random.default_rng(n_bins)
    for p in (
        generator.random(997),
        generator.beta(0.3, 0.3, 50),
        np.array([0.25] * 8 + [0.5] * 8),
    ):
        y = generator.random(p.size) < p
        bins = reliability_bins(p, y, n_bins=n_bins, strategy=strategy)
        observed, predicted = calibration_curve(y, p, n_bins=n_bins, strategy=strategy)
        # Means of up to 997 terms by the same sums.
        np.testing.assert_allclose(bins.observed, observed, rtol=0, atol=1e-12)
        np.testing.assert_allclose(bins.mean_predicted, predicted, rtol=0, atol=1e-12)


def test_published_curve_of_scikit_learn() -> None:
    # The example in the documentation of scikit-learn's calibration_curve.
    y = [0, 0, 0, 0, 1, 1, 1, 1, 1]
    bins = reliability_bins([0.1, 0.2, 0.3, 0.4, 0.65, 0.7, 0.8, 0.9, 1.0], y, n_bins=3)
    np.testing.assert_allclose(bins.observed, [0.0, 0.5, 1.0], atol=1e-15)
    np.testing.assert_allclose(bins.mean_predicted, [0.2, 0.525, 0.85], atol=1e-15)


@pytest.mark.parametrize(
    ("true", "n", "lower", "upper"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_wilson_intervals(true: int, n: int, lower: float, upper: float) -> None:
    # Newcombe 1998, table I, method 3 (score, no continuity correction), printed to four digits.
    bins = reliability_bins([0.3] * n, [True] * true + [False] * (n - true))
    assert bins.lower[0] == pytest.approx(lower, abs=5e-5)
    assert bins.upper[0] == pytest.approx(upper, abs=5e-5)


def test_an_undecided_atom_keeps_its_bin_whatever_was_rounded() -> None:
    p = [0.5 - 1e-14, 0.5, 0.5 + 1e-14]
    for strategy in ("uniform", "quantile"):
        for n_bins in (2, 10):
            bins = reliability_bins(p, [1, 0, 1], n_bins=n_bins, strategy=strategy)
            assert bins.count.tolist() == [3]


def test_empty_bins_are_left_out_and_edges_are_not() -> None:
    bins = reliability_bins([0.05, 0.95], [0, 1], n_bins=4)
    assert bins.position.tolist() == [0, 3]
    assert bins.edges.size == 5
    assert bins.mean_predicted.size == bins.lower.size == bins.upper.size == 2


def test_histogram_counts_every_atom_and_centers_the_undecided() -> None:
    generator = np.random.default_rng(2)
    p = np.concatenate([generator.random(500), np.full(100, 0.5), [0.0, 1.0]])
    bins = reliability_bins(p, p > 0.4, strategy="quantile")
    assert bins.histogram.sum() == bins.n_atoms == 602
    expected, _ = np.histogram(p, bins=21, range=(0, 1))
    assert bins.histogram.tolist() == expected.tolist()
    assert reliability_bins([0.5], [1]).histogram.tolist() == [0] * 10 + [1] + [0] * 10


def test_bootstrap_is_seeded() -> None:
    p, y, responses = clustered(0, 40, 5)
    first = reliability_bins(p, y, responses=responses, n_bootstrap=200, seed=3)
    same = reliability_bins(p, y, responses=responses, n_bootstrap=200, seed=3)
    other = reliability_bins(p, y, responses=responses, n_bootstrap=200, seed=4)
    assert (first.lower[0], first.upper[0]) == (same.lower[0], same.upper[0])
    assert (first.lower[0], first.upper[0]) != (other.lower[0], other.upper[0])
    assert first.n_responses == 40
    assert first.interval == "bootstrap"


def test_bootstrap_agrees_with_scipy() -> None:
    generator = np.random.default_rng(8)
    responses = np.repeat(np.arange(60), generator.integers(1, 9, 60))
    p = np.full(responses.size, 0.4)
    y = generator.random(responses.size) < generator.random(60)[responses]
    ours = reliability_bins(p, y, responses=responses, n_bootstrap=20_000, level=0.9)
    true = np.bincount(responses, weights=y)
    atoms = np.bincount(responses)
    scipy_interval = scipy_bootstrap(true, atoms).confidence_interval
    # The replicates' standard deviation is about 0.04, where a 5% quantile of 20,000 has a Monte
    # Carlo error of 0.04 * sqrt(0.05 * 0.95 / 20000) / 0.103 = 0.0006; 0.004 is far beyond it.
    assert ours.lower[0] == pytest.approx(scipy_interval.low, abs=0.004)
    assert ours.upper[0] == pytest.approx(scipy_interval.high, abs=0.004)


def test_intervals_over_responses_cover_where_naive_ones_do_not() -> None:
    covered = {"bootstrap": 0, "wilson": 0}
    n_runs = 200
    for seed in range(n_runs):
        p, y, responses = clustered(seed, 60, 10)
        for name, ids in (("bootstrap", responses), ("wilson", None)):
            bins = reliability_bins(p, y, responses=ids, n_bootstrap=200)
            covered[name] += bool(bins.lower[0] <= 0.5 <= bins.upper[0])
    # Nominal 95%; with 200 runs the standard error is 1.5 points, so that 89 % is four below.
    assert covered["bootstrap"] / n_runs > 0.89
    # Labels repeated ten times make the naive interval sqrt(10) times too short: 46 % coverage.
    assert covered["wilson"] / n_runs < 0.65


def test_a_bin_whose_share_cannot_move_counts_responses() -> None:
    from statsmodels.stats.proportion import proportion_confint

    p = [0.1] * 6 + [0.5] * 4 + [0.9] * 3
    y = [0] * 6 + [1, 0, 1, 0] + [1, 1, 0]
    responses = ["a", "a", "b", "b", "c", "c", "a", "a", "b", "b", "d", "d", "d"]
    bins = reliability_bins(p, y, responses=responses, n_bootstrap=50)
    # No label is true in three responses; half are in each of two; one response is alone.
    for row, (share, n) in enumerate([(0.0, 3), (0.5, 2), (2 / 3, 1)]):
        lower, upper = proportion_confint(share * n, n, method="wilson")
        assert bins.lower[row] == pytest.approx(lower, abs=1e-12)
        assert bins.upper[row] == pytest.approx(upper, abs=1e-12)
        assert bins.lower[row] < bins.upper[row]


def test_a_wider_level_gives_wider_intervals() -> None:
    p, y, responses = clustered(1, 50, 4)
    for ids in (None, responses):
        narrow = reliability_bins(p, y, responses=ids, level=0.5)
        wide = reliability_bins(p, y, responses=ids, level=0.99)
        assert wide.lower[0] < narrow.lower[0] < narrow.upper[0] < wide.upper[0]


def test_many_responses_are_resampled_in_blocks() -> None:
    from calibration.intervals import response_weights

    # A block holds at most a million draws: two replicates of this many responses.
    n = 400_000
    blocks = list(response_weights(n, 5, seed=0))
    assert [block.shape for block in blocks] == [(2, n), (2, n), (1, n)]
    assert all((block.sum(axis=1) == n).all() for block in blocks)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_bins": 0}, "n_bins is 0; give a whole number of at least 1"),
        ({"n_bins": 2.5}, "n_bins is 2.5"),
        ({"strategy": "equal"}, "strategy is 'equal'; choose 'uniform' or 'quantile'"),
        ({"level": 95}, "level is 95; give a number between 0 and 1"),
        ({"level": math.nan}, "level is nan"),
        ({"responses": [1, 2], "n_bootstrap": 0}, "n_bootstrap is 0"),
        ({"responses": [1, 2], "seed": -1}, "seed is -1"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    refused(message, reliability_bins, [0.2, 0.7], [0, 1], **settings)
