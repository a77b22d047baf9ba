"""CORP: hand values, sums that are exact, another library."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.forecasts import forecasts
from calibration.scores import corp_decomposition
from calibration.scores.families.corp import isotonic_fit
from calibration.scores.families.pointwise import brier


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


@pytest.mark.parametrize("seed", range(8))
def test_terms_add_up_to_the_score(seed: int) -> None:
    p, y, weights = random_forecasts(seed)
    terms = corp_decomposition(p, y, weights=weights)
    total = terms.miscalibration - terms.discrimination + terms.uncertainty
    # Sums of up to 2000 terms of order 1, each rounded to 1e-16.
    assert total == pytest.approx(brier(p, y, weights=weights), abs=1e-12)
    assert terms.score == pytest.approx(total, abs=1e-12)
    # Recalibration and the base rate are each the best of their kind.
    assert terms.miscalibration >= -1e-12
    assert terms.discrimination >= -1e-12


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


def test_isotonic_blocks_skip_points_without_weight() -> None:
    points = forecasts([0.1, 0.2, 0.3, 0.4], [1, 0, 0, 1], weights=[1, 0, 1, 2])
    fit = isotonic_fit(points.sample())
    assert fit.value.tolist() == [0.5, 1.0]
    assert fit.weight.tolist() == [2.0, 2.0]
    # Positions among the three points with weight.
    assert fit.first.tolist() == [0, 2]
