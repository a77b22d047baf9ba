"""McNemar's test clustered by response, against statsmodels and published values."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from calibration.estimate import Difference, ScoreStatus
from calibration.grouping import group_by_response
from calibration.significance import clustered_mcnemar_counts, exact_mcnemar_by_response

# 29 psychiatrists, 135 patients (Durkalski et al. 2003): patients of whom psychiatrist and patient
# disagree, in the one and in the other direction, and patients in all.
PSYCHIATRY_ONE = [int(count) for count in "01110333100100000031120000000"]
PSYCHIATRY_TWO = [int(count) for count in "42321302242432131200021220011"]
PSYCHIATRY_ALL = [int(count) for count in "76764658473676546543544232231"]

# 21 patients, 51 glands: correct negatives of PET and of SPECT (Obuchowski 1998, table I).
PET = "000 110 111 1 110 1111 111 11 11 1 110 11 111 11 00 110 110 110 11 1 11"
SPECT = "011 111 111 1 111 1111 111 11 10 1 110 11 111 11 11 110 110 111 11 1 11"


def glands(text: str) -> list[int]:
    return [int(digit) for digit in text if digit != " "]


def clustered(first: ArrayLike, second: ArrayLike, responses: Any) -> Difference:
    """The clustered test of two judgments of each claim."""
    first_right, other, grouping = np.array(first), np.array(second), group_by_response(responses)
    return clustered_mcnemar_counts(
        grouping.sums(first_right > other), grouping.sums(first_right < other), grouping.sizes
    )


def patients() -> list[int]:
    return [patient for patient, count in enumerate(PET.split()) for _ in count]


def test_published_clustered_tests() -> None:
    # Chi-squares that Durkalski et al. 2003 print for both data sets, as the tests of the R package
    # clust.bin.pair cite them.
    psychiatry = clustered_mcnemar_counts(PSYCHIATRY_ONE, PSYCHIATRY_TWO, PSYCHIATRY_ALL)
    assert (round(psychiatry.statistic, 2), psychiatry.n) == (7.19, 29)
    thyroids = clustered(glands(PET), glands(SPECT), patients())
    assert (round(thyroids.statistic, 2), thyroids.n) == (2.86, 21)


def test_responses_of_one_claim_give_the_plain_test() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    generator = np.random.default_rng(1)
    first, second = generator.random((2, 200)) < 0.5
    only_first, only_second = (int((a & ~b).sum()) for a, b in ((first, second), (second, first)))
    table = [[0, only_first], [only_second, 0]]
    plain = mcnemar(table, exact=False, correction=False).statistic
    obuchowski = clustered(first, second, range(200))
    assert obuchowski.statistic == pytest.approx(plain * 199 / 200, rel=1e-12)


def test_a_coin_for_each_response_is_tossed_in_every_way() -> None:
    """The share of the 2^R choices of signs, counted one by one."""
    generator = np.random.default_rng(4)
    for n in range(1, 8):
        differences = generator.integers(-3, 4, n)
        sums = [
            abs(int(np.dot(signs, differences))) for signs in itertools.product([-1, 1], repeat=n)
        ]
        expected = np.mean(np.array(sums) >= abs(int(differences.sum())))
        assert exact_mcnemar_by_response(differences) == pytest.approx(expected, abs=1e-12)
    assert exact_mcnemar_by_response([0, 0]) == 1.0


def test_a_response_without_claims_is_none() -> None:
    some = clustered_mcnemar_counts([2, 0, 1], [0, 1, 0], [4, 3, 5])
    more = clustered_mcnemar_counts([2, 0, 0, 1, 0], [0, 0, 1, 0, 0], [4, 0, 3, 5, 0])
    assert (more.statistic, more.p_value, more.n) == (some.statistic, some.p_value, 3)
    # d is 2, -1 and 1: (2)^2 / (3/2 * 6), and the mean is over 12 claims.
    assert some.statistic == pytest.approx(4 / 9, rel=1e-12)
    assert some.value == pytest.approx(2 / 12, rel=1e-12)


def test_nothing_to_test_has_a_status() -> None:
    same = clustered([True, False], [True, False], ["x", "y"])
    assert (same.p_value, same.status) == (1.0, ScoreStatus.NO_VARIATION)
    alone = clustered([True, False], [False, False], ["x", "x"])
    assert math.isnan(alone.p_value)
    assert alone.status is ScoreStatus.TOO_FEW
    assert clustered_mcnemar_counts([0], [0], [0]).status is ScoreStatus.TOO_FEW
