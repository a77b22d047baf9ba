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
from calibration.tabular import Frame
from factormodels.errors import InputError
from tests.calibration.self_knowledge.claims import in_sentence, random_records
from tests.refusals import refused

DELTA = IntervalSettings("delta")


def part(frame: Frame, column: str, quantity: str) -> np.ndarray:
    """Return a column of one quantity, (n_cells,)."""
    values: np.ndarray = frame[column][frame["quantity"] == quantity]
    return values


def test_each_condition_is_what_its_own_tables_say() -> None:
    first, second = random_records(0, 20), random_records(1, 20)
    result = compare_conditions(first, second[::-1], intervals=DELTA)
    names = dict.fromkeys(result["quantity"].tolist())
    for records, column in ((first, "first"), (second, "second")):
        labels = label_positions(records, intervals=DELTA)
        knowledge = self_knowledge(records, intervals=DELTA)
        for name in names:
            table = knowledge if name in knowledge.quantities else labels
            if name == "factuality":
                table = labels
            reference = knowledge["factuality"] if name == "judged_factuality" else table[name]
            np.testing.assert_allclose(part(result, column, name), reference.estimate, atol=1e-12)
    expected = result["second"] - result["first"]
    np.testing.assert_allclose(result["difference"], expected, atol=1e-12)
    assert (result["n_responses"] == 20).all()
    assert not result["n_dropped"].any()


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
    assert part(result, "p_value", "unsupported_number")[-1] == pytest.approx(
        reference.pvalue, abs=1e-12
    )
    interval = reference.confidence_interval(0.95)
    for column, end in (("lower", interval.low), ("upper", interval.high)):
        assert part(result, column, "unsupported_number")[-1] == pytest.approx(end, abs=1e-12)


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
        difference = part(result, "difference", "supported_number")
        assert difference[-1] == pytest.approx(3.0, abs=1e-12)
        # Every response has exactly three more: nothing varies, and no interval is claimed.
        assert math.isnan(part(result, "lower", "supported_number")[-1])
        unpaired = label_positions(condition(0), n_positions=1, intervals=settings)[
            "supported_number"
        ]
        assert unpaired.upper[-1] - unpaired.lower[-1] > 5


def test_p_values_are_corrected_apart_for_bins_and_overall() -> None:
    result = compare_conditions(random_records(4, 30), random_records(5, 30), intervals=DELTA)
    overall = result["position"] == "overall"
    for cells in (overall, ~overall):
        np.testing.assert_allclose(result["corrected"][cells], adjust(result["p_value"][cells]))
    rows = result.rows()
    assert len(rows) == overall.sum() * 6
    assert rows[0]["n_responses"] == 30


def test_unpaired_responses_are_refused_or_dropped_and_counted() -> None:
    first = [*in_sentence("x", 1, 1, "S NS", "true"), *in_sentence("y", 1, 1, "S", "true")]
    second = [*in_sentence("y", 1, 1, "S NS", "true"), *in_sentence("z", 1, 1, "S", "true")]
    with pytest.raises(InputError, match="response 'x' is in only one condition, as are 2 in all"):
        compare_conditions(first, second)
    result = compare_conditions(first, second, None, unpaired="drop", intervals=DELTA)
    assert (result["n_responses"][0], result["n_dropped"][0]) == (1, 2)
    with pytest.raises(InputError, match="no response in common"):
        compare_conditions(first, in_sentence("w", 1, 1, "S"), unpaired="drop")
    refused("unpaired is 'keep'", compare_conditions, first, second, unpaired="keep")
    refused("records is empty", compare_conditions, first, [])
