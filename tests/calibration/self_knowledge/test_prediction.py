"""Sigma out of sample, and where the factuality shifts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from calibration.intervals import student_quantile
from calibration.self_knowledge import (
    Truth,
    label_shift,
    out_of_sample,
    prediction_errors,
    rejections,
    rogan_gladen,
    sigma,
    transfer_errors,
)
from calibration.self_knowledge.balance import judged_counts
from calibration.self_knowledge.claims import as_claims
from calibration.self_knowledge.prediction import PREDICTORS, out_of_sample_counts
from calibration.self_knowledge.simulation import simulate_counts
from factormodels.errors import InputError
from factormodels.io.claim_records import Setting
from tests.calibration.self_knowledge.claims import in_sentence, random_records
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
    assert {"rmse_sigma", "rmse_rogan_gladen", "rmse_emq", "rmse_factuality"} <= set(rows[0])
    assert result["lower"][-1] < result["difference"][-1] < result["upper"][-1]
    again = out_of_sample(random_records(2, 40), n_splits=50)
    np.testing.assert_array_equal(result["difference"], again["difference"])


def test_errors_of_all_predictors_are_those_of_the_splits_with_jackknife_ends() -> None:
    counts = simulate_counts(Truth(n_responses=14), 1, 3)[0].reshape(14, 1, 2, 2)
    split = {"n_splits": 25, "seed": 4}
    found = prediction_errors(counts, **split)  # type: ignore[arg-type]
    errors = out_of_sample_counts(counts, **split)  # type: ignore[arg-type]
    for name in PREDICTORS:
        assert found[f"rmse_{name}"][0] == pytest.approx(errors[f"rmse_{name}"][0], abs=1e-14)
    # The jackknife, from its definition: without a response the halves lack it.
    (row,) = found.rows()
    name = "sigma_less_emq"
    without = []
    for response in range(14):
        less = counts * (np.arange(14) != response)[:, None, None, None]
        each = out_of_sample_counts(less, **split)  # type: ignore[arg-type]
        without.append(each["rmse_sigma"][0] - each["rmse_emq"][0])
    spread = np.sqrt(13 / 14 * np.square(np.array(without) - np.mean(without)).sum())
    half = float(student_quantile(0.95, 12)) * spread
    assert row[name] == pytest.approx(errors["rmse_sigma"][0] - errors["rmse_emq"][0], abs=1e-14)
    assert row[f"{name}_upper"] - row[name] == pytest.approx(half, rel=1e-9)
    assert row["rmse_sigma_lower"] >= 0


def test_errors_of_a_transfer_are_those_of_the_formulas() -> None:
    here = simulate_counts(Truth(n_responses=30), 1, 5)[0].reshape(30, 2, 2)
    there = simulate_counts(Truth(factuality=0.3, n_responses=30), 1, 6)[0].reshape(30, 2, 2)
    (row,) = transfer_errors(here, there).rows()
    flat = here.sum(axis=0)
    known, unknown = flat[0, 0] / flat[0].sum(), flat[1, 1] / flat[1].sum()
    aim = there[:, 0].sum() / there.sum()
    judged = there[:, :, 0].sum() / there.sum()
    assert row["target"] == pytest.approx(aim, abs=1e-14)
    assert row["sigma"] == pytest.approx(float(sigma(known, unknown)) - aim, abs=1e-14)
    assert row["factuality"] == pytest.approx(flat[0].sum() / flat.sum() - aim, abs=1e-14)
    value = float(rogan_gladen(judged, known, unknown))
    assert row["rogan_gladen"] == pytest.approx(value - aim, abs=1e-12)
    # One law of judgements: what follows them is right, and what does not is off by the shift.
    assert row["emq_lower"] < 0 < row["emq_upper"]
    assert row["sigma_lower"] > 0
    assert row["factuality_lower"] > 0


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
def test_the_test_holds_its_level_and_finds_imbalance() -> None:
    def p_value(counts: np.ndarray) -> float:
        shaped = counts.reshape(counts.shape[0], 1, 2, 2)
        return float(out_of_sample_counts(shaped, n_splits=10)["p_value"][0])

    assert BALANCED.sigma == pytest.approx(BALANCED.factuality, abs=1e-15)
    tests = {"out of sample": p_value}
    level = rejections(BALANCED, tests, 1000, seed=1)["out of sample"]
    # 1000 draws of 0.05 are within 0.05 +- 0.0276 but for one seed in fifteen thousand (4 sd).
    assert abs(level - 0.05) < 0.0276
    # Factuality 0.6 against sigma 0.5/(0.5 + 0.1) = 0.83.
    shifted = Truth(n_responses=60, self_known=0.9, self_unknown=0.5)
    assert rejections(shifted, tests, 200, seed=2)["out of sample"] > 0.9


def test_sigma_stays_where_it_is_under_label_shift_and_the_others_follow() -> None:
    records = random_records(3, 150, missing=0.0)
    grid = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    shift = label_shift(records, prevalences=grid, n_splits=100)

    def of(column: str, name: str) -> np.ndarray:
        values: np.ndarray = shift[column][shift["predictor"] == name]
        return values

    assert np.ptp(of("mean", "sigma")) == 0
    assert np.ptp(of("mean", "factuality")) == 0
    for name in ("rogan_gladen", "emq"):
        # The law of judgements is known to about 0.1 from half of 150 responses.
        np.testing.assert_allclose(of("mean", name), grid, atol=0.08)
        assert (of("root_mean_square_error", name) < 0.3).all()
    far = of("root_mean_square_error", "sigma")
    assert far[0] > 0.3
    assert far[-1] > 0.3
    assert (of("lower", "emq") <= of("mean", "emq")).all()
    assert (of("mean", "emq") <= of("upper", "emq")).all()
    assert len(shift.rows()) == 4 * 5
    assert len(label_shift(records, n_splits=2)) == 4 * 19


def test_shift_to_the_factuality_of_the_half_is_no_shift() -> None:
    records = random_records(4, 20, missing=0.0)
    counts = judged_counts(as_claims(records), Setting.NONE_OF_THE_ABOVE, 1, "incorrect")[:, -1]
    totals = counts.sum(axis=(0, 2))
    factuality = totals[0] / totals.sum()
    shifted = label_shift(records, prevalences=[factuality], n_splits=200)
    plain = out_of_sample(records, n_positions=1, n_splits=200)
    # The same splits; that each half has another factuality of its own moves the error a little.
    assert shifted.to_frame().set_index("predictor").root_mean_square_error["emq"] == pytest.approx(
        plain["rmse_emq"][-1], rel=0.3
    )


def test_bad_input_is_named() -> None:
    few = random_records(5, 3)
    refused(r"there are 3 responses; .* at least 4", out_of_sample, few)
    records = random_records(5, 8)
    refused("n_splits is 0", out_of_sample, records, n_splits=0)
    with pytest.raises(InputError, match=r"prevalences\[1\] is 1.5, outside \[0, 1\]"):
        label_shift(records, prevalences=[0.5, 1.5])
    refused("n_responses is 1", Truth, n_responses=1)
    refused("self_known is 1", Truth, self_known=1)


def test_the_interval_of_the_difference_stays_where_resamples_reach() -> None:
    # Student's t with two degrees of freedom would leave [-1, 1].
    counts = np.zeros((4, 1, 2, 2))
    counts[:, 0, 0] = [[0, 0], [2, 2], [1, 0], [2, 0]]
    counts[:, 0, 1] = [[9, 1], [2, 0], [1, 9], [2, 0]]
    found = out_of_sample_counts(counts, n_splits=20)
    half = student_quantile(0.95, 2) * found["standard_error"]
    assert float((found["difference"] + half)[0]) > 1
    assert (
        -1
        <= float(found["lower"][0])
        <= float(found["difference"][0])
        <= float(found["upper"][0])
        <= 1
    )
