"""The row of a results table, and the same measures for many responses at once."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from pathlib import Path

import numpy as np
import pytest

from calibration import f1_at_k, factual_precision, summarise
from calibration.scores import (
    Summary,
    choose_k,
    decisions,
    entropy_measure,
    expected_precision,
    mean_surprisal,
    measure_responses,
)
from tests.refusals import refused

# Response b: 0.9 and 0.6 supported of three; response a: one undecided atom.
P = [0.9, 0.6, 0.2, 0.5]
Y = [True, False, None, True]
RESPONSES = ["b", "b", "b", "a"]


def test_hand_values() -> None:
    summary = summarise(P, Y, RESPONSES)
    assert (summary.n_responses, summary.n_atoms, summary.n_labelled) == (2, 4, 3)
    assert (summary.label_policy, summary.k_policy) == ("exclude", "median")
    assert summary.supported == 1.0
    assert summary.contradicted == 0.5
    assert summary.undecided == 0.5
    assert summary.k == 2.0
    # All equalities from here on hold up to a few roundings.
    expected = {
        "precision": (2 / 3 + 0) / 2,
        # Of the labelled atoms of b, half are true; of a, all.
        "human_precision": (1 / 2 + 1) / 2,
        # b: 2 of 2 supported against 1 of 2; a: 0 of 1 against 1 of 1.
        "precision_mae": (1 / 2 + 1) / 2,
        # b: Pr = 2/3 and R_2 = 1; a: no supported atom.
        "f1_at_k": (4 / 5 + 0) / 2,
        "expected_precision": (1.7 / 3 + 0.5) / 2,
        "f1": 2 * 1 / (2 * 1 + 1 + 1),
        "accuracy": 1 / 3,
        "brier": (0.01 + 0.36 + 0.25) / 3,
        "log_loss": -(math.log(0.9) + math.log(0.4) + math.log(0.5)) / 3,
    }
    for name, value in expected.items():
        assert getattr(summary, name) == pytest.approx(value, abs=1e-15), name


def test_unlabelled_atoms_change_scores_by_policy_and_measures_never() -> None:
    free = [
        "supported", "contradicted", "undecided", "precision", "f1_at_k", "k", "entropy",
        "mean_surprisal", "expected_precision", "n_labelled",
    ]  # fmt: skip
    rows = {policy: summarise(P, Y, RESPONSES, unlabelled=policy) for policy in ("false", "true")}
    for row in rows.values():
        for name in free:
            assert getattr(row, name) == getattr(summarise(P, Y, RESPONSES), name)
    # A Brier sum over four atoms is divided by four, and one over three by three.
    assert rows["false"].brier == pytest.approx((0.01 + 0.36 + 0.04 + 0.25) / 4, abs=1e-15)
    assert rows["true"].brier == pytest.approx((0.01 + 0.36 + 0.64 + 0.25) / 4, abs=1e-15)
    assert rows["false"].label_policy == "false"
    refused("unlabelled", summarise, P, Y, RESPONSES, unlabelled="error")


def test_a_perfect_method() -> None:
    summary = summarise([1.0, 0.0, 1.0], [1, 0, 1], [1, 1, 2])
    assert summary.precision == summary.human_precision == 0.75
    assert summary.precision_mae == summary.brier == summary.log_loss == 0.0
    assert summary.f1 == summary.accuracy == 1.0


@pytest.mark.parametrize("y", [None, [None] * 4, [math.nan] * 4])
def test_without_labels_the_scores_are_undefined(y: list[float | None] | None) -> None:
    summary = summarise(P, y, RESPONSES)
    assert summary.n_labelled == 0
    for name in (
        "human_precision", "precision_mae", "f1", "accuracy", "brier", "log_loss",
    ):  # fmt: skip
        assert math.isnan(getattr(summary, name))
    assert summary.precision == pytest.approx(1 / 3, abs=1e-15)


def test_a_response_without_labels_is_left_out_of_the_error_of_precision() -> None:
    with_it = summarise([0.9, 0.9, 0.9], [True, False, None], ["a", "b", "c"])
    without = summarise([0.9, 0.9], [True, False], ["a", "b"])
    assert with_it.precision_mae == without.precision_mae == 0.5
    assert with_it.human_precision == without.human_precision == 0.5


@pytest.mark.parametrize("k", ["median", "half", "fixed:3", 3])
def test_many_at_once_equal_one_by_one(k: str | int, caplog: pytest.LogCaptureFixture) -> None:
    generator = np.random.default_rng(11)
    responses = generator.integers(0, 12, 200)
    p = generator.random(200)
    p[generator.random(200) < 0.2] = 0.5
    with caplog.at_level(logging.WARNING, logger="calibration.scores.measures"):
        measures = measure_responses(p, responses, k=k)
    assert len(caplog.records) == 1
    ks = choose_k(k, measures.n_atoms)
    for row, response in enumerate(measures.responses):
        own = p[responses == response]
        counts = decisions(own)
        assert measures.n_atoms[row] == own.size
        assert measures.supported[row] == counts.supported
        assert measures.contradicted[row] == counts.contradicted
        assert measures.undecided[row] == counts.undecided
        assert measures.k[row] == ks[row]
        assert measures.precision[row] == factual_precision(own)
        assert measures.f1_at_k[row] == f1_at_k(own, ks[row])
        # Means of the same terms, summed in another order.
        for name, function in (
            ("entropy", entropy_measure),
            ("mean_surprisal", mean_surprisal),
            ("expected_precision", expected_precision),
        ):
            assert getattr(measures, name)[row] == pytest.approx(function(own), abs=1e-14)
    summary = summarise(p, None, responses, k=k)
    for name in ("supported", "precision", "f1_at_k", "entropy", "mean_surprisal"):
        assert getattr(summary, name) == getattr(measures, name).mean()


def test_k_that_differs_between_responses_is_not_one_number() -> None:
    summary = summarise(P, Y, RESPONSES, k="half")
    assert math.isnan(summary.k)
    assert summary.k_policy == "half"
    assert summarise(P, Y, RESPONSES, k=7).k == 7.0


def test_summary_is_a_flat_row() -> None:
    row = dataclasses.asdict(summarise(P, Y, RESPONSES))
    assert set(row) == {field.name for field in dataclasses.fields(Summary)}
    assert all(type(value) in (int, float, str) for value in row.values())
    json.dumps(row)


def test_relabelling_responses_changes_nothing() -> None:
    first = summarise(P, Y, RESPONSES)
    second = summarise(P, Y, np.array([7, 7, 7, 3]))
    assert dataclasses.asdict(first) == dataclasses.asdict(second)


def test_released_output_of_factreasoner(shared_data: Path) -> None:
    results = json.loads((shared_data / "factreasoner/factreasoner_output.json").read_text())[
        "results"
    ]
    p = [marginal["probabilities"][1] for marginal in results["marginals"]]
    summary = summarise(p, None, [results["topic"]] * len(p), k="half")
    assert summary.supported == results["num_true_atoms"]
    # The release counts undecided atoms among the false ones.
    assert summary.contradicted + summary.undecided == results["num_false_atoms"]
    assert summary.undecided == results["num_uniform_atoms"]
    assert summary.precision == pytest.approx(results["factuality_score"], abs=1e-15)
    assert summary.f1_at_k == pytest.approx(results["f1_k"], abs=1e-15)
    # Marginals in the file are rounded to six decimals, its mean probability is not.
    assert summary.expected_precision == pytest.approx(results["avg_prob"], abs=5e-7)


def test_a_certain_and_false_claim_has_an_infinite_surprisal() -> None:
    assert measure_responses([0.0, 0.5], ["a", "b"]).mean_surprisal[0] == math.inf
    assert summarise([0.0, 0.5], None, ["a", "b"]).mean_surprisal == math.inf
