"""Vector scaling: the optimum against SciPy's, known parameters, folds of responses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from calibration.label_bias import (
    VectorScaling,
    cross_fit_scaling,
    fit_vector_scaling,
    label_scores,
    without_bias,
)
from factormodels.errors import InputError


def drawn(
    n: int, weights: ArrayLike, constants: ArrayLike, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Answers whose labels follow softmax(weights * ln p + constants)."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.7, 0.7, 0.7], n)
    # Dirichlet draws may round to 0.
    p = np.maximum(p, 1e-6) / np.maximum(p, 1e-6).sum(axis=1, keepdims=True)
    truth = softmax(np.log(p) * np.asarray(weights) + np.asarray(constants), axis=1)
    y = (rng.random(n)[:, np.newaxis] > truth.cumsum(axis=1)).sum(axis=1)
    return p, np.minimum(y, 2)


def test_the_optimum_is_that_of_a_general_optimizer() -> None:
    p, y = drawn(80, [0.5, 1.2, 0.8], [1.0, -1.0, 0.0], 1)

    def loss(values: NDArray[np.float64]) -> float:
        logits = np.log(p) * values[:3] + values[3:]
        likelihood = (logits[np.arange(80), y] - logsumexp(logits, axis=1)).sum()
        away = values - np.array([1, 1, 1, 0, 0, 0])
        return float(-likelihood + 0.5 * away @ away)

    best = minimize(loss, np.array([1.0, 1, 1, 0, 0, 0]), method="BFGS", options={"gtol": 1e-9})
    fitted = fit_vector_scaling(p, y)
    # BFGS ends with differences of gradients of 1e-8.
    assert np.array(fitted.weights) == pytest.approx(best.x[:3], abs=1e-5)
    assert np.array(fitted.constants) == pytest.approx(best.x[3:] - best.x[3:].mean(), abs=1e-5)


def test_a_known_map_is_recovered() -> None:
    weights, constants = np.array([0.4, 0.9, 0.6]), np.array([1.5, -2.0, 0.5])
    fitted = fit_vector_scaling(*drawn(20_000, weights, constants, 2))
    # Three standard deviations of the rarest label's weight, .06 over simulations.
    assert np.array(fitted.weights) == pytest.approx(weights, abs=0.18)
    assert np.array(fitted.constants) == pytest.approx(constants, abs=0.18)


def test_the_identity_leaves_answers_as_they_are() -> None:
    p = np.random.default_rng(3).dirichlet([1.0, 1.0, 1.0], 10)
    assert VectorScaling((1.0,) * 3, (0.0,) * 3).apply(p) == pytest.approx(p, rel=1e-12)


def test_division_by_a_bias_is_a_scaling() -> None:
    p, bias = np.random.default_rng(4).dirichlet([1.0, 1.0, 1.0], 10), np.array([0.2, 0.7, 0.1])
    scaled = VectorScaling((1.0,) * 3, tuple((-np.log(bias)).tolist())).apply(p)
    assert scaled == pytest.approx(without_bias(p, bias), rel=1e-12)


def test_labels_that_answers_separate_have_a_finite_map() -> None:
    fitted = fit_vector_scaling(np.eye(3) * 0.7 + 0.1, [0, 1, 2])
    assert np.isfinite([*fitted.weights, *fitted.constants]).all()
    # A label that never occurs becomes less likely, not impossible.
    once = fit_vector_scaling([[0.4, 0.3, 0.3]] * 20, [0] * 20)
    assert 0 < once.apply([[0.4, 0.3, 0.3]])[0, 2] < 0.3


def test_a_fold_never_sees_its_own_labels() -> None:
    p, y = drawn(120, [0.5, 0.5, 0.5], [2.0, -2.0, 0.0], 5)
    responses = np.repeat(np.arange(24), 5)
    fitted = cross_fit_scaling(p, y, responses, n_folds=6)
    for response in range(24):
        assert len(set(fitted.folds[responses == response].tolist())) == 1
    out = fitted.folds == 0
    again = fit_vector_scaling(p[~out], y[~out])
    # Both fits end at the optimum, up to rounding.
    assert fitted.p[out] == pytest.approx(again.apply(p[out]), rel=1e-12)
    assert label_scores(fitted.p, y).log_loss < label_scores(p, y).log_loss


def test_impossible_fits_are_refused() -> None:
    with pytest.raises(InputError, match="one response"):
        cross_fit_scaling([[0.5, 0.5]] * 2, [0, 1], ["r", "r"])
    with pytest.raises(InputError, match="penalty is 0"):
        fit_vector_scaling([[0.5, 0.5]], [0], penalty=0)
    with pytest.raises(InputError, match="2 labels and the scaling 3 labels"):
        VectorScaling((1.0,) * 3, (0.0,) * 3).apply([[0.5, 0.5]])
