"""Tests of two methods that may have judged other claims of the same responses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibration.grouping import group_by_response
from calibration.scores.definition import JudgedClaims
from calibration.scores.registry import response_k
from calibration.significance import compare_judged, compare_methods, paired_permutation
from factormodels.errors import InputError
from tests.calibration.significance.test_table import data
from tests.refusals import refused


def judged(given: dict[str, Any], name: str, kept: Any = slice(None)) -> JudgedClaims:
    grouping = group_by_response(given["responses"][kept])
    p, y = given["methods"][name][kept], given["y"][kept].astype(float)
    return JudgedClaims(p, y, grouping, response_k("median", grouping))


@pytest.mark.parametrize("test", ["permutation", "bootstrap"])
@pytest.mark.parametrize("measure", ["brier", "precision", "f1"])
@pytest.mark.parametrize("alternative", ["two-sided", "better"])
def test_of_the_same_claims_it_is_the_test_of_the_table(
    test: str, measure: str, alternative: str
) -> None:
    given = data(3)
    how: dict[str, Any] = {"test": test, "alternative": alternative, "n_resamples": 500}
    table = compare_methods(**given, reference="blunt", measures=[measure], **how)
    (found,) = compare_judged(judged(given, "sharp"), judged(given, "blunt"), [measure], **how)
    cell = table.cell("sharp", measure)
    assert (found.difference, found.p_value) == (cell.difference, cell.p_value)
    assert (found.lower, found.upper) == (cell.difference_lower, cell.difference_upper)


def test_other_claims_are_compared_by_response() -> None:
    given = data(4)
    first_of_each = np.unique(given["responses"], return_index=True)[1]
    part, whole = judged(given, "sharp", first_of_each), judged(given, "sharp")
    (found,) = compare_judged(part, whole, ["precision"], n_resamples=500)
    means = [one.grouping.means(one.supported) for one in (part, whole)]
    expected = paired_permutation(means[0], means[1], np.arange(30), n_permutations=500)
    assert found.difference == pytest.approx(expected.estimate, rel=1e-12)
    # One number per response: to swap the methods is to swap these.
    assert found.p_value == expected.p_value
    # Pooled, each side is over its own number of claims.
    (found,) = compare_judged(part, whole, ["brier"], n_resamples=500)
    losses = [float(((one.p - one.y) ** 2).mean()) for one in (part, whole)]
    assert found.difference == pytest.approx(losses[0] - losses[1], rel=1e-12)


def test_other_responses_are_refused() -> None:
    given = data(5)
    fewer = judged(given, "sharp", given["responses"] > 0)
    refused("judge different responses", compare_judged, fewer, judged(given, "sharp"), ["brier"])
    with pytest.raises(InputError, match="pooled"):
        compare_judged(judged(given, "same"), judged(given, "sharp"), ["brier"], test="t")
