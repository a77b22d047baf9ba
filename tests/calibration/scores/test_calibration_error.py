"""Calibration errors over bins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration import reliability_bins, score
from calibration.scores import calibration_error
from tests.calibration.coverage_simulation import draw
from tests.refusals import refused

P = [0.1, 0.3, 0.35, 0.6, 0.8, 0.9]
Y = [0, 1, 0, 1, 1, 0]


def test_hand_values() -> None:
    # Three bins: (0, 1/3] holds 0.1, 0.3 and one true; (1/3, 2/3] 0.35, 0.6, one; the last one.
    errors = np.array([0.5 - 0.2, 0.5 - 0.475, 0.85 - 0.5])
    assert calibration_error(P, Y, n_bins=3) == pytest.approx(errors.mean(), abs=1e-15)


def test_hand_values_of_other_norms() -> None:
    # The bins above, which hold two claims each: distances of .3, .025 and .35.
    assert calibration_error(P, Y, n_bins=3, norm="maximum") == pytest.approx(0.35, abs=1e-15)
    assert calibration_error(P, Y, n_bins=3, norm="average") == pytest.approx(0.225, abs=1e-15)
    # A single claim of a bin counts as much as nine of another, and an empty bin not at all.
    p, y = [0.1] * 9 + [0.9], [0] * 10
    assert calibration_error(p, y, n_bins=3, norm="average") == pytest.approx(0.5, abs=1e-15)
    assert calibration_error(p, y, n_bins=3) == pytest.approx(0.18, abs=1e-15)
    assert calibration_error(p, y, n_bins=3, norm="maximum") == pytest.approx(0.9, abs=1e-15)


def test_scores_take_any_number_of_bins() -> None:
    p, y, responses = draw(np.random.default_rng(3), 40)
    names = ("ece", "ece_equal_mass", "mce", "ace")
    how: dict[str, dict[str, Any]] = {
        "ece_equal_mass": {"strategy": "quantile"},
        "mce": {"norm": "maximum"},
    }
    how |= {"ace": {"norm": "average"}}
    for n_bins in (4, 15):
        scores = score(p, y, responses, scores=names, n_bins=n_bins)
        for name in names:
            expected = calibration_error(p, y, n_bins=n_bins, **how.get(name, {}))
            assert scores[name].value == pytest.approx(expected, abs=1e-12), name
            # What intervals cover was simulated with ten bins.
            assert math.isnan(scores[name].coverage)


def test_an_edge_belongs_to_the_bin_below() -> None:
    # p = 1/2 is in the lower bin with 0.2.
    ece = calibration_error([0.2, 0.5, 0.9], [0, 1, 1], n_bins=2)
    assert ece == pytest.approx((abs(0.7 - 1) + 0.1) / 3, abs=1e-15)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("seed", range(4))
def test_bins_are_those_of_the_reliability_diagram(strategy: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(5, 500))
    p = generator.random(n) if seed % 2 else np.round(generator.random(n), 1)
    y = generator.random(n) < p
    for n_bins in (1, 3, 10):
        bins = reliability_bins(p, y, n_bins=n_bins, strategy=strategy)
        expected = np.average(np.abs(bins.observed - bins.mean_predicted), weights=bins.count)
        error = calibration_error(p, y, n_bins=n_bins, strategy=strategy)
        # The same sums in another order.
        assert error == pytest.approx(expected, abs=1e-12)


def test_an_undecided_atom_keeps_its_bin_whatever_was_rounded() -> None:
    p, y = [0.5 - 1e-14, 0.5, 0.5 + 1e-14, 0.9], [1, 0, 1, 1]
    for strategy in ("uniform", "quantile"):
        error = calibration_error(p, y, n_bins=2, strategy=strategy)
        assert error == pytest.approx((3 * abs(2 / 3 - 0.5) + 0.1) / 4, abs=1e-12)


def test_debiased_errors_of_calibrated_forecasts_are_smaller_in_the_mean() -> None:
    generator = np.random.default_rng(7)
    plain, debiased = [], []
    for _ in range(200):
        p = generator.random(200)
        y = generator.random(200) < p
        plain.append(calibration_error(p, y, strategy="quantile"))
        debiased.append(calibration_error(p, y, strategy="quantile", debiased=True))
    # Shares of 20 atoms err by sqrt(p(1-p)/20), 0.088 in the mean over p; a normal error is
    # sqrt(2/pi) of that in absolute mean: 0.07. Taking off what N(d, s^2) would add to |d|, where
    # d is itself N(0, s^2), leaves (2 - sqrt(2)) of it, 0.041.
    assert np.mean(plain) == pytest.approx(0.070, abs=0.004)
    assert np.mean(debiased) == pytest.approx(0.041, abs=0.004)


def test_a_bin_is_debiased_by_what_a_normal_share_adds_to_its_distance() -> None:
    """The mean of a folded normal number, as scipy has it, in bins of unequal weights."""
    from scipy.stats import foldnorm

    # A share that is far off, one that is near, one at the mean probability, and one without noise.
    bins = [(0.15, 8, 5), (0.35, 20, 8), (0.5, 6, 3), (0.9, 4, 4)]
    p = np.concatenate([np.full(n, each) for each, n, _ in bins])
    y = np.concatenate([np.arange(n) < true for _, n, true in bins])
    expected = 0.0
    for each, n, true in bins:
        distance, spread = abs(each - true / n), np.sqrt(true / n * (1 - true / n) / n)
        folded = foldnorm.mean(distance / spread, scale=spread) if spread else distance
        expected += n / p.size * (2 * distance - folded)
    error = calibration_error(p, y, n_bins=5, debiased=True)
    assert error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_bins": 0}, "n_bins is 0"),
        ({"strategy": "equal"}, "strategy is 'equal'; choose 'uniform' or 'quantile'"),
        ({"norm": "max"}, "norm is 'max'; choose one of 'expected', 'maximum', 'average'"),
        ({"norm": "maximum", "debiased": True}, "only the expected error is debiased"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    refused(message, calibration_error, [0.2, 0.7], [0, 1], **settings)
