"""CR2 covariance, against clubSandwich, closed forms, and what it promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibration.grouping import group_by_response
from calibration.significance import correctness_regression
from calibration.significance.small_sample import cr2_covariance
from tests.calibration.references import of_r, r_values
from tests.calibration.significance.test_regression import rows
from tests.refusals import refused


def design() -> tuple[Any, Any, Any]:
    data = of_r()
    x = np.array(data["x"])
    return (
        np.c_[np.ones_like(x), x], np.array(data["y"], float), group_by_response(data["response"])
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "correlation"), [("linear", 0.0), ("exchangeable", 0.2), ("logistic", 0.0)]
)
def test_errors_and_degrees_are_those_of_clubsandwich(name: str, correlation: float) -> None:
    columns, y, grouping = design()
    coefficient = np.array(r_values("clubSandwich", f"{name}_coefficient"))
    mean = columns @ coefficient
    variance = np.ones_like(y)
    if name == "logistic":
        mean = 1 / (1 + np.exp(-mean))
        variance = mean * (1 - mean)
        columns = columns * variance[:, np.newaxis]
    found = cr2_covariance(columns, y - mean, variance, correlation, grouping)
    errors = r_values("clubSandwich", f"{name}_standard_error")
    # Decompositions of matrices of up to 13 rows by other code.
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), errors, rtol=1e-8)
    degrees = r_values("clubSandwich", f"{name}_degrees")
    np.testing.assert_allclose(found.degrees, degrees, rtol=1e-7)


def test_of_single_rows_it_is_hc2_with_the_degrees_of_bell_and_mccaffrey() -> None:
    from statsmodels.regression.linear_model import OLS

    # Imbens and Kolesar 2016, section 3: a mean of 3 against one of 27, homoskedastic.
    treated = np.arange(30) < 3
    columns = np.c_[np.ones(30), treated]
    y = np.random.default_rng(0).normal(size=30)
    fit = OLS(y, columns).fit(cov_type="HC2")
    found = cr2_covariance(
        columns, np.asarray(fit.resid), np.ones(30), 0.0, group_by_response(range(30))
    )
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), fit.bse, rtol=1e-10)
    few, many = 3, 27
    expected = (
        (few + many) ** 2 * (few - 1) * (many - 1) / (many**2 * (many - 1) + few**2 * (few - 1))
    )
    # They print 2.5.
    assert found.degrees[1] == pytest.approx(expected, rel=1e-9)
    assert round(found.degrees[1], 1) == 2.5


def test_it_is_unbiased_where_the_working_model_holds() -> None:
    columns, _, grouping = design()
    correlation, n = 0.3, columns.shape[0]
    index = grouping.index
    errors = np.where(index[:, np.newaxis] == index, correlation, 0.0)
    np.fill_diagonal(errors, 1.0)
    weights = np.linalg.inv(errors)
    bread = np.linalg.inv(columns.T @ weights @ columns)
    maker = np.eye(n) - columns @ bread @ columns.T @ weights
    values, vectors = np.linalg.eigh(maker @ errors @ maker.T)
    # A quadratic form's mean is the sum of its values at scaled eigenvectors of the covariance.
    mean = sum(
        cr2_covariance(
            columns, np.sqrt(max(value, 0)) * vector, np.ones(n), correlation, grouping
        ).covariance
        for value, vector in zip(values, vectors.T, strict=True)
    )
    np.testing.assert_allclose(mean, bread, rtol=1e-6)


def test_gee_holds_its_level_with_few_responses_where_the_sandwich_does_not() -> None:
    n_runs, rejected = 100, {"cr2": 0, "robust": 0}
    for seed in range(n_runs):
        generator = np.random.default_rng(seed)
        responses = np.repeat(np.arange(10), 6)
        treated = (responses < 3).astype(float)
        level = generator.normal(0, 0.7, 10)[responses]
        correct = generator.random(60) < 1 / (1 + np.exp(-level))
        for errors in rejected:
            result = correctness_regression(correct, treated, responses, errors=errors)
            rejected[errors] += result.p_value[1] < 0.05
    # 5 % of 100 is 5, with a standard deviation of 2.2; the plain sandwich rejects thrice as often.
    assert rejected["cr2"] <= 5 + 3 * 2.2
    assert rejected["robust"] > rejected["cr2"] + 5


def test_gee_takes_them_and_the_other_errors_on_demand() -> None:
    data = rows(3, n_responses=12)
    found = {
        errors: correctness_regression(**data, errors=errors)
        for errors in ("cr2", "robust", "mancl-derouen")
    }
    assert np.isfinite(found["cr2"].degrees).all()
    assert (found["cr2"].degrees < 12).all()
    assert np.isinf(found["robust"].degrees).all()
    # The sandwich is too small in the mean, Mancl and DeRouen's too large.
    plain, mended, more = (found[name].standard_error for name in (
        "robust", "cr2", "mancl-derouen"))  # fmt: skip
    assert (plain < mended).all()
    assert (mended < more).all()
    refused("errors is 'hc3'; choose one of cr2", correctness_regression, **data, errors="hc3")
