"""Decompositions: hand values, sums that are exact, bias that the correction removes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from calibration.forecasts import forecasts
from calibration.scores import corp_decomposition, murphy_decomposition
from calibration.scores.miscalibration.decomposition import isotonic_fit
from calibration.scores.pointwise import brier, log_loss, spherical
from tests.refusals import refused


def random_forecasts(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 2000))
    p = generator.beta(0.5, 0.5, n)
    if seed % 2:
        p = np.round(p, 2)
    return p, generator.random(n) < p**1.3, generator.random(n) * 3


def test_hand_values_of_corp() -> None:
    # Isotonic regression pools the second and third atom at 1/2: 0, 1/2, 1/2, 1.
    terms = corp_decomposition([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    assert terms.score == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4, abs=1e-15)
    assert terms.miscalibration == pytest.approx(0.185 - 0.125, abs=1e-15)
    assert terms.discrimination == pytest.approx(0.25 - 0.125, abs=1e-15)
    assert terms.uncertainty == pytest.approx(0.25, abs=1e-15)
    logarithmic = corp_decomposition([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], score="log_loss")
    assert logarithmic.uncertainty == pytest.approx(math.log(2), abs=1e-15)
    assert logarithmic.discrimination == pytest.approx(math.log(2) / 2, abs=1e-15)


def test_hand_values_of_murphy() -> None:
    # Bins (0, 1/2] with p 0.1, 0.3 and labels 0, 1; (1/2, 1] with 0.8, 0.8 and labels 1, 1.
    terms = murphy_decomposition([0.1, 0.3, 0.8, 0.8], [0, 1, 1, 1], n_bins=2)
    assert terms.reliability == pytest.approx((2 * 0.3**2 + 2 * 0.2**2) / 4, abs=1e-15)
    assert terms.resolution == pytest.approx((2 * 0.25**2 + 2 * 0.25**2) / 4, abs=1e-15)
    assert terms.uncertainty == pytest.approx(3 / 16, abs=1e-15)
    # Variance of p within bins 2 * 0.1^2 / 4; twice the covariance 2 * (2 * 0.1 * 0.5) / 4.
    assert terms.within_bin == pytest.approx(0.005 - 0.05, abs=1e-15)
    corrected = murphy_decomposition([0.1, 0.3, 0.8, 0.8], [0, 1, 1, 1], n_bins=2, corrected=True)
    # The first bin's share varies by 1/2 * 1/2 / (2 - 1), weighted 2/4; the base rate's by 3/16/3.
    assert corrected.reliability == pytest.approx(terms.reliability - 0.125, abs=1e-15)
    assert corrected.resolution == pytest.approx(0.0625 - 0.125 + 0.0625, abs=1e-15)
    assert corrected.uncertainty == pytest.approx(3 / 16 + 1 / 16, abs=1e-15)


@pytest.mark.parametrize("seed", range(8))
def test_terms_add_up_to_the_score(seed: int) -> None:
    p, y, weights = random_forecasts(seed)
    for name, score in (("brier", brier), ("log_loss", log_loss), ("spherical", spherical)):
        terms = corp_decomposition(p, y, weights=weights, score=name)
        total = terms.miscalibration - terms.discrimination + terms.uncertainty
        # Sums of up to 2000 terms of order 1, each rounded to 1e-16.
        assert total == pytest.approx(score(p, y, weights=weights), abs=1e-12)
        assert terms.score == pytest.approx(total, abs=1e-12)
        # Recalibration and the base rate are each the best of their kind.
        assert terms.miscalibration >= -1e-12
        assert terms.discrimination >= -1e-12
    for corrected in (False, True):
        murphy = murphy_decomposition(p, y, weights=weights, n_bins=7, corrected=corrected)
        total = murphy.reliability - murphy.resolution + murphy.uncertainty + murphy.within_bin
        assert total == pytest.approx(brier(p, y, weights=weights), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_corp_is_the_score_of_scikit_learns_isotonic_regression(seed: int) -> None:
    from sklearn.isotonic import IsotonicRegression
    from sklearn.metrics import brier_score_loss

    p, y, weights = random_forecasts(seed)
    fitted = IsotonicRegression().fit(p, y, sample_weight=weights).predict(p)
    terms = corp_decomposition(p, y, weights=weights)
    recalibrated = brier_score_loss(y, np.clip(fitted, 0, 1), sample_weight=weights)
    # The same least squares solved by other code, sums in another order.
    assert terms.score - terms.miscalibration == pytest.approx(recalibrated, abs=1e-9)
    assert terms.uncertainty - terms.discrimination == pytest.approx(recalibrated, abs=1e-9)


def test_published_decomposition_of_model_diagnostics() -> None:
    # Example in the documentation of model_diagnostics.scoring.decompose: labels 0 0 1 1,
    # forecasts -1 1 1 2, squared error; discrimination 0.125, uncertainty 0.25. Both depend on
    # the order of forecasts alone; those here have the same order, and lie in [0, 1].
    terms = corp_decomposition([0.2, 0.5, 0.5, 0.8], [0, 0, 1, 1])
    assert terms.discrimination == 0.125
    assert terms.uncertainty == 0.25


def test_the_correction_removes_the_bias_of_reliability() -> None:
    # Over all 2^5 labels of two bins, each as likely as the true shares make it: the mean of the
    # corrected reliability is that of the true shares, the plain one's is larger.
    p = np.array([0.2, 0.3, 0.7, 0.8, 0.9])
    truth = np.array([0.35, 0.35, 0.6, 0.6, 0.6])
    means = {False: 0.0, True: 0.0}
    for labels in itertools.product([0, 1], repeat=5):
        probability = float(np.prod(np.where(labels, truth, 1 - truth)))
        for corrected in means:
            terms = murphy_decomposition(p, labels, n_bins=2, corrected=corrected)
            means[corrected] += probability * terms.reliability
    true = (2 * (0.25 - 0.35) ** 2 + 3 * (0.8 - 0.6) ** 2) / 5
    # Sums of 32 exact products.
    assert means[True] == pytest.approx(true, abs=1e-14)
    noise = (0.35 * 0.65 + 0.6 * 0.4) / 5
    assert means[False] == pytest.approx(true + noise, abs=1e-14)


def test_the_corrected_terms_are_those_of_the_truth_in_the_mean() -> None:
    # Ferro and Fricker 2012: p is 0.2 or 0.7, each in one of two bins, and claims with it are true
    # with 0.3 and 0.6. 3000 draws of 40 claims; errors of the means are given.
    generator = np.random.default_rng(11)
    terms: dict[bool, list[tuple[float, ...]]] = {False: [], True: []}
    for _ in range(3000):
        high = generator.random(40) < 0.5
        y = generator.random(40) < np.where(high, 0.6, 0.3)
        for corrected, own in terms.items():
            each = murphy_decomposition(np.where(high, 0.7, 0.2), y, n_bins=2, corrected=corrected)
            own.append((each.reliability, each.resolution, each.uncertainty))
    truth = np.array([0.01, 0.0225, 0.45 * 0.55])
    errors = np.std(terms[True], axis=0) / math.sqrt(3000)
    means = {corrected: np.mean(own, axis=0) for corrected, own in terms.items()}
    assert (np.abs(means[True] - truth) < 4 * errors).all()
    # Uncorrected, each is off by the variance of a share of 20 or 40 claims.
    assert means[False][0] - truth[0] == pytest.approx(0.225 * 2 / 40, rel=0.1)
    assert means[False][1] - truth[1] == pytest.approx(0.225 * 2 / 40 - 0.2475 / 40, rel=0.25)
    assert means[False][2] - truth[2] == pytest.approx(-0.2475 / 40, rel=0.25)


def test_an_infinite_loss_is_all_miscalibration() -> None:
    terms = corp_decomposition([0.0, 0.2, 0.9], [1, 0, 1], score="log_loss")
    assert terms.score == terms.miscalibration == math.inf
    assert math.isfinite(terms.discrimination)
    # Without weight, a forecast that is certain and wrong counts nothing.
    light = corp_decomposition([0.0, 0.2, 0.9], [1, 0, 1], weights=[0, 2, 2], score="log_loss")
    assert light.score == pytest.approx(-(math.log(0.8) + math.log(0.9)) / 2, abs=1e-15)


def test_isotonic_blocks_skip_points_without_weight() -> None:
    points = forecasts([0.1, 0.2, 0.3, 0.4], [1, 0, 0, 1], weights=[1, 0, 1, 2])
    fit = isotonic_fit(points.sample())
    assert fit.value.tolist() == [0.5, 1.0]
    assert fit.weight.tolist() == [2.0, 2.0]
    # Positions among the three points with weight.
    assert fit.first.tolist() == [0, 2]


def test_bad_input_is_named() -> None:
    refused("score is 'auc'; choose one of", corp_decomposition, [0.1], [1], score="auc")
    refused("n_bins is 0", murphy_decomposition, [0.1], [1], n_bins=0)
