"""Recalibrators: hand values, other libraries, scikit-learn's interface, what they refuse."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline

from calibration.recalibration import (
    RECALIBRATORS,
    BetaRecalibrator,
    HistogramRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    Recalibrator,
    TemperatureRecalibrator,
    VennAbersRecalibrator,
)
from calibration.scores.families.pointwise import brier, log_loss
from calibration.scores.logistic import sigmoid
from tests.calibration.references import r_claims, r_values
from tests.refusals import refused

REFERENCES = json.loads((Path(__file__).parents[1] / "references.json").read_text(encoding="utf-8"))
(VENN_ABERS,) = (v for k, v in REFERENCES["recalibration"].items() if k.startswith("venn-abers"))
(BETACAL,) = (v for k, v in REFERENCES["recalibration"].items() if k.startswith("betacal"))


def overconfident(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities whose logits are twice those of the labels, minus 0.3."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(0.2, 1.2, n)
    return sigmoid(2 * logits - 0.3), generator.random(n) < sigmoid(logits)


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_overconfidence_is_taken_back(name: str) -> None:
    p, y = overconfident(0, 4000)
    new_p, new_y = overconfident(1, 4000)
    recalibrated = RECALIBRATORS[name]().fit(p, y).predict(new_p)
    assert recalibrated.shape == (4000,)
    assert ((recalibrated >= 0) & (recalibrated <= 1)).all()
    # The truth has a Brier score of about 0.19, the forecasts 0.215; standard errors are 0.004.
    assert brier(recalibrated, new_y) < brier(new_p, new_y) - 0.01
    # Every map but the histogram's, whose edges hide it, keeps the order of p.
    order = np.argsort(new_p)
    if name != "histogram":
        assert (np.diff(recalibrated[order]) >= -1e-12).all()


def test_parameters_of_the_truth_are_found() -> None:
    p, y = overconfident(2, 40_000)
    platt = PlattRecalibrator().fit(p, y)
    # Standard errors of slope and intercept at 40,000 atoms are about 0.006 and 0.011; five each.
    assert platt.slope_ == pytest.approx(0.5, abs=0.03)
    assert platt.intercept_ == pytest.approx(0.15, abs=0.055)
    beta = BetaRecalibrator().fit(p, y)
    assert (beta.a_, beta.b_) == pytest.approx((0.5, 0.5), abs=0.08)
    assert beta.c_ == pytest.approx(0.15, abs=0.1)
    centered = sigmoid(2 * np.log(p / (1 - p)))
    labels = np.random.default_rng(3).random(p.size) < p
    assert TemperatureRecalibrator().fit(centered, labels).temperature_ == pytest.approx(
        2, abs=0.08
    )


def test_hand_values() -> None:
    p, y = [0.2] * 4 + [0.8] * 4, [1, 0, 0, 0, 1, 1, 1, 0]
    plain = PlattRecalibrator(smooth=False).fit(p, y)
    np.testing.assert_allclose(plain.predict([0.2, 0.5, 0.8]), [1 / 4, 1 / 2, 3 / 4], atol=1e-12)
    # Platt's targets for four true and four false: 5/6 and 1/6, in the mean 1/3 and 2/3.
    smooth = PlattRecalibrator().fit(p, y)
    np.testing.assert_allclose(smooth.predict([0.2, 0.8]), [1 / 3, 2 / 3], atol=1e-12)
    temperature = TemperatureRecalibrator().fit(p, y)
    assert temperature.temperature_ == pytest.approx(math.log(4) / math.log(3), abs=1e-12)
    isotonic = IsotonicRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    # Linear between 0.1 and the pooled 0.4 and 0.6, constant beyond.
    np.testing.assert_allclose(
        isotonic.predict([0.0, 0.25, 0.5, 0.75, 1.0]), [0, 0.25, 0.5, 0.75, 1], atol=1e-15
    )
    histogram = HistogramRecalibrator(n_bins=2).fit([0.1, 0.2, 0.3, 0.9], [0, 1, 1, 1])
    assert histogram.edges_.tolist() == [0.2]
    assert histogram.predict([0.0, 0.2, 0.21, 1.0]).tolist() == [0.5, 0.5, 1.0, 1.0]
    wide = HistogramRecalibrator(n_bins=4, strategy="uniform").fit([0.1, 0.2, 0.9], [0, 1, 1])
    # The two bins in the middle held no atom: their centers.
    assert wide.predict([0.25, 0.3, 0.6, 0.8]).tolist() == [0.5, 0.375, 0.625, 1.0]


def test_hand_values_of_venn_abers() -> None:
    fitted = VennAbersRecalibrator().fit([0.2, 0.6, 0.8], [0, 1, 1])
    pair = fitted.predict_multiprobability([0.1, 0.2, 0.4, 0.6, 0.9])
    # As false at 0.2 it joins one false atom; at 0.6 and above it pulls down all that it passes.
    assert pair[:, 0].tolist() == pytest.approx([0, 0, 0, 1 / 2, 2 / 3], abs=1e-15)
    # As true at 0.2 and below it shares with the false atom; above, all are true.
    assert pair[:, 1].tolist() == pytest.approx([1 / 2, 1 / 2, 1, 1, 1], abs=1e-15)
    merged = pair[:, 1] / (1 - pair[:, 0] + pair[:, 1])
    assert fitted.predict([0.1, 0.2, 0.4, 0.6, 0.9]).tolist() == merged.tolist()


def test_agreement_with_the_venn_abers_package() -> None:
    p, y = np.array(REFERENCES["p"]), np.array(REFERENCES["y"])
    fitted = VennAbersRecalibrator().fit(p[:200], y[:200])
    pair = fitted.predict_multiprobability(p[200:])
    np.testing.assert_allclose(pair[:, 0], VENN_ABERS["lower"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(pair[:, 1], VENN_ABERS["upper"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(fitted.predict(p[200:]), VENN_ABERS["merged"], rtol=0, atol=1e-9)


def test_agreement_with_betacal() -> None:
    p, y = np.array(REFERENCES["p"]), np.array(REFERENCES["y"])
    # betacal stops its solver where the gradient is below 1e-4; statsmodels, below, goes on.
    np.testing.assert_allclose(
        BetaRecalibrator().fit(p, y).predict(p[:40]), BETACAL["abm"], rtol=0, atol=1e-3
    )


@pytest.mark.parametrize("seed", range(3))
def test_agreement_with_statsmodels(seed: int) -> None:
    import statsmodels.api as sm

    p, y = overconfident(seed, 500)
    weights = np.random.default_rng(seed).integers(1, 4, p.size)
    logit = np.log(p) - np.log1p(-p)
    ones = np.ones(p.size)
    designs = {
        PlattRecalibrator(smooth=False): [ones, logit],
        TemperatureRecalibrator(): [logit],
        BetaRecalibrator(): [np.log(p), -np.log1p(-p), ones],
    }
    for estimator, columns in designs.items():
        design = np.stack(columns, axis=1)
        model = sm.GLM(y, design, family=sm.families.Binomial(), freq_weights=weights)
        expected = model.fit(tol=1e-14).predict(design)
        mapped = estimator.fit(p, y, sample_weight=weights).predict(p)
        # Both end within 1e-10 of the maximum.
        np.testing.assert_allclose(mapped, expected, rtol=0, atol=1e-9, err_msg=str(estimator))


def test_agreement_with_scikit_learn() -> None:
    from sklearn.calibration import _sigmoid_calibration

    p, y = overconfident(4)
    slope, intercept = _sigmoid_calibration(np.log(p / (1 - p)), y)
    platt = PlattRecalibrator().fit(p, y)
    # Its solver stops at a gradient of 1e-6 and its sign is Platt's.
    assert platt.slope_ == pytest.approx(-slope, abs=1e-4)
    assert platt.intercept_ == pytest.approx(-intercept, abs=1e-4)
    isotonic = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, y)
    grid = np.linspace(0, 1, 301)
    np.testing.assert_allclose(
        IsotonicRecalibrator().fit(p, y).predict(grid), isotonic.predict(grid), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("seed", range(4))
def test_venn_abers_is_isotonic_regression_with_one_more_atom(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(1, 60))
    p = generator.random(n) if seed % 2 else np.round(generator.random(n), 1)
    y = generator.random(n) < p
    weights = generator.integers(0, 3, n) if seed > 1 else np.ones(n, dtype=int)
    weights[0] += 1
    fitted = VennAbersRecalibrator().fit(p, y, sample_weight=weights)
    at = np.concatenate([np.linspace(0, 1, 23), p])
    pair = fitted.predict_multiprobability(at)
    repeated, labels = np.repeat(p, weights), np.repeat(y, weights)
    for position, value in zip(at, pair, strict=True):
        for label in (0, 1):
            more = IsotonicRegression().fit(np.append(repeated, position), np.append(labels, label))
            # Slopes of sums up to 180, rounded.
            assert value[label] == pytest.approx(more.predict([position])[0], abs=1e-12)


# The best of them is chosen in folds of atoms, and an atom given twice is in two.
@pytest.mark.parametrize("name", [name for name in RECALIBRATORS if name != "best"])
def test_a_weight_is_a_number_of_atoms(name: str) -> None:
    p, y = overconfident(5, 200)
    weights = np.random.default_rng(5).integers(0, 3, p.size)
    grid = np.linspace(0, 1, 51)
    weighted = RECALIBRATORS[name]().fit(p, y, sample_weight=weights).predict(grid)
    repeated = RECALIBRATORS[name]().fit(np.repeat(p, weights), np.repeat(y, weights))
    # Sums in another order, and the end of Newton's method.
    np.testing.assert_allclose(weighted, repeated.predict(grid), rtol=0, atol=1e-10)


def test_beta_keeps_the_order_of_p_where_the_likelihood_would_not() -> None:
    generator = np.random.default_rng(6)
    p = generator.uniform(0.05, 0.95, 600)
    # Most true in the middle: unconstrained, a and b would have opposite signs.
    y = generator.random(600) < np.where(p < 0.6, p, 1.1 - 0.8 * p)
    free = BetaRecalibrator().fit(p, y)
    assert min(free.a_, free.b_) == 0.0
    assert max(free.a_, free.b_) > 0
    mapped = free.predict(np.linspace(0, 1, 101))
    assert (np.diff(mapped) >= 0).all()
    from scipy.optimize import minimize

    columns = np.stack([np.log(p), -np.log1p(-p), np.ones(p.size)])

    def loss(coefficients: np.ndarray) -> float:
        linear = coefficients @ columns
        return float((np.logaddexp(0, linear) - y * linear).mean())

    bounds = [(0, None), (0, None), (None, None)]
    best = minimize(loss, np.array([1.0, 1.0, 0.0]), bounds=bounds, method="L-BFGS-B", tol=1e-14)
    assert log_loss(free.predict(p), y) == pytest.approx(best.fun, abs=1e-8)
    # Against the order throughout, the base rate is all that is left.
    against = BetaRecalibrator().fit(p, generator.random(600) < 1 - p)
    assert (against.a_, against.b_) == (0.0, 0.0)


def test_a_temperature_is_that_of_r_and_of_the_least_log_loss() -> None:
    from scipy.optimize import minimize_scalar

    p, _, y, _ = r_claims()
    fitted = TemperatureRecalibrator().fit(p, y)
    # glm without an intercept, by R 4.2.2.
    assert fitted.temperature_ == pytest.approx(r_values("stats", "temperature")[0], rel=1e-9)
    logit = np.log(p / (1 - p))
    best = minimize_scalar(
        lambda t: log_loss(sigmoid(logit / t), y), bounds=(0.1, 20), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    # Where the loss is flat, to the root of its rounding.
    assert fitted.temperature_ == pytest.approx(best.x, abs=1e-5)
    assert fitted.predict(p) == pytest.approx(sigmoid(logit / fitted.temperature_), abs=1e-12)


def test_a_temperature_against_the_labels_is_infinite() -> None:
    p, y = [0.1, 0.2, 0.8, 0.9, 0.4], [1, 1, 0, 0, 0]
    hot = TemperatureRecalibrator().fit(p, y)
    assert hot.temperature_ == math.inf
    assert hot.predict([0.01, 0.99]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("estimator", "p", "y", "message"),
    [
        (PlattRecalibrator(), [0.2, 0.7], [1, 1], "y has one class: all labels are true"),
        (BetaRecalibrator(), [0.2, 0.7], [0, 0], "y has one class: all labels are false"),
        (PlattRecalibrator(), [0.4, 0.4], [0, 1], "X is 0.4 throughout"),
        (BetaRecalibrator(), [0.4, 0.4], [0, 1], "X is 0.4 throughout"),
        (PlattRecalibrator(smooth=False), [0.2, 0.7], [0, 1], "separates true from .* smooth=True"),
        (BetaRecalibrator(), [0.2, 0.7], [0, 1], "a threshold on the probability"),
        (TemperatureRecalibrator(), [0.2, 0.7], [0, 1], "no probability is on the wrong side"),
        (HistogramRecalibrator(0), [0.2, 0.7], [0, 1], "n_bins is 0"),
        (HistogramRecalibrator(strategy="x"), [0.2, 0.7], [0, 1], "strategy is 'x'"),
        (TemperatureRecalibrator(clip=2), [0.2, 0.7], [0, 1], "clip is 2"),
        (IsotonicRecalibrator(), [0.2, 1.7], [0, 1], r"X\[1\] is 1.7, outside \[0, 1\]"),
        (IsotonicRecalibrator(), [[0.2, 0.1], [0.7, 0.1]], [0, 1], r"X has shape \(2, 2\)"),
        (IsotonicRecalibrator(), [0.2, 0.7], [0, 0.5], r"y\[1\] is 0.5, which is not a label"),
        (IsotonicRecalibrator(), [0.2, 0.7], [None, None], "none of the 2 atoms has a label"),
        (IsotonicRecalibrator(), [0.2, 0.7], [0, 1, 1], "lengths differ"),
    ],
)
def test_impossible_learning_is_named(
    estimator: Recalibrator, p: Any, y: Any, message: str
) -> None:
    refused(message, estimator.fit, p, y)


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_unlabeled_atoms_teach_nothing(name: str) -> None:
    p, y = [0.2, 0.7, 0.4, 0.9, 0.6, 0.3], [0, 1, 1, 0, None, 1]
    learned = RECALIBRATORS[name]().fit(p, y)
    alone = RECALIBRATORS[name]().fit(p[:4] + p[5:], y[:4] + y[5:])
    np.testing.assert_array_equal(learned.predict(p), alone.predict(p))
    assert (learned.n_unlabeled_, alone.n_unlabeled_) == (1, 0)
    refused(r"y\[4\] is unlabeled", RECALIBRATORS[name]().fit, p, y, unlabeled="error")


@pytest.mark.parametrize("name", ["isotonic", "histogram", "venn_abers"])
def test_steps_learn_from_one_class_too(name: str) -> None:
    mapped = RECALIBRATORS[name]().fit([0.2, 0.7], [1, 1]).predict([0.2, 0.7])
    assert (mapped > 0.5).all()


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_the_estimator_interface(name: str) -> None:
    import pandas

    p, y = overconfident(7)
    estimator = RECALIBRATORS[name]()
    with pytest.raises(NotFittedError):
        estimator.predict(p)
    assert estimator.fit(p, y) is estimator
    flat = estimator.predict(p)
    assert estimator.transform(p).shape == (p.size,)
    column = estimator.transform(p[:, np.newaxis])
    assert column.shape == (p.size, 1)
    assert column[:, 0].tolist() == flat.tolist()
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(p)
    assert pickle.loads(pickle.dumps(estimator)).predict(p).tolist() == flat.tolist()
    frame = pandas.DataFrame({"posterior": p})
    named = clone(estimator).fit(frame, y)
    assert named.get_feature_names_out().tolist() == ["posterior"]
    assert named.predict(frame).tolist() == flat.tolist()
    # R^2 of labels is one minus the Brier score over that of the base rate.
    assert estimator.score(p, y) == pytest.approx(1 - brier(flat, y) / np.var(y), abs=1e-12)


def test_recalibrators_chain_and_are_searched() -> None:
    p, y = overconfident(8)
    chain = make_pipeline(TemperatureRecalibrator(), IsotonicRecalibrator())
    chained = chain.fit(p[:, np.newaxis], y).predict(p[:, np.newaxis])
    first = TemperatureRecalibrator().fit(p, y).transform(p)
    assert chained.tolist() == IsotonicRecalibrator().fit(first, y).predict(first).tolist()
    search = GridSearchCV(
        HistogramRecalibrator(),
        {"n_bins": [2, 5, 200]},
        scoring="neg_mean_squared_error",
        cv=GroupKFold(4),
    )
    search.fit(p[:, np.newaxis], y, groups=np.arange(p.size) // 5)
    assert search.best_params_["n_bins"] in (2, 5)
