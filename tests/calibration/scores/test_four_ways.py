"""Every score of the table: perfect forecasts, other libraries, published numbers, invariances.

Hand values of each score are in the tests of its own module.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.scores import (
    auprc,
    auroc,
    calibration_error,
    calibration_line,
)
from calibration.scores.families.pointwise import log_loss
from calibration.scores.logistic import sigmoid
from tests.calibration.scored import OF_PROBABILITIES, scored

REFERENCES = json.loads((Path(__file__).parents[1] / "references.json").read_text(encoding="utf-8"))

AGREEMENTS = [
    (library, name) for library, values in REFERENCES["libraries"].items() for name in values
]


def values_of(p: Any, y: Any, **settings: Any) -> dict[str, float]:
    return {name: each.value for name, each in scored(p, y, **settings).items()}


def random_forecasts(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities with ties, labels off them, and whole weights of 0 to 3."""
    generator = np.random.default_rng(seed)
    p = np.round(generator.uniform(0.03, 0.97, n), 2)
    return p, generator.random(n) < 0.2 + 0.7 * p**2, generator.integers(0, 4, n)


def test_forecasts_that_are_certain_and_right() -> None:
    rows = scored([0, 0, 1, 1, 1], [0, 0, 1, 1, 1])
    values = {"corp_brier_discrimination": 0.24, "corp_brier_uncertainty": 0.24}
    values |= {"auroc": 1.0, "auprc": 1.0, "prr": 1.0}
    for name, row in rows.items():
        if name in {"calibration_slope", "calibration_intercept", "e90"}:
            assert row.status == "separated", name
            assert math.isnan(row.value), name
        elif name == "calibration_in_the_large":
            # Clipped to 1e-6 and 1 - 1e-6; what makes 3 of 5 true in the mean is near ln(3/2).
            assert row.status == "clipped"
            assert abs(row.value) < 0.5
        else:
            assert row.status == "ok", name
            assert row.value == pytest.approx(values.get(name, 0.0), abs=1e-12), name


def test_forecasts_that_are_calibrated_exactly() -> None:
    # One in five of 0.2, three in five of 0.6, nine in ten of 0.9.
    p = [0.2] * 5 + [0.6] * 5 + [0.9] * 10
    y = [1, 0, 0, 0, 0] + [1, 1, 1, 0, 0] + [1] * 9 + [0]
    values = values_of(p, y)
    for name in (
        *("corp_brier_miscalibration", "ece", "ece_equal_mass", "mce", "ace", "smooth_ece", "e90"),
        *("calibration_intercept", "calibration_in_the_large"),
    ):
        # Sums of twenty rounded terms; those of Newton's method end within 1e-12.
        assert values[name] == pytest.approx(0, abs=1e-11), name
    assert values["calibration_slope"] == pytest.approx(1, abs=1e-11)


@pytest.mark.parametrize(("library", "name"), AGREEMENTS)
def test_agreement_with_stored_numbers_of_other_libraries(library: str, name: str) -> None:
    p, y = REFERENCES["p"], REFERENCES["y"]
    row = scored(p, y, scores=[name], n_bins=REFERENCES["n_bins"])[name]
    # relplot finds the bandwidth in ten bisections, to 1/1024, on a mesh of 200 points.
    tolerance = 1e-3 if library.startswith("relplot") else 1e-9
    assert row.status == "ok"
    assert row.value == pytest.approx(REFERENCES["libraries"][library][name], abs=tolerance)


def test_scores_without_a_stored_number_are_these_four() -> None:
    covered = {name for _, name in AGREEMENTS}
    # Compared below with scikit-learn, SciPy and statsmodels as installed, or, where no library
    # has them, with a second way to compute them in the tests of their modules.
    assert set(OF_PROBABILITIES) - covered == {"auroc", "auprc", "ece_debiased", "prr"}


@pytest.mark.parametrize("seed", range(3))
def test_agreement_with_scikit_learn_scipy_and_statsmodels(seed: int) -> None:
    import statsmodels.api as sm
    from scipy.stats import foldnorm
    from sklearn import metrics
    from sklearn.calibration import calibration_curve

    p, y, weights = random_forecasts(seed)
    values = values_of(p, y, weights=weights)
    # Sums of 400 terms in another order; iterations of both libraries end below 1e-10.
    tolerance = 1e-9
    close = {
        "brier": metrics.brier_score_loss(y, p, sample_weight=weights),
        "log_loss": metrics.log_loss(y, p, sample_weight=weights),
        "auroc": metrics.roc_auc_score(y, p, sample_weight=weights),
        "auprc": metrics.average_precision_score(y, p, sample_weight=weights),
    }
    logit = np.log(p / (1 - p))
    settings = {"family": sm.families.Binomial(), "freq_weights": weights}
    line = sm.GLM(y, sm.add_constant(logit), **settings).fit(tol=1e-14)
    close["calibration_intercept"], close["calibration_slope"] = line.params
    offset = sm.GLM(y, np.ones(p.size), offset=logit, **settings).fit(tol=1e-14)
    (close["calibration_in_the_large"],) = offset.params

    # scikit-learn bins atoms, not weights: give each as often as it counts.
    p, y = np.repeat(p, weights), np.repeat(y, weights)

    def error(label: Any, probability: Any, strategy: str) -> tuple[Any, Any, Any]:
        observed, predicted = calibration_curve(label, probability, n_bins=10, strategy=strategy)
        edges = np.linspace(0, 1, 11)
        if strategy == "quantile":
            edges = np.percentile(probability, edges * 100)
        counts = np.bincount(np.searchsorted(edges[1:-1], probability), minlength=10)
        return observed, predicted, counts[counts > 0]

    def mean(label: Any, probability: Any, strategy: str = "uniform") -> float:
        observed, predicted, counts = error(label, probability, strategy)
        return float(np.average(np.abs(observed - predicted), weights=counts))

    close["ece"] = mean(y, p)
    observed, predicted, counts = error(y, p, "quantile")
    spread = np.sqrt(observed * (1 - observed) / counts)
    distance = np.abs(observed - predicted)
    folded = [foldnorm.mean(d / s, scale=s) for d, s in zip(distance, spread, strict=True)]
    close["ece_debiased"] = np.average(2 * distance - np.array(folded), weights=counts)
    for name, expected in close.items():
        assert values[name] == pytest.approx(float(expected), abs=tolerance), name


def test_published_numbers_of_scikit_learn() -> None:
    # Examples in the documentation of roc_auc_score, average_precision_score (printed to two
    # digits) and log_loss (to five).
    y, p = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    assert auroc(p, y) == 0.75
    assert auprc(p, y) == pytest.approx(0.83, abs=0.005)
    assert log_loss([0.9, 0.1, 0.2, 0.65], [1, 0, 0, 1]) == pytest.approx(0.21616, abs=5e-6)


def test_published_calibration_errors_of_torchmetrics() -> None:
    # Example in the documentation of binary_calibration_error, printed to four digits.
    p, y = [0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1]
    assert calibration_error(p, y, n_bins=2) == pytest.approx(0.2900, abs=5e-5)


def test_published_logistic_regression() -> None:
    # Wikipedia, "Logistic regression", hours of study and passing of 20 students: coefficients
    # -4.0777 and 1.5046. With p = sigmoid(hours), logit p is the number of hours.
    hours = np.array([2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 22]) / 4
    passed = [0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1]
    line = calibration_line(sigmoid(hours), passed)
    assert line.intercept == pytest.approx(-4.0777, abs=5e-5)
    assert line.slope == pytest.approx(1.5046, abs=5e-5)
    assert line.status == "ok"


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_is_a_number_of_atoms(seed: int) -> None:
    p, y, weights = random_forecasts(seed, n=150)
    weighted = values_of(p, y, weights=weights)
    repeated = values_of(np.repeat(p, weights), np.repeat(y, weights))
    for name, value in repeated.items():
        # Sums in another order; smooth_ece solves for its bandwidth to 1e-12.
        assert weighted[name] == pytest.approx(value, abs=1e-10), name


@pytest.mark.parametrize("seed", range(2))
def test_order_does_not_matter(seed: int) -> None:
    p, y, weights = random_forecasts(seed, n=150)
    order = np.random.default_rng(seed).permutation(p.size)
    first = values_of(p, y, weights=weights)
    second = values_of(p[order], y[order], weights=weights[order])
    for name, value in first.items():
        # Sums of the same terms in another order.
        assert second[name] == pytest.approx(value, abs=1e-10), name


def test_true_and_false_change_places() -> None:
    generator = np.random.default_rng(5)
    # Off the edges of bins, which belong to the bin below whatever the class.
    p = generator.uniform(0.03, 0.97, 500)
    y = generator.random(500) < p**1.5
    values, mirrored = values_of(p, y), values_of(1 - p, ~y)
    # Average precision and what rejection leaves are of the true class; the knots and quantiles of
    # a mirrored curve are at other atoms; edges of bins of equal weight lie between other atoms.
    for name in set(OF_PROBABILITIES) - {"auprc", "prr", "e90", "ece_debiased", "ece_equal_mass"}:
        sign = -1 if name in {"calibration_intercept", "calibration_in_the_large"} else 1
        # 1 - (1 - p) differs from p by a rounding; smooth_ece is on a mesh.
        assert mirrored[name] == pytest.approx(sign * values[name], abs=1e-8), name
