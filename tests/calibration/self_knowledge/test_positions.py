"""Tables over relative positions, against hand values and a plain count."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from calibration.self_knowledge import (
    ClaimRecord,
    IntervalSettings,
    ModelJudgment,
    Setting,
    SigmaStatus,
    as_claims,
    flip_rates,
    label_positions,
    self_knowledge,
)
from calibration.self_knowledge.quantities import judgment_estimands, label_estimands
from factormodels.errors import InputError
from tests.calibration.self_knowledge.claims import claim, in_sentence, random_records
from tests.refusals import refused

QUICK = IntervalSettings(n_bootstrap=20)


def test_hand_values_of_the_papers_procedure() -> None:
    # Sentence 1 of 5 is at 20%, in the first bin; sentence 3 of 6 at 50%; 6 of 6 in the last.
    records = [
        *in_sentence("x", 1, 5, "S S NS"),
        *in_sentence("x", 5, 5, "IR"),
        *in_sentence("y", 1, 6, "S"),
        *in_sentence("y", 3, 6, "NS NS S IR"),
        *in_sentence("y", 6, 6, "NS"),
    ]
    table = label_positions(records, intervals=QUICK)
    nan = math.nan
    expected = {
        "supported_share": [(2 / 3 + 1) / 2, nan, 1 / 4, nan, 0, (2 / 3 + 1 + 1 / 4) / 5],
        "unsupported_share": [1 / 6, nan, 1 / 2, nan, 1 / 2, (1 / 3 + 1 / 2 + 1) / 5],
        "irrelevant_share": [0, nan, 1 / 4, nan, 1 / 2, (1 / 4 + 1) / 5],
        # A sentence of irrelevant claims alone has no factuality.
        "factuality": [(2 / 3 + 1) / 2, nan, 1 / 3, nan, 0, (2 / 3 + 1 + 1 / 3) / 4],
        "supported_number": [3 / 2, nan, 1, nan, 0, 4 / 5],
        "unsupported_number": [1 / 2, nan, 2, nan, 1 / 2, 4 / 5],
        "irrelevant_number": [0, nan, 1, nan, 1 / 2, 2 / 5],
    }
    assert table.positions == ("0-20%", "20-40%", "40-60%", "60-80%", "80-100%", "overall")
    assert list(table.quantities) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(table[name].estimate, values, atol=1e-15, err_msg=name)
    assert table.n_sentences.tolist() == [2, 0, 1, 0, 2, 5]
    assert table.n_responses.tolist() == [2, 0, 1, 0, 2, 2]
    assert table.n_claims["supported"].tolist() == [3, 0, 1, 0, 0, 4]
    empty = [status is SigmaStatus.EMPTY for status in table.statuses["factuality"]]
    assert empty == [False, True, False, True, False, False]


def test_pooled_shares_weigh_claims() -> None:
    records = [*in_sentence("x", 1, 1, "S S S NS"), *in_sentence("y", 1, 1, "NS")]
    macro = label_positions(records, n_positions=1, intervals=QUICK)
    pooled = label_positions(records, n_positions=1, average="claim", intervals=QUICK)
    assert macro["supported_share"].estimate[0] == pytest.approx(3 / 8, abs=1e-15)
    assert pooled["supported_share"].estimate[0] == pytest.approx(3 / 5, abs=1e-15)


@pytest.mark.parametrize("n_positions", [1, 3, 5, 7, 10])
def test_positions_on_an_edge_belong_below_it_whatever_floats_do(n_positions: int) -> None:
    for total in range(1, 60):
        records = [claim("x", index, total, "S") for index in range(1, total + 1)]
        bins = as_claims(records).bins(n_positions)
        exact = [
            math.ceil(Fraction(index, total) * n_positions) - 1 for index in range(1, total + 1)
        ]
        assert bins.tolist() == exact


def plain_count(
    records: list[ClaimRecord], average: str
) -> dict[str, dict[int, tuple[float, float]]]:
    """Count SK and SU per bin with loops, as (sum, number), bins 0 to 4."""
    sentences: dict[tuple[str, int, int], list[ClaimRecord]] = defaultdict(list)
    for record in records:
        sentences[record.response, record.sentence, record.sentences].append(record)
    sums: dict[str, dict[int, list[float]]] = {
        name: defaultdict(lambda: [0.0, 0.0]) for name in ("self_known", "self_unknown")
    }
    for (_, index, total), members in sentences.items():
        position = math.ceil(Fraction(5 * index, total)) - 1
        for name, label, correct in (("self_known", "S", True), ("self_unknown", "NS", False)):
            judged = [
                record.none_of_the_above is ModelJudgment.TRUE
                for record in members
                if record.label == label and record.none_of_the_above is not None
            ]
            hits, size = float(judged.count(correct)), float(len(judged))
            if average == "sentence" and size:
                hits, size = hits / size, 1.0
            sums[name][position][0] += hits
            sums[name][position][1] += size
    return {
        name: {position: (pair[0], pair[1]) for position, pair in places.items()}
        for name, places in sums.items()
    }


@pytest.mark.parametrize("average", ["claim", "sentence"])
@pytest.mark.parametrize("seed", range(4))
def test_agreement_with_a_plain_count(seed: int, average: str) -> None:
    records = random_records(seed)
    table = self_knowledge(records, average=average, intervals=QUICK)
    for name, places in plain_count(records, average).items():
        for position, (hits, size) in places.items():
            expected = hits / size if size else math.nan
            # Sums of some hundred shares, in another order.
            assert table[name].estimate[position] == pytest.approx(expected, abs=1e-12, nan_ok=True)
        hits, size = np.sum(list(places.values()), axis=0)
        assert table[name].estimate[-1] == pytest.approx(hits / size, abs=1e-12)


def test_the_order_of_records_and_the_names_of_responses_do_not_matter() -> None:
    records = random_records(5)
    shuffled = [records[index] for index in np.random.default_rng(0).permutation(len(records))]
    for average in ("claim", "sentence"):
        delta = IntervalSettings("delta")
        measured = self_knowledge(records, average=average, intervals=delta)
        other = self_knowledge(shuffled, average=average, intervals=delta)
        for name in measured.quantities:
            np.testing.assert_allclose(measured[name].estimate, other[name].estimate, atol=1e-12)
            np.testing.assert_allclose(measured[name].upper, other[name].upper, atol=1e-10)


def test_overall_rogan_gladen_repeats_the_factuality() -> None:
    claims = as_claims(random_records(6))
    setting = Setting.NONE_OF_THE_ABOVE
    estimands = judgment_estimands(claims, setting, 5, "claim", "incorrect")
    factuality, *_, rogan_gladen = estimands
    assert rogan_gladen.name == "rogan_gladen"
    assert rogan_gladen.estimate()[-1] == pytest.approx(factuality.estimate()[-1], abs=1e-12)
    np.testing.assert_allclose(
        rogan_gladen.influence()[:, -1], factuality.influence()[:, -1], atol=1e-12
    )


@pytest.mark.parametrize("average", ["claim", "sentence"])
def test_influences_are_derivatives_in_the_weight_of_a_response(average: str) -> None:
    claims = as_claims(random_records(7, 30))
    setting = Setting.NONE_OF_THE_ABOVE
    step = 1e-5 * np.eye(30)
    for estimand in (
        *label_estimands(claims, 5, average),
        *judgment_estimands(claims, setting, 5, average, "incorrect"),
    ):
        rise = estimand.replicates(1 + step) - estimand.replicates(1 - step)
        # Central differences err by the square of the step, and by 1e-16 over it.
        np.testing.assert_allclose(
            rise / 2e-5, estimand.influence(), rtol=0, atol=1e-7, err_msg=estimand.name
        )


def test_neither_counts_as_incorrect_unless_excluded() -> None:
    records = [
        *in_sentence("x", 1, 1, "S S NS", "neither"),
        *in_sentence("y", 1, 1, "S NS NS", "true"),
    ]
    counted = self_knowledge(records, intervals=QUICK)
    assert counted["self_known"].estimate[-1] == pytest.approx(1 / 3, abs=1e-15)
    assert counted["self_unknown"].estimate[-1] == pytest.approx(1 / 3, abs=1e-15)
    assert counted.n_missing[-1] == 0
    left_out = self_knowledge(records, neither="exclude", intervals=QUICK)
    assert left_out["self_known"].estimate[-1] == 1.0
    assert left_out["self_unknown"].estimate[-1] == 0.0
    assert left_out.n_missing[-1] == 3
    assert left_out.statuses["sigma"][-1] is SigmaStatus.UNINFORMATIVE


def test_a_missing_judgment_is_left_out_and_counted() -> None:
    records = [
        *in_sentence("x", 1, 1, "S", "true"),
        *in_sentence("y", 1, 1, "S NS IR"),
        *in_sentence("z", 1, 1, "NS", "false"),
    ]
    table = self_knowledge(records, intervals=QUICK)
    assert table["self_known"].estimate[-1] == 1.0
    assert table["factuality"].estimate[-1] == 0.5
    # The irrelevant claim is nobody's to judge.
    assert table.n_missing[-1] == 2
    assert table.statuses["sigma"][-1] is SigmaStatus.PERFECT
    assert math.isnan(table["sigma"].estimate[-1])


def test_statuses_of_empty_and_one_sided_bins() -> None:
    records = [
        *in_sentence("x", 1, 5, "S", "true"),
        *in_sentence("x", 2, 5, "NS", "false"),
        *in_sentence("x", 3, 5, "S NS", "true"),
        *in_sentence("y", 4, 5, "S NS", "false"),
    ]
    table = self_knowledge(records, intervals=QUICK)
    assert table.statuses["sigma"] == (
        SigmaStatus.NO_UNSUPPORTED,
        SigmaStatus.NO_SUPPORTED,
        SigmaStatus.UNINFORMATIVE,
        SigmaStatus.UNINFORMATIVE,
        SigmaStatus.EMPTY,
        SigmaStatus.OK,
    )
    assert table.statuses["self_known"][1] is SigmaStatus.NO_SUPPORTED
    assert table.statuses["rogan_gladen"] == (
        *[SigmaStatus.OK] * 4,
        SigmaStatus.EMPTY,
        SigmaStatus.OK,
    )
    assert math.isnan(table["sigma"].lower[2])
    rows = table.rows()
    assert len(rows) == 6 * 6
    assert rows[0]["quantity"] == "factuality"
    assert rows[0]["setting"] == "none_of_the_above"


def test_flip_rates_by_hand() -> None:
    records = [
        claim("x", 1, 1, "S", None, "true", "neither", number=0),
        claim("x", 1, 1, "S", None, "true", "true", number=1),
        claim("x", 1, 1, "S", None, "false", "false", number=2),
        claim("x", 1, 1, "S", None, "true", None, number=3),
        claim("y", 1, 1, "NS", None, "false", "true", number=4),
        claim("y", 1, 1, "NS", None, "true", "false", number=5),
    ]
    table = flip_rates(records, intervals=QUICK)
    assert table["supported_flip_rate"].estimate[-1] == pytest.approx(1 / 3, abs=1e-15)
    assert table["unsupported_flip_rate"].estimate[-1] == 0.5
    among = flip_rates(records, among_correct=True, intervals=QUICK)
    assert among["supported_flip_rate"].estimate[-1] == 0.5
    assert among["unsupported_flip_rate"].estimate[-1] == 1.0
    assert table.setting == "question_answering -> none_of_the_above"
    # A flip back is none.
    back = flip_rates(records, "none_of_the_above", "question_answering", intervals=QUICK)
    assert back["supported_flip_rate"].estimate[-1] == 0.0


def test_bad_input_is_named() -> None:
    records = in_sentence("x", 1, 1, "S NS")
    refused("records is empty", label_positions, [])
    refused(r"records\[0\] is of type str", label_positions, ["x"])
    refused(r"has the claim 'a1\.0' twice", label_positions, [*records, records[0]])
    refused("has 1 and 2 sentences", label_positions, [*records, claim("x", 2, 2, "S")])
    refused("has 10+ sentences; give at most", label_positions, [claim("y", 1, 10**15, "S")])
    refused("n_positions is 0", label_positions, records, n_positions=0)
    with pytest.raises(InputError, match="average is 'macro'; choose one of sentence, claim"):
        label_positions(records, average="macro")
    refused("has a judgment in none_of_the_above", self_knowledge, records)
    with pytest.raises(InputError, match="neither is 'false'"):
        self_knowledge(in_sentence("x", 1, 1, "S", "true"), neither="false")
    refused("give two settings", flip_rates, records, "direct_asking", "direct_asking")
    with pytest.raises(InputError, match="there is no quantity 'sigma'"):
        label_positions(records, intervals=QUICK)["sigma"]
