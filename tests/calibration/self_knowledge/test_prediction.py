"""Sigma out of sample."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from calibration.intervals import student_quantile
from calibration.self_knowledge import out_of_sample, prediction_errors, sigma
from calibration.self_knowledge.prediction import PREDICTORS, out_of_sample_counts
from tests.calibration.self_knowledge.claims import in_sentence, random_records
from tests.calibration.self_knowledge.simulation import Truth, rejections, simulate_counts
from tests.refusals import refused

BALANCED = Truth(n_responses=60)


def pooled(counts: np.ndarray) -> tuple[float, float]:
    """Return sigma and factuality of counts (n_responses, 4)."""
    right, wrong_no, wrong_yes, right_no = counts.sum(axis=0)
    supported, unsupported = right + wrong_no, wrong_yes + right_no
    value = float(sigma(right / supported, right_no / unsupported))
    return value, supported / (supported + unsupported)


def test_the_mean_difference_is_over_halves() -> None:
    counts = simulate_counts(Truth(n_responses=6), 1, 0)[0]
    result = out_of_sample_counts(counts.reshape(6, 1, 2, 2), n_splits=4000)
    halves = [list(half) for half in itertools.combinations(range(6), 3)]
    differences = [
        pooled(counts[half])[0] - pooled(np.delete(counts, half, axis=0))[1] for half in halves
    ]
    # 4,000 splits of 20 equally likely ones: the mean is off by about a hundredth of the spread.
    assert result["difference"][0] == pytest.approx(
        np.mean(differences), abs=0.06 * float(np.std(differences))
    )
    assert result["rmse_sigma"][0] == pytest.approx(
        np.sqrt(np.mean(np.square(differences))), rel=0.05
    )


def test_contributions_are_those_of_reweighted_responses() -> None:
    # The standard error rests on how the mean moves with the weight of each response.
    counts = simulate_counts(Truth(n_responses=12), 1, 1)[0].reshape(12, 1, 2, 2)
    result = out_of_sample_counts(counts, n_splits=30, seed=3)
    step = 1e-5
    slopes = []
    for response in range(12):
        shifted = []
        for sign in (1, -1):
            weights = np.ones(12)
            weights[response] += sign * step
            moved = out_of_sample_counts(counts * weights[:, None, None, None], n_splits=30, seed=3)
            shifted.append(moved["difference"][0])
        slopes.append((shifted[0] - shifted[1]) / (2 * step))
    expected = np.sqrt(12 / 10 * np.square(slopes).sum())
    assert result["standard_error"][0] == pytest.approx(expected, rel=1e-6)


def test_the_table_has_every_position_and_all_predictors() -> None:
    result = out_of_sample(random_records(2, 40), n_splits=50)
    rows = result.rows()
    assert [row["position"] for row in rows][-1] == "overall"
    assert {"rmse_sigma", "rmse_rogan_gladen", "rmse_factuality"} <= set(rows[0])
    assert result["lower"][-1] < result["difference"][-1] < result["upper"][-1]
    again = out_of_sample(random_records(2, 40), n_splits=50)
    np.testing.assert_array_equal(result["difference"], again["difference"])


def test_errors_of_all_predictors_are_those_of_the_splits_with_jackknife_ends() -> None:
    counts = simulate_counts(Truth(n_responses=14), 1, 3)[0].reshape(14, 1, 2, 2)
    split = {"n_splits": 25, "seed": 4}
    rows = prediction_errors(counts, **split)  # type: ignore[arg-type]
    errors = out_of_sample_counts(counts, **split)  # type: ignore[arg-type]
    for name in PREDICTORS:
        assert rows[f"rmse_{name}"][0] == pytest.approx(errors[f"rmse_{name}"][0], abs=1e-14)
    # The jackknife, from its definition: without a response the halves lack it.
    (row,) = rows.rows()
    name = "sigma_minus_factuality"
    without = []
    for response in range(14):
        less = counts * (np.arange(14) != response)[:, None, None, None]
        each = out_of_sample_counts(less, **split)  # type: ignore[arg-type]
        without.append(each["rmse_sigma"][0] - each["rmse_factuality"][0])
    spread = np.sqrt(13 / 14 * np.square(np.array(without) - np.mean(without)).sum())
    half = float(student_quantile(0.95, 12)) * spread
    assert row[name] == pytest.approx(
        errors["rmse_sigma"][0] - errors["rmse_factuality"][0], abs=1e-14
    )
    assert row[f"{name}_upper"] - row[name] == pytest.approx(half, rel=1e-9)
    assert row["rmse_sigma_lower"] >= 0


def test_halves_without_sigma_are_left_out_and_counted() -> None:
    # A supported claim is judged in one response alone, an unsupported in another: in half of the
    # splits they are apart, and sigma of the half is 0/0.
    records = [
        *in_sentence("a", 1, 1, "S S", "true"),
        *in_sentence("b", 1, 1, "NS NS", "true"),
        *in_sentence("c", 1, 1, "IR"),
        *in_sentence("d", 1, 1, "IR"),
    ]
    result = out_of_sample(records, n_positions=1, n_splits=300)
    assert result["n_undefined"][-1] > 300
    assert np.isnan(result["standard_error"][-1])
    assert np.isnan(result["p_value"][-1])


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [300, pytest.param(1000, marks=pytest.mark.nightly)])
def test_the_test_holds_its_level_and_finds_imbalance(n_draws: int) -> None:
    def p_value(counts: np.ndarray) -> float:
        shaped = counts.reshape(counts.shape[0], 1, 2, 2)
        return float(out_of_sample_counts(shaped, n_splits=10)["p_value"][0])

    assert BALANCED.sigma == pytest.approx(BALANCED.factuality, abs=1e-15)
    tests = {"out of sample": p_value}
    level = rejections(BALANCED, tests, n_draws, seed=1)["out of sample"]
    # Draws of 0.05 are within 4 standard deviations but for one seed in fifteen thousand: 1000
    # within 0.05 +- 0.0276.
    assert abs(level - 0.05) < 4 * (0.05 * 0.95 / n_draws) ** 0.5
    # Factuality 0.6 against sigma 0.5/(0.5 + 0.1) = 0.83.
    shifted = Truth(n_responses=60, self_known=0.9, self_unknown=0.5)
    assert rejections(shifted, tests, n_draws // 5, seed=2)["out of sample"] > 0.9


def test_bad_input_is_named() -> None:
    few = random_records(5, 3)
    refused(r"there are 3 responses; .* at least 4", out_of_sample, few)
    records = random_records(5, 8)
    refused("n_splits is 0", out_of_sample, records, n_splits=0)
    refused("n_responses is 1", Truth, n_responses=1)
    refused("self_known is 1", Truth, self_known=1)


def test_the_interval_of_the_difference_stays_where_resamples_reach() -> None:
    # Student's t with two degrees of freedom would leave [-1, 1].
    counts = np.zeros((4, 1, 2, 2))
    counts[:, 0, 0] = [[0, 0], [2, 2], [1, 0], [2, 0]]
    counts[:, 0, 1] = [[9, 1], [2, 0], [1, 9], [2, 0]]
    compared = out_of_sample_counts(counts, n_splits=20)
    half = student_quantile(0.95, 2) * compared["standard_error"]
    assert float((compared["difference"] + half)[0]) > 1
    assert (
        -1
        <= float(compared["lower"][0])
        <= float(compared["difference"][0])
        <= float(compared["upper"][0])
        <= 1
    )
