"""Two conditions on the same responses, such as RAG against no RAG."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.self_knowledge import (
    ClaimRecord,
    IntervalSettings,
    compare_conditions,
    label_positions,
    self_knowledge,
)
from calibration.significance import adjust
from factormodels.errors import InputError
from tests.calibration.self_knowledge.claims import in_sentence, random_records
from tests.refusals import refused

DELTA = IntervalSettings("delta")


def test_each_condition_is_what_its_own_tables_say() -> None:
    first, second = random_records(0, 20), random_records(1, 20)
    result = compare_conditions(first, second[::-1], intervals=DELTA)
    for records, made in ((first, result.first), (second, result.second)):
        labels = label_positions(records, intervals=DELTA)
        knowledge = self_knowledge(records, intervals=DELTA)
        for name, estimates in made.items():
            table = knowledge if name in knowledge.quantities else labels
            if name == "factuality":
                table = labels
            own = knowledge["factuality"] if name == "judged_factuality" else table[name]
            np.testing.assert_allclose(estimates.estimate, own.estimate, atol=1e-12)
    for name, difference in result.difference.items():
        expected = result.second[name].estimate - result.first[name].estimate
        np.testing.assert_allclose(difference.estimate, expected, atol=1e-12)
    assert result.n_responses == 20
    assert result.n_dropped == 0


def test_a_paired_mean_difference_is_students_t() -> None:
    from scipy.stats import ttest_rel

    # One sentence per response, so that numbers of claims are numbers per response.
    generator = np.random.default_rng(2)
    counts = generator.integers(1, 8, (2, 15))
    first, second = (
        [
            record
            for response, count in enumerate(condition)
            for record in in_sentence(f"r{response}", 1, 1, "NS " * count)
        ]
        for condition in counts
    )
    result = compare_conditions(first, second, None, n_positions=1, intervals=DELTA)
    reference = ttest_rel(counts[1], counts[0])
    assert result.p_value["unsupported_number"][-1] == pytest.approx(reference.pvalue, abs=1e-12)
    interval = reference.confidence_interval(0.95)
    difference = result.difference["unsupported_number"]
    assert difference.lower[-1] == pytest.approx(interval.low, abs=1e-12)
    assert difference.upper[-1] == pytest.approx(interval.high, abs=1e-12)


def test_pairing_narrows_the_interval_of_conditions_that_go_together() -> None:
    def condition(shift: int) -> list[ClaimRecord]:
        generator = np.random.default_rng(3)
        sizes = generator.integers(2, 30, 25) + shift
        return [
            record
            for response, size in enumerate(sizes)
            for record in in_sentence(f"r{response}", 1, 1, "S " * (size + response % 2))
        ]

    for settings in (DELTA, IntervalSettings(n_bootstrap=200)):
        result = compare_conditions(
            condition(0), condition(3), None, n_positions=1, intervals=settings
        )
        difference = result.difference["supported_number"]
        assert difference.estimate[-1] == pytest.approx(3.0, abs=1e-12)
        # Every response has exactly three more: nothing varies, and no interval is claimed.
        assert math.isnan(difference.lower[-1])
        single = result.first["supported_number"]
        assert single.upper[-1] - single.lower[-1] > 5


def test_p_values_are_corrected_apart_for_bins_and_overall() -> None:
    result = compare_conditions(random_records(4, 30), random_records(5, 30), intervals=DELTA)
    table = np.array([result.p_value[name] for name in result.difference])
    overall = np.array([result.corrected[name][-1] for name in result.difference])
    np.testing.assert_allclose(overall, adjust(table[:, -1]))
    bins = np.array([result.corrected[name][:-1] for name in result.difference])
    np.testing.assert_allclose(bins.ravel(), adjust(table[:, :-1].ravel()))
    rows = result.rows()
    assert len(rows) == len(result.difference) * 6
    assert rows[0]["n_responses"] == 30


def test_unpaired_responses_are_refused_or_dropped_and_counted() -> None:
    first = [*in_sentence("x", 1, 1, "S NS", "true"), *in_sentence("y", 1, 1, "S", "true")]
    second = [*in_sentence("y", 1, 1, "S NS", "true"), *in_sentence("z", 1, 1, "S", "true")]
    with pytest.raises(InputError, match="response 'x' is in one condition alone, as are 2 in all"):
        compare_conditions(first, second)
    result = compare_conditions(first, second, None, unpaired="drop", intervals=DELTA)
    assert (result.n_responses, result.n_dropped) == (1, 2)
    with pytest.raises(InputError, match="no response in common"):
        compare_conditions(first, in_sentence("w", 1, 1, "S"), unpaired="drop")
    refused("unpaired is 'keep'", compare_conditions, first, second, unpaired="keep")
    refused("records is empty", compare_conditions, first, [])
