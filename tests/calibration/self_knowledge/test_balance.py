"""The in-sample test of sigma = factuality."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from calibration.grouping import group_by_response
from calibration.self_knowledge import SigmaStatus, in_sample_balance, self_knowledge
from calibration.self_knowledge.balance import judged_counts
from calibration.self_knowledge.claims import as_claims
from calibration.significance import adjust, clustered_mcnemar_counts
from factormodels.io.claim_records import Setting
from tests.calibration.self_knowledge.claims import claim, in_sentence, random_records


def test_sigma_and_factuality_are_those_of_the_table() -> None:
    records = random_records(0)
    balance, table = in_sample_balance(records), self_knowledge(records)
    np.testing.assert_allclose(balance["sigma"], table["sigma"].estimate, atol=1e-15)
    np.testing.assert_allclose(balance["factuality"], table["factuality"].estimate, atol=1e-15)
    odds = (
        balance["sigma"]
        / (1 - balance["sigma"])
        / (balance["factuality"] / (1 - balance["factuality"]))
    )
    np.testing.assert_allclose(
        odds, balance["false_positives"] / balance["false_negatives"], rtol=1e-12
    )
    assert balance["position"][-1] == "overall"
    assert balance["n_claims"][-1] == balance["n_claims"][:-1].sum()


def test_p_values_agree_with_statsmodels_and_the_clustered_test() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    records = [
        record
        for record in random_records(1, 30)
        if record.none_of_the_above and record.label != "IR"
    ]
    balance = in_sample_balance(records, n_positions=2)
    labels = [record.label == "S" for record in records]
    judged = [record.none_of_the_above == "true" for record in records]
    both = np.histogram2d(labels, judged, bins=2)[0]
    for exact, value in ((True, balance["exact"][-1]), (False, balance["asymptotic"][-1])):
        reference = mcnemar(both, exact=exact, correction=False).pvalue
        assert value == pytest.approx(min(1.0, reference), abs=1e-12)
    grouping = group_by_response([record.response for record in records])
    supported, confirmed = np.array(labels), np.array(judged)
    reference = clustered_mcnemar_counts(
        grouping.sums(supported & ~confirmed), grouping.sums(confirmed & ~supported), grouping.sizes
    ).p_value
    assert balance["clustered"][-1] == pytest.approx(reference, abs=1e-12)
    np.testing.assert_allclose(balance["corrected"][:2], adjust(balance["p_value"][:2]))
    assert balance["corrected"][-1] == balance["p_value"][-1]


def test_few_responses_are_tested_exactly_by_all_their_signs() -> None:
    records = [
        record
        for record in random_records(2, 9)
        if record.none_of_the_above and record.label != "IR"
    ]
    balance = in_sample_balance(records, n_positions=1)
    net = Counter[str]()
    for record in records:
        net[record.response] += (record.label == "S") - (record.none_of_the_above == "true")
    sums = [
        abs(sum(sign * size for sign, size in zip(signs, net.values(), strict=True)))
        for signs in itertools.product((1, -1), repeat=len(net))
    ]
    expected = np.mean([total >= abs(sum(net.values())) for total in sums])
    # Halves of counts of at most 2^9 choices: exact in binary.
    assert balance["p_value"][-1] == balance["by_response"][-1] == expected
    many = in_sample_balance(random_records(2, 90), n_positions=1)
    assert math.isnan(many["by_response"][-1])
    assert many["p_value"][-1] == many["clustered"][-1]


def test_responses_without_a_sign_do_not_count_among_the_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = random_records(2, 20)
    judged = judged_counts(as_claims(records), Setting.NONE_OF_THE_ABOVE, 1, "incorrect")
    net = judged[:, -1, 0, 1:].sum(axis=-1) - judged[:, -1, 1, 0]
    signed = int(np.count_nonzero(net))
    assert signed < len(net)
    for few, exact in ((signed, True), (signed - 1, False)):
        monkeypatch.setattr("calibration.self_knowledge.balance.FEW", few)
        balance = in_sample_balance(records, n_positions=1)
        assert np.isfinite(balance["by_response"][-1]) == exact


def test_counts_by_hand() -> None:
    records = [
        *in_sentence("x", 1, 1, "S S", "true"),
        claim("x", 1, 1, "S", None, None, "neither", number=7),
        claim("x", 1, 1, "NS", None, None, "true", number=8),
        *in_sentence("y", 1, 1, "NS IR", "false"),
        claim("y", 1, 1, "S", number=9),
    ]
    counts = judged_counts(as_claims(records), Setting.NONE_OF_THE_ABOVE, 1, "incorrect")
    assert counts.shape == (2, 2, 2, 3)
    assert counts[0, 0].tolist() == [[2, 0, 1], [1, 0, 0]]
    assert counts[1, 0].tolist() == [[0, 0, 0], [0, 1, 0]]
    np.testing.assert_array_equal(counts[:, 0], counts[:, 1])
    excluded = judged_counts(as_claims(records), Setting.NONE_OF_THE_ABOVE, 1, "exclude")
    assert excluded[0, 0].tolist() == [[2, 0, 0], [1, 0, 0]]


def test_empty_bins_and_balance_without_errors() -> None:
    records = [
        *in_sentence("x", 1, 1, "S S", "true"),
        *in_sentence("y", 1, 1, "NS", "false"),
    ]
    balance = in_sample_balance(records)
    # No error of either kind: nothing speaks against sigma, which is not defined.
    assert balance["clustered"][-1] == balance["exact"][-1] == 1.0
    assert balance["status"][-1] == SigmaStatus.PERFECT
    assert math.isnan(balance["sigma"][-1])
    assert balance["status"][0] == SigmaStatus.EMPTY
    assert math.isnan(balance["clustered"][0])
    assert len(balance.rows()) == 6
