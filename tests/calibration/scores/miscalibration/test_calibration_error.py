"""Calibration errors over bins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibration import reliability_bins
from calibration.scores import calibration_error, ece_sweep, score_table
from tests.refusals import refused

P = [0.1, 0.3, 0.35, 0.6, 0.8, 0.9]
Y = [0, 1, 0, 1, 1, 0]


def scored(p: list[float], y: list[int], score: str, n_bins: int) -> float:
    return score_table(p, y, scores=[score], n_bins=n_bins, n_bootstrap=0)[0].value


def test_hand_values() -> None:
    # Three bins: (0, 1/3] holds 0.1, 0.3 and one true; (1/3, 2/3] 0.35, 0.6, one; the last one.
    errors = np.array([0.5 - 0.2, 0.5 - 0.475, 0.85 - 0.5])
    assert calibration_error(P, Y, n_bins=3) == pytest.approx(errors.mean(), abs=1e-15)
    assert calibration_error(P, Y, n_bins=3, norm="max") == pytest.approx(0.35, abs=1e-15)
    l2 = calibration_error(P, Y, n_bins=3, norm="l2")
    assert l2 == pytest.approx(np.sqrt((errors**2).mean()), abs=1e-15)
    # Each share varies by 1/2 * 1/2 / (2 - 1), more than the squared errors: nothing is left.
    assert calibration_error(P, Y, n_bins=3, norm="l2", debiased=True) == 0.0
    # Verdicts F F F T T T with confidence 0.9, 0.7, 0.65, 0.6, 0.8, 0.9; right R W R R R W.
    # Over two bins all are in the upper one: mean confidence 4.55/6, accuracy 4/6.
    assert scored(P, Y, "ece_confidence", 2) == pytest.approx(0.55 / 6, abs=1e-15)
    # Bins of 1 - p mirror those of p, none being on an edge.
    assert scored(P, Y, "ece_classwise", 3) == pytest.approx(errors.mean(), abs=1e-15)
    # Two bins of three atoms have shares 1/3 and 2/3, three bins equal ones: they ascend; four
    # bins hold 2, 1, 1 and 2 atoms with shares 1/2, 0, ...: they do not.
    assert ece_sweep(P, Y) == pytest.approx(errors.mean(), abs=1e-15)


def test_an_edge_belongs_to_the_bin_below_in_either_class() -> None:
    # p = 1/2 is in the lower bin with 0.2, 1 - p in the lower bin with 1 - 0.9.
    p, y = [0.2, 0.5, 0.9], [0, 1, 1]
    ece = calibration_error(p, y, n_bins=2)
    assert ece == pytest.approx((abs(0.7 - 1) + 0.1) / 3, abs=1e-15)
    # 1 - p: 0.1 and 0.5 with no false atom, 0.8 with one.
    false = (0.6 + 0.2) / 3
    assert scored(p, y, "ece_classwise", 2) == pytest.approx((ece + false) / 2, abs=1e-15)


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


@pytest.mark.parametrize("seed", range(5))
def test_sweep_takes_the_most_bins_whose_shares_ascend(seed: int) -> None:
    generator = np.random.default_rng(seed)
    p = np.sort(generator.random(60 * (seed + 1)))
    y = generator.random(p.size) < p**2
    previous = abs(p.mean() - y.mean())
    for n_bins in range(2, p.size + 1):
        # Edges of equal weight as numpy draws them, the atom on an edge in the bin below.
        edges = np.quantile(p, np.linspace(0, 1, n_bins + 1)[1:-1])
        index = np.searchsorted(edges, p)
        counts = np.bincount(index, minlength=n_bins)
        observed = np.bincount(index, weights=y, minlength=n_bins) / counts
        if (np.diff(observed) < 0).any():
            break
        predicted = np.bincount(index, weights=p, minlength=n_bins) / counts
        previous = float(np.average(np.abs(observed - predicted), weights=counts))
    assert ece_sweep(p, y) == pytest.approx(previous, abs=1e-12)


def test_debiased_errors_of_calibrated_forecasts_are_smaller_in_the_mean() -> None:
    generator = np.random.default_rng(7)
    plain, debiased, squared = [], [], []
    for _ in range(200):
        p = generator.random(200)
        y = generator.random(200) < p
        plain.append(calibration_error(p, y, strategy="quantile"))
        debiased.append(calibration_error(p, y, strategy="quantile", debiased=True))
        error = calibration_error(p, y, strategy="quantile", norm="l2", debiased=True)
        squared.append(error**2)
    # Shares of 20 atoms err by sqrt(p(1-p)/20), 0.088 in the mean over p; a normal error is
    # sqrt(2/pi) of that in absolute mean: 0.07. Taking off what N(d, s^2) would add to |d|, where
    # d is itself N(0, s^2), leaves (2 - sqrt(2)) of it, 0.041.
    assert np.mean(plain) == pytest.approx(0.070, abs=0.004)
    assert np.mean(debiased) == pytest.approx(0.041, abs=0.004)
    # The estimate of the square has mean 0 and a standard deviation of about
    # sqrt(2/10) * 0.0083 = 0.0037; what is left of it above 0 has a mean of 0.0037 / sqrt(2 pi).
    assert np.mean(squared) == pytest.approx(0.0015, abs=0.0006)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_bins": 0}, "n_bins is 0"),
        ({"strategy": "equal"}, "strategy is 'equal'; choose 'uniform' or 'quantile'"),
        ({"norm": "l3"}, "norm is 'l3' with debiased=False"),
        ({"norm": "max", "debiased": True}, "norm is 'max' with debiased=True"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    refused(message, calibration_error, [0.2, 0.7], [0, 1], **settings)
