"""Regression of correctness on position and method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration.grouping import group_by_response
from calibration.learned_priors.objectives import differences
from calibration.significance import RegressionStatus, correctness_regression
from calibration.significance.mixed_logistic import fit_mixed_logistic, log_likelihood
from factormodels.errors import InputError
from tests.refusals import refused

EFFECTS = {"intercept": 0.4, "position": -0.9, "method=b": 0.6}


def rows(seed: int, n_responses: int = 60, spread: float = 0.8) -> dict[str, Any]:
    """Return the claims of responses judged by methods a and b; levels of responses vary."""
    generator = np.random.default_rng(seed)
    response = np.tile(np.repeat(np.arange(n_responses), 12), 2)
    position = np.tile(np.arange(1, 13) / 12, 2 * n_responses)
    method = np.repeat(["a", "b"], 12 * n_responses)
    level = generator.normal(0, spread, n_responses)[response]
    logit = (
        EFFECTS["intercept"]
        + EFFECTS["position"] * position
        + EFFECTS["method=b"] * (method == "b")
        + level
    )
    correct = generator.random(response.size) < 1 / (1 + np.exp(-logit))
    return {
        "correct": correct, "position": position, "responses": response, "methods": method,
    }  # fmt: skip


def test_gee_is_that_of_statsmodels() -> None:
    from statsmodels.genmod.cov_struct import Exchangeable
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_estimating_equations import GEE

    data = rows(0)
    result = correctness_regression(**data, errors="robust")
    design = np.c_[np.ones(data["position"].size), data["position"], data["methods"] == "b"]
    reference = GEE(
        data["correct"].astype(float),
        design,
        data["responses"],
        family=Binomial(),
        cov_struct=Exchangeable(),
    ).fit(maxiter=200)
    assert result.terms == ("intercept", "position", "method=b")
    np.testing.assert_allclose(result.coefficient, reference.params, atol=1e-9)
    np.testing.assert_allclose(result.standard_error, reference.bse, atol=1e-9)
    np.testing.assert_allclose(result.p_value, reference.pvalues, atol=1e-9)
    np.testing.assert_allclose(np.c_[result.lower, result.upper], reference.conf_int(), atol=1e-8)
    assert result.status is RegressionStatus.CONVERGED
    assert result.reference == "a"
    assert (result.n_rows, result.n_responses) == (1440, 60)


def test_mixed_linear_is_that_of_statsmodels() -> None:
    from statsmodels.regression.mixed_linear_model import MixedLM

    data = rows(1)
    result = correctness_regression(**data, model="mixed-linear")
    design = np.c_[np.ones(data["position"].size), data["position"], data["methods"] == "b"]
    reference = MixedLM(data["correct"].astype(float), design, data["responses"]).fit(
        method=["powell"]
    )
    # Two optimisers of one likelihood, flat at its top.
    np.testing.assert_allclose(result.coefficient, reference.fe_params, atol=1e-5)
    np.testing.assert_allclose(result.standard_error, reference.bse_fe, rtol=1e-3)
    assert 0.05 < result.correlation < 0.3


def test_mixed_logistic_likelihood_is_the_integral() -> None:
    from scipy.integrate import quad
    from scipy.stats import norm

    data = rows(2, n_responses=3)
    outcome = data["correct"].astype(float)
    design = np.c_[np.ones(outcome.size), data["position"]]
    grouping = group_by_response(data["responses"])
    for spread in (0.3, 0.8, 2.5):
        parameters = np.array([0.4, -0.9, spread])
        value, gradient = log_likelihood(parameters, outcome, design, grouping)
        expected = 0.0
        for response in range(3):
            own = grouping.index == response
            sign, linear = 2 * outcome[own] - 1, design[own] @ parameters[:2]

            def integrand(
                level: float, sign: Any = sign, linear: Any = linear, spread: float = spread
            ) -> float:
                logits = sign * (linear + spread * level)
                return float(np.exp(-np.logaddexp(0, -logits).sum()) * norm.pdf(level))

            expected += math.log(quad(integrand, -12, 12, points=[-1, 0, 1], epsabs=0)[0])
        # Fifteen nodes around each mode.
        assert value == pytest.approx(expected, abs=1e-6)
        slopes = differences(
            lambda x: log_likelihood(x, outcome, design, grouping)[0], parameters, 1e-5
        )
        # The gradient is of the integral, the difference of its quadrature.
        np.testing.assert_allclose(slopes, gradient, rtol=0, atol=1e-4)


@pytest.mark.parametrize("model", ["gee", "mixed-logistic"])
@pytest.mark.slow
def test_effects_are_recovered_with_honest_standard_errors(model: str) -> None:
    replicates = 60
    truth = np.array(list(EFFECTS.values()))
    if model == "gee":
        # Averaged over levels of spread s, log odds shrink by sqrt(1 + 0.346 s^2) (Zeger, Liang
        # and Albert 1988); an approximation, good to 0.02 here.
        truth = truth / math.sqrt(1 + 0.346 * 0.8**2)
    scores = []
    for seed in range(replicates):
        result = correctness_regression(**rows(100 + seed), model=model)
        scores.append((result.coefficient - truth) / result.standard_error)
    # Means and spreads of 60 standard normal scores: within four standard deviations, 1/sqrt(60)
    # and 1/sqrt(120).
    np.testing.assert_allclose(np.mean(scores, axis=0), 0, atol=0.52)
    np.testing.assert_allclose(np.std(scores, axis=0), 1, atol=0.37)


def test_a_naive_regression_is_too_sure_of_effects_between_responses() -> None:
    from statsmodels.discrete.discrete_model import Logit

    data = rows(3, spread=1.2)
    # Methods on different responses, so that their levels do not cancel.
    keep = (data["methods"] == "a") == (data["responses"] % 2 == 0)
    data = {name: values[keep] for name, values in data.items()}
    design = np.c_[np.ones(keep.sum()), data["position"], data["methods"] == "b"]
    naive = Logit(data["correct"].astype(float), design).fit(disp=False).bse[2]
    for model in ("gee", "mixed-logistic"):
        assert correctness_regression(**data, model=model).standard_error[2] > 1.3 * naive


def test_interaction_and_reference() -> None:
    data = rows(4)
    result = correctness_regression(**data, interaction=True, reference="b")
    assert result.terms == ("intercept", "position", "method=a", "position:method=a")
    assert result.reference == "b"
    plain = correctness_regression(**data)
    swapped = correctness_regression(**data, reference="b")
    assert swapped.coefficient[2] == pytest.approx(-plain.coefficient[2], abs=1e-6)
    single = correctness_regression(data["correct"], data["position"], data["responses"])
    assert single.terms == ("intercept", "position")
    assert single.reference is None
    assert single.rows()[1]["term"] == "position"


@pytest.mark.parametrize("model", ["mixed-linear", "mixed-logistic"])
def test_no_variance_between_responses_is_a_status(model: str) -> None:
    # Every response has the same outcomes: less variance between them than chance gives.
    responses = np.repeat(np.arange(20), 8)
    correct = np.tile([True, False, True, True, False, False, True, False], 20)
    position = np.tile(np.arange(1, 9) / 8, 20)
    result = correctness_regression(correct, position, responses, model=model)
    assert result.status is RegressionStatus.BOUNDARY
    assert result.correlation == 0.0
    assert (result.standard_error > 0).all()


def test_mixed_logistic_does_not_depend_on_the_order_of_rows() -> None:
    data = rows(5, n_responses=20)
    order = np.random.default_rng(0).permutation(data["correct"].size)
    fits = []
    for place in (slice(None), order):
        design = np.c_[np.ones(order.size), data["position"]][place]
        outcome = data["correct"].astype(float)[place]
        fits.append(
            fit_mixed_logistic(outcome, design, group_by_response(data["responses"][place]))
        )
    np.testing.assert_allclose(fits[0].coefficient, fits[1].coefficient, atol=1e-4)
    assert fits[0].spread == pytest.approx(fits[1].spread, abs=1e-4)


def test_bad_input_is_named() -> None:
    data = rows(6, n_responses=4)
    with pytest.raises(InputError, match="correct is True in every row"):
        correctness_regression(np.ones(4, dtype=bool), [0.1, 0.2, 0.3, 0.4], [1, 1, 2, 2])
    refused(r"correct\[1\] is missing", correctness_regression, [True, None], [0.1, 0.2], [1, 2])
    with pytest.raises(InputError, match="cannot tell intercept, position apart"):
        correctness_regression([True, False], [0.5, 0.5], [1, 2])
    refused("holds one response", correctness_regression, [True, False], [0.5, 0.7], [1, 1])
    refused("reference is 'c'", correctness_regression, **data, reference="c")
    refused("model is 'glm'; choose one of gee", correctness_regression, **data, model="glm")
    with pytest.raises(InputError, match="methods has 2"):
        correctness_regression(data["correct"], data["position"], data["responses"], ["a", "b"])
