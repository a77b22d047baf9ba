"""`calibration.score`: what it computes, of whatever it is given, and what it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration import auroc, score
from calibration.intervals import IntervalMethod
from calibration.recalibration import AS_GIVEN, PlattRecalibrator, cross_fit, recalibrations
from calibration.scores import MEASURES, REGISTRY, USUAL_SCORES, calibration_line
from calibration.scores.estimates import judged_claims
from calibration.scoring import ScoreTable
from calibration.significance import (
    adjust,
    compare_judged,
    paired_permutation,
    paired_t_test,
)
from factormodels.errors import InputError
from tests.calibration.coverage_simulation import draw
from tests.calibration.scored import OF_PROBABILITIES, QUICK, compared, models, scored
from tests.refusals import refused

# Response b: 0.9 and 0.6 supported of three; response a: one undecided atom.
P = [0.9, 0.6, 0.2, 0.5]
Y = [True, False, None, True]
RESPONSES = ["b", "b", "b", "a"]
COMPARED = ("precision", "f1_at_k", "precision_mae", "f1", "accuracy", "brier", "log_loss")


def values(p: Any, y: Any, responses: Any, **how: Any) -> dict[str, float]:
    scores = scored(p, y, responses, scores=MEASURES, **how)
    return {name: each.value for name, each in scores.items()}


def same(first: Any, second: Any) -> bool:
    """Return True if the scores of two models are equal to the last digit, including nan."""
    return repr(dict(first)) == repr(dict(second))


# --- values -------------------------------------------------------------------------------------


def test_hand_values() -> None:
    by_measure = values(P, Y, RESPONSES)
    # All equalities hold up to a few roundings.
    expected = {
        "supported": 1.0,
        "contradicted": 0.5,
        "undecided": 0.5,
        "precision": (2 / 3 + 0) / 2,
        # Of the labeled atoms of b, half are true; of a, all.
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
        assert by_measure[name] == pytest.approx(value, abs=1e-15), name
    (model,) = score(P, Y, RESPONSES, scores=MEASURES).models
    assert (model.n_claims, model.n_unlabeled, model.n_responses, model.k) == (3, 1, 2, 2.0)


def test_unlabeled_atoms_change_scores_by_policy_and_measures_never() -> None:
    rows = {each: values(P, Y, RESPONSES, unlabeled=each) for each in ("exclude", "false", "true")}
    for name in MEASURES:
        if not REGISTRY[name].needs_labels:
            assert len({row[name] for row in rows.values()}) == 1, name
    # A Brier sum over four atoms is divided by four, and one over three by three.
    assert rows["false"]["brier"] == pytest.approx((0.01 + 0.36 + 0.04 + 0.25) / 4, abs=1e-15)
    assert rows["true"]["brier"] == pytest.approx((0.01 + 0.36 + 0.64 + 0.25) / 4, abs=1e-15)
    refused("unlabeled", score, P, Y, RESPONSES, unlabeled="error")


@pytest.mark.parametrize("y", [None, [None] * 4, [math.nan] * 4])
def test_without_labels_scores_of_labels_say_so(y: Any) -> None:
    scores = scored(P, y, RESPONSES, scores=MEASURES)
    without = {name for name, each in scores.items() if each.status == "no_labels"}
    assert without == {name for name in MEASURES if REGISTRY[name].needs_labels}
    assert all(math.isnan(scores[name].value) for name in without)
    assert scores["precision"].value == pytest.approx(1 / 3, abs=1e-15)
    refused("none of the 4 atoms has a label", score, P, y, RESPONSES)


def test_a_response_without_labels_is_left_out_of_the_error_of_precision() -> None:
    with_it = values([0.9, 0.9, 0.9], [True, False, None], ["a", "b", "c"])
    without = values([0.9, 0.9], [True, False], ["a", "b"])
    for name in ("precision_mae", "human_precision"):
        assert with_it[name] == without[name] == 0.5


@pytest.mark.parametrize(("k", "expected"), [("half", math.nan), (7, 7.0), ("fixed:3", 3.0)])
def test_k_that_differs_between_responses_is_not_one_number(k: Any, expected: float) -> None:
    scores = score(P, Y, RESPONSES, scores=["f1_at_k"], k=k).models[0].k
    assert scores == expected or math.isnan(scores) == math.isnan(expected)


def test_relabeling_responses_changes_nothing() -> None:
    assert values(P, Y, RESPONSES) == pytest.approx(
        values(P, Y, np.array([7, 7, 7, 3])), nan_ok=True
    )


def test_released_output_of_factreasoner(shared_data: Path) -> None:
    results = json.loads((shared_data / "factreasoner/factreasoner_output.json").read_text())[
        "results"
    ]
    p = [marginal["probabilities"][1] for marginal in results["marginals"]]
    by_measure = values(p, None, [results["topic"]] * len(p), k="half")
    assert by_measure["supported"] == results["num_true_atoms"]
    # The release counts undecided atoms among the false ones.
    assert by_measure["contradicted"] + by_measure["undecided"] == results["num_false_atoms"]
    assert by_measure["undecided"] == results["num_uniform_atoms"]
    assert by_measure["precision"] == pytest.approx(results["factuality_score"], abs=1e-15)
    assert by_measure["f1_at_k"] == pytest.approx(results["f1_k"], abs=1e-15)
    # Marginals in the file are rounded to six decimals, its mean probability is not.
    assert by_measure["expected_precision"] == pytest.approx(results["avg_prob"], abs=5e-7)


def test_certain_claims_are_counted_and_can_be_left_out() -> None:
    frame = claims()
    frame.loc[[1, 5], "sharp"] = [0.0, 1.0]
    given = frame["sharp"], frame["label"], frame["answer"]
    brier = []
    for how, message in (("clip", "moved to 1e-06 and 1 - 1e-06 where"), ("leave-out", "left out")):
        scores = score(*given, extremes=how, intervals=QUICK, scores=["calibration_slope", "brier"])
        assert scores.models[0].n_extreme == 2
        assert message in " ".join(scores.remarks)
        line = calibration_line(*given[:2], extremes=how)
        assert scores["calibration_slope"].value == pytest.approx(line.slope)
        brier.append(scores["brier"].value)
    assert brier[0] == brier[1]


# --- intervals ----------------------------------------------------------------------------------


def atoms(seed: int = 0, n_responses: int = 80) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (p, y, responses) of made-up claims, one in eight without a label."""
    rng = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), rng.integers(1, 12, n_responses))
    p = rng.uniform(0.01, 0.99, responses.size)
    y = (rng.uniform(size=p.size) < p).astype(float)
    y[rng.uniform(size=p.size) < 0.125] = np.nan
    p[rng.uniform(size=p.size) < 0.125] = 0.5
    return p, y, responses


@pytest.mark.parametrize("policy", ["exclude", "false"])
def test_every_score_has_a_value_an_error_and_an_interval_around_it(policy: str) -> None:
    p, y, responses = atoms()
    # Chance raises calibration errors, so that they may lie above their intervals.
    raised = ("smooth_ece", "corp_brier_miscalibration")
    names = [name for name, each in REGISTRY.items() if not each.of_bins and name not in raised]
    for name, each in scored(
        p, y, responses, scores=names, n_bootstrap=30, unlabeled=policy
    ).items():
        # Three responses have no label at all.
        n_responses = 80 if policy == "false" or not REGISTRY[name].needs_labels else 78
        assert (each.name, each.status, each.n) == (name, "ok", n_responses)
        assert each.lower < each.value < each.upper, name
        assert each.standard_error > 0, name


def test_an_interval_of_a_mean_by_hand() -> None:
    p, y, responses = atoms()
    means = np.array([p[responses == response].mean() for response in np.unique(responses)])
    scores = scored(p, y, responses, scores=["expected_precision"], n_bootstrap=1)
    # Student's t at 79 degrees of freedom, symmetric in the logit.
    mean = means.mean()
    reach = 1.9904502 * means.std(ddof=1) / math.sqrt(means.size) / (mean * (1 - mean))
    logit = math.log(mean / (1 - mean))
    ends = 1 / (1 + math.exp(reach - logit)), 1 / (1 + math.exp(-reach - logit))
    assert scores["expected_precision"].interval == pytest.approx(ends, abs=1e-7)


def test_undefined_scores_have_no_interval() -> None:
    certain = scored([0.0, 1.0, 0.4], [True, True, False], list("abb"), n_bootstrap=9,
                     scores=["log_loss", "mean_surprisal"])  # fmt: skip
    single = scored([0.2, 0.7], [True, False], ["a", "a"], n_bootstrap=9,
                 scores=["mean_surprisal", "brier", "precision"])  # fmt: skip
    without = [*certain.values(), single["mean_surprisal"], single["brier"]]
    assert all(map(math.isnan, [end for each in without for end in each.interval]))
    assert single["brier"].no_interval == "fewer than two responses"
    # A share that no redraw can move gets Wilson's interval of one trial: nearly everything. Losses
    # are no shares.
    assert np.subtract(*single["precision"].interval[::-1]) > 0.7


@pytest.mark.parametrize(
    ("n", "which"), [(58, "The intervals"), (59, "ECE"), (238, "ECE"), (239, "")]
)
def test_scores_by_inverted_tests_need_more_responses(n: int, which: str) -> None:
    generator = np.random.default_rng(0)
    p = generator.uniform(0.1, 0.9, n)
    y = generator.random(n) < p
    table = score(p, y, np.arange(n), scores=("brier", "ece"), intervals=QUICK)
    remarks = [each for each in table.remarks if "no kind of response is missing" in each]
    assert len(remarks) == (which != "")
    expected = f"Intervals ({which}) suppose" if which == "ECE" else f"{which} suppose"
    assert all(each.startswith(expected) for each in remarks)
    (model,) = table.models
    assert model.may_lack_kinds(0.95) is (n < 59)
    assert model.may_lack_kinds(0.95, "ece") is (n < 239)


def test_no_end_is_farther_than_a_response() -> None:
    # Two responses, one of them almost certain: Student's t with one degree reaches far beyond.
    scores = scored([0.999, 0.6], [True, True], ["a", "b"], n_bootstrap=9, scores=["log_loss"])
    assert scores["log_loss"].interval == pytest.approx((-math.log(0.999), -math.log(0.6)))


def test_intervals_are_seeded_and_those_of_some_scores_are_those_of_all() -> None:
    p, y, responses = draw(np.random.default_rng(1), 40)
    whole = scored(p, y, responses, n_bootstrap=20)
    assert list(whole) == list(OF_PROBABILITIES)
    names = ["auroc", "e90", "brier"]
    some = scored(p, y, responses, n_bootstrap=20, scores=names)
    assert list(some) == names
    assert same(some, {name: whole[name] for name in names})
    assert not same(whole, scored(p, y, responses, n_bootstrap=20, seed=4))


DEGENERATE: dict[str, tuple[Any, Any, dict[str, str]]] = {
    "one class": (
        [0.2, 0.5, 0.9],
        [1, 1, 1],
        {"auroc": "one_class", "auprc": "ok", "calibration_slope": "one_class"}
        | {"calibration_in_the_large": "one_class", "e90": "one_class", "brier": "ok"},
    ),
    "no true atom": ([0.2, 0.5, 0.9], [0, 0, 0], {"auprc": "one_class", "auroc": "one_class"}),
    "constant": (
        [0.3] * 4,
        [1, 0, 0, 1],
        {"calibration_slope": "constant_forecast", "calibration_in_the_large": "ok", "e90": "ok"}
        | {"auroc": "ok", "corp_brier_discrimination": "ok", "smooth_ece": "ok"},
    ),
    "certain": (
        [0.0, 1.0, 1.0, 0.0],
        [0, 1, 0, 1],
        {"log_loss": "infinite", "brier": "ok", "calibration_slope": "clipped"},
    ),
    "one atom": (
        [0.4],
        [1],
        {"brier": "ok", "ece_debiased": "too_few_atoms", "auroc": "one_class", "aurc": "ok"},
    ),
    "few atoms": ([0.1, 0.4, 0.6], [0, 1, 0], {"ece_debiased": "too_few_atoms"}),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_forecasts_have_a_status_and_never_raise(case: str) -> None:
    p, y, statuses = DEGENERATE[case]
    for responses in (None, list(range(len(p))), ["one"] * len(p)):
        scores = scored(p, y, responses, n_bootstrap=12)
        assert {name: str(scores[name].status) for name in statuses} == statuses
        for each in scores.values():
            assert math.isfinite(each.value) == (each.status in {"ok", "clipped"}), each
            assert bool(each.reason) == (each.status != "ok")
            assert each.n > 1 or math.isnan(each.lower)


@pytest.mark.parametrize("n_responses", [2, 4, 10, 30])
@pytest.mark.parametrize("p_true", [0.9, 1.0, None])
def test_no_interval_of_perfectly_separated_claims_is_a_point(
    n_responses: int, p_true: float | None
) -> None:
    y = np.tile([True, True, True, False, False, False], n_responses)
    p = np.where(y, p_true, 1.0 - p_true) if p_true else np.full(y.size, 0.5)
    n_reasons = 0
    for each in scored(p, y, np.repeat(np.arange(n_responses), 6), n_bootstrap=60).values():
        assert not each.upper - each.lower < 1e-9, each
        without = math.isfinite(each.value) and math.isnan(each.lower)
        assert bool(each.no_interval) == without, each
        n_reasons += each.no_interval == "its method finds no variation among these responses"
    # All but those of the base rate, which has Wilson's, and what is not defined.
    assert n_reasons >= 8


def test_an_interval_that_is_missing_does_not_say_that_redraws_agree() -> None:
    """Responses differ in their shares of true claims, so that redraws move what is explained."""
    y = np.concatenate([[True] * (1 + r % 5) + [False] * (5 - r % 5) for r in range(9)])
    ids = np.repeat(np.arange(9), 6)
    scores = scored(np.where(y, 0.9, 0.1), y, ids, n_bootstrap=200)
    explained = scores["corp_brier_discrimination"]
    assert explained.value == pytest.approx(scores["corp_brier_uncertainty"].value)
    assert scores["corp_brier_uncertainty"].upper > scores["corp_brier_uncertainty"].lower
    assert explained.no_interval == "its method finds no variation among these responses"


def test_atoms_of_weight_zero_do_not_count() -> None:
    p, y, ids = [0.2, 0.3, 0.7, 0.8, 0.6], [0, 1, 1, 0, 1], ["a", "a", "b", "c", "c"]
    how: dict[str, Any] = {"n_bootstrap": 100, "scores": ["brier", "log_loss", "auroc", "ece"]}
    with_zero = scored([*p, 0.0], [*y, 1], [*ids, "a"], weights=[1] * 5 + [0], **how)
    for name, each in scored(p, y, ids, **how).items():
        assert with_zero[name].interval == pytest.approx(each.interval, rel=1e-12)
    refused("weights are given, and a score is a mean over responses", score, p, y, ids,
            weights=[1] * 5, scores=["precision"])  # fmt: skip


# --- models ---------------------------------------------------------------------------------------


def claims(seed: int = 0, n_responses: int = 12) -> pd.DataFrame:
    """A row per claim with columns sharp, blunt, label, answer."""
    generator = np.random.default_rng(seed)
    answer = np.repeat(np.arange(n_responses), generator.integers(3, 9, n_responses))
    truth = generator.random(answer.size)
    return pd.DataFrame(
        {
            "sharp": np.clip(truth + generator.normal(0, 0.1, truth.size), 0.02, 0.98),
            "blunt": np.clip(truth + generator.normal(0, 0.5, truth.size), 0.02, 0.98),
            "label": generator.random(answer.size) < truth,
            "answer": [f"r{number}" for number in answer],
        }
    )


def long(wide: pd.DataFrame) -> pd.DataFrame:
    parts = [
        wide[["label", "answer"]].assign(p=wide[name], model=name, claim=range(len(wide)))
        for name in ("sharp", "blunt")
    ]
    return pd.concat(parts)


WIDE: dict[str, Any] = {"p": ["sharp", "blunt"], "y": "label", "responses": "answer"}
LONG: dict[str, Any] = {"p": "p", "y": "label", "responses": "answer", "model": "model"}
CHEAP = ("brier", "auroc", "accuracy", "precision", "calibration_slope")
QUICKLY: dict[str, Any] = {"scores": CHEAP, "intervals": QUICK, "n_resamples": 200}


def test_a_table_says_the_same_however_it_is_given() -> None:
    wide, tall = claims(), long(claims())
    arrays = {name: wide[name] for name in ("sharp", "blunt")}
    expected = score(arrays, wide["label"], wide["answer"], **QUICKLY)
    # Rows in any order are paired by the claim's id.
    ways: list[tuple[Any, dict[str, Any]]] = [
        (wide, WIDE),
        (tall, LONG),
        (tall.to_dict("list"), LONG),
        (tall.to_dict("records"), LONG),
        (tall.sample(frac=1, random_state=0), {**LONG, "claim": "claim", "reference": "sharp"}),
    ]
    for data, how in ways:
        scores = score(data=data, **how, **QUICKLY)
        for name in CHEAP:
            for model in ("sharp", "blunt"):
                # Sums in another order.
                first, other = scores[model, name], expected[model, name]
                assert first.value == pytest.approx(other.value, abs=1e-12)
            apart = [each.difference("blunt", name).value for each in (scores, expected)]
            assert apart[0] == pytest.approx(apart[1], abs=1e-12)
        assert scores.tested == expected.tested == CHEAP


def test_models_whose_claims_differ_are_not_tested_and_the_table_says_so() -> None:
    tall = long(claims())
    fewer = tall[(tall["model"] == "sharp") | (tall["claim"] > 4)]
    scores = score(data=fewer, **LONG, **QUICKLY)
    assert scores.tested == ()
    assert "different numbers of claims" in scores.remarks[-1]
    apart = tall.assign(answer=[*range(len(tall))])
    assert "no response in common" in score(data=apart, **LONG, **QUICKLY).remarks[-1]
    # With ids, tests are over what both have.
    paired = score(data=fewer, **LONG, claim="claim", **QUICKLY)
    n_shared = int((fewer["model"] == "blunt").sum())
    assert f"tested on the {n_shared:,} claims that all of them have" in paired.remarks[-2]
    both = claims().iloc[5:]
    alone = compared({name: both[name] for name in ("sharp", "blunt")}, both["label"],
                     both["answer"], scores=CHEAP, n_resamples=200)  # fmt: skip
    first, other = (each.difference("blunt", "brier") for each in (paired, alone))
    assert (first.value, first.p_value) == (other.value, other.p_value)
    labels = tall.assign(label=tall["label"] ^ (tall["model"] == "blunt"))
    assert "different labels" in score(data=labels, **LONG, **QUICKLY).remarks[-1]


def test_one_model_without_responses_has_scores_and_no_tests() -> None:
    scores = score("sharp", "label", data=claims(), **QUICKLY)
    assert (scores.tested, scores.stars_note) == ((), "")
    assert [each.name for each in scores.models] == ["sharp"]
    assert scores.models[0].n_responses == scores.models[0].n_claims
    assert "taken as independent" in scores.remarks[0]


def test_p_values_are_those_of_the_paired_tests() -> None:
    given = models(1)
    y, responses = given["y"], given["responses"]
    blunt, sharp = given["methods"]["blunt"], given["methods"]["sharp"]
    table = compared(**given, scores=["brier"], n_resamples=500)
    losses = [(p - y) ** 2 for p in (sharp, blunt)]
    reference = paired_permutation(losses[0], losses[1], responses, n_permutations=500)
    gap = table.difference("sharp", "brier")
    assert gap.p_value == pytest.approx(reference.p_value, abs=1e-12)
    assert gap.value == pytest.approx(reference.value, abs=1e-12)
    assert (gap.first, gap.second) == tuple(
        table[name, "brier"].value for name in ("sharp", "blunt")
    )
    assert gap.better is True

    names = ["precision", "precision_mae"]
    students = compared(**given, scores=names, test="t", alternative="better")
    index = np.unique(responses, return_inverse=True)[1]
    sizes = np.bincount(index)
    shares = [np.bincount(index, weights=p > 0.5) / sizes for p in (sharp, blunt)]
    truth = np.bincount(index, weights=y) / sizes
    errors = [np.abs(share - truth) for share in shares]
    for name, pair, side in (("precision", shares, "greater"), ("precision_mae", errors, "less")):
        expected = paired_t_test(*pair, alternative=side).p_value
        assert students.difference("sharp", name).p_value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg"])
def test_stars_come_of_corrected_p_values_alone(correction: str) -> None:
    table = compared(**models(2), scores=COMPARED, correction=correction, n_resamples=2000)
    differences = [each for model in table.models for each in model.differences.values()]
    np.testing.assert_allclose(
        [each.corrected for each in differences],
        adjust([each.p_value for each in differences], correction),
    )
    assert table.n_comparisons == len(differences) == 2 * len(COMPARED)
    for model in ("sharp", "same"):
        for name in COMPARED:
            starred = bool(table.stars(model, name))
            assert starred == (table.difference(model, name).corrected < 0.05)
    assert table.stars("sharp", "brier")
    same_again = table.difference("same", "brier")
    assert (same_again.p_value, same_again.better) == (1.0, False)
    assert table.stars("blunt", "brier") == table.stars("same", "brier") == ""
    assert "against blunt" in table.stars_note
    assert "corrected over 14 comparisons" in table.remarks[-1]


def test_without_correction_nothing_is_marked() -> None:
    table = compared(**models(2), scores=COMPARED, correction=None, n_resamples=2000)
    differences = [each for model in table.models for each in model.differences.values()]
    assert min(each.p_value for each in differences) < 0.001
    assert all(math.isnan(each.corrected) for each in differences)
    assert not any(row["stars"] for row in table.rows())
    assert "not corrected" in table.stars_note


def test_undefined_scores_have_a_status_and_leave_the_other_tests() -> None:
    given = models(6)
    given["methods"] = {
        "blunt": given["methods"]["blunt"],
        "certain": (~given["y"]).astype(float),
        "constant": np.full(given["y"].size, 0.5),
    }
    names = ["log_loss", "brier", "auroc", "calibration_slope"]
    table = compared(**given, scores=names, n_resamples=50)
    loss, apart = table["certain", "log_loss"], table.difference("certain", "log_loss")
    assert (loss.value, loss.status, apart.status) == (math.inf, "infinite", "infinite")
    assert apart.reason == "it has the logarithm of a probability of 0"
    assert all(map(math.isnan, (loss.lower, apart.value, apart.p_value, apart.corrected)))
    assert table.difference("certain", "calibration_slope").status == "separated"
    slope = table.difference("constant", "calibration_slope")
    assert (slope.status, slope.reason) == (
        "constant_forecast", "all probabilities are the same",
    )  # fmt: skip
    for name in ("certain", "constant"):
        assert 0 <= table.difference(name, "brier").p_value <= 1
        assert table.difference(name, "auroc").status == "ok"
    assert table.n_comparisons == 2 * 4 - 3


def test_auroc_of_cross_fitted_probabilities_is_within_folds() -> None:
    frame = claims(4).assign(part=lambda table: table["answer"].str[-1].astype(int) % 3)
    scores = score(**WIDE, data=frame, folds="part", scores=["auroc"], intervals=QUICK,
                  n_resamples=100)  # fmt: skip
    for each in scores.models:
        expected = auroc(frame[each.name], frame["label"], folds=frame["part"])
        assert each.scores["auroc"].value == pytest.approx(expected, abs=1e-12)
    assert scores.difference("blunt", "auroc").value == pytest.approx(
        scores["blunt", "auroc"].value - scores["sharp", "auroc"].value, abs=1e-12
    )
    assert "AUROC compares claims of one fold" in " ".join(scores.remarks)


def test_scores_of_labels_alone_are_not_compared() -> None:
    scores = compared(**models(3), scores=["brier", "human_precision", "corp_brier_uncertainty"],
                     n_resamples=9)  # fmt: skip
    assert scores.tested == ("brier",)
    untested = compared(**models(3), scores=["brier"], test=None)
    assert (untested.tested, untested.n_comparisons) == ((), 0)
    assert set(untested.rows()[0]) & {"difference", "p_value"} == set()


def test_a_row_per_model_and_score() -> None:
    table = compared(**models(3), scores=["brier", "auroc"], n_resamples=50)
    rows = table.rows()
    assert len(rows) == 3 * 2
    auroc, apart = table["sharp", "auroc"], table.difference("sharp", "auroc")
    (row,) = (each for each in rows if (each["model"], each["score"]) == ("sharp", "auroc"))
    assert (row["value"], row["lower"], row["n_responses"]) == (auroc.value, auroc.lower, 30)
    assert (row["difference"], row["corrected"]) == (apart.value, apart.corrected)
    json.dumps(rows)


def test_the_usual_scores_are_those_of_a_calibration_table() -> None:
    assert list(score(P, Y, RESPONSES).models[0].scores) == list(USUAL_SCORES)
    assert {"brier", "log_loss", "auroc", "ece", "aurc", "accuracy"} < set(USUAL_SCORES)
    assert REGISTRY["brier"].interval is IntervalMethod.DELTA


def test_figures_are_of_the_models() -> None:
    frame = claims()
    scores = score(**WIDE, data=frame, **QUICKLY, test=None)
    reliability, risks = scores.curves()
    assert list(reliability) == list(risks) == ["sharp", "blunt"]
    wrong = (frame["blunt"] > 0.5) != frame["label"]
    assert risks["blunt"].risk[-1] == pytest.approx(wrong.mean())
    assert set(scores.figures()) == {"reliability", "risk_coverage"}


def test_recalibrations_stand_beside_what_was_given() -> None:
    frame = claims(n_responses=20)
    given = frame["blunt"], frame["label"], frame["answer"]
    names = ["platt", "venn-abers", "best"]
    maps = recalibrations(*given, names, n_folds=4)
    scores = score(maps.p, *given[1:], folds=maps.folds, scores=["brier"], intervals=QUICK,
                  n_resamples=200)  # fmt: skip
    assert [each.name for each in scores.models] == [AS_GIVEN, *names]
    assert scores.reference == AS_GIVEN
    fitted = cross_fit(PlattRecalibrator(), *given, 4)
    brier = np.mean((fitted.p - frame["label"]) ** 2)
    assert scores["platt", "brier"].value == pytest.approx(brier, abs=1e-12)
    # What is blunt by noise alone is too extreme, which a map mends.
    assert brier < scores[AS_GIVEN, "brier"].value


def test_a_map_that_cannot_be_learned_is_reported() -> None:
    frame = claims(n_responses=6)
    frame["label"] = [False] * (len(frame) - 1) + [True]
    given = frame["blunt"], frame["label"], frame["answer"]
    maps = recalibrations(*given, ["isotonic", "platt"])
    missing = {each.split()[0] for each in maps.missing}
    assert "platt" in missing
    assert {AS_GIVEN, "isotonic", "platt"} - set(maps.p) == missing
    assert all("cannot be learned" in each for each in maps.missing)
    refused("recalibrate has 'plat'", recalibrations, *given, ["plat"])


# --- of judged claims, which may be others ------------------------------------------------------


def judged(given: dict[str, Any], name: str, kept: Any = slice(None)) -> Any:
    return judged_claims(
        given["methods"][name][kept], given["y"][kept], given["responses"][kept], k="median"
    )


@pytest.mark.parametrize("test", ["permutation", "bootstrap"])
@pytest.mark.parametrize("measure", ["brier", "precision", "f1"])
@pytest.mark.parametrize("alternative", ["two-sided", "better"])
def test_judged_claims_are_compared_like_arrays(test: str, measure: str, alternative: str) -> None:
    given = models(3)
    how: dict[str, Any] = {"test": test, "alternative": alternative, "n_resamples": 500}
    table = compared(**given, reference="blunt", scores=[measure], correction=None, **how)
    (comparison,) = compare_judged(
        judged(given, "sharp"), judged(given, "blunt"), [measure], intervals=QUICK, **how
    )
    assert repr(comparison) == repr(table.difference("sharp", measure))


def test_other_claims_are_compared_by_response() -> None:
    given = models(4)
    first_of_each = np.unique(given["responses"], return_index=True)[1]
    part, whole = judged(given, "sharp", first_of_each), judged(given, "sharp")
    (comparison,) = compare_judged(part, whole, ["precision"], n_resamples=500)
    means = [side.grouping.means(side.supported) for side in (part, whole)]
    expected = paired_permutation(means[0], means[1], np.arange(30), n_permutations=500)
    assert comparison.value == pytest.approx(expected.value, rel=1e-12)
    # One number per response: to swap the methods is to swap these.
    assert comparison.p_value == expected.p_value
    # Pooled, each side is over its own number of claims.
    (comparison,) = compare_judged(part, whole, ["brier"], n_resamples=500)
    losses = [float(((side.p - side.y) ** 2).mean()) for side in (part, whole)]
    assert comparison.value == pytest.approx(losses[0] - losses[1], rel=1e-12)


def test_other_responses_are_refused() -> None:
    given = models(5)
    fewer = judged(given, "sharp", given["responses"] > 0)
    refused("judge different responses", compare_judged, fewer, judged(given, "sharp"), ["brier"])


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"responses": ["a"]}, "lengths differ: p has 2, y has 2, responses has 1"),
        ({"n_bins": 0}, "n_bins is 0"),
        ({"clip": 0.6}, "clip is 0.6"),
        ({"extremes": "drop"}, "extremes is 'drop'"),
        ({"scores": "brier"}, "scores is 'brier'; give a list of some of "),
        ({"scores": []}, r"scores is \[\]"),
        ({"scores": ["briar"]}, r"scores: the score 'briar' is unknown \(did you mean 'brier' "),
        ({"scores": ["brier", "brier"]}, "give each once"),
        ({"model": "model"}, "model and claim name columns of a table"),
        ({"reference": "exact"}, "reference is 'exact'; choose one of p"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"p": [0.2, 0.7], "y": [0, 1]}
    refused(message, score, **given | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"test": "z"}, "test is 'z'"),
        ({"test": "t"}, "test is 't', but brier are pooled over claims"),
        ({"alternative": "greater"}, "alternative is 'greater'; choose 'two-sided' or 'better'"),
        (
            {"scores": ["calibration_slope"], "alternative": "better"},
            "neither way is for calibration_slope; choose 'two-sided'",
        ),
        ({"correction": "bonferroni"}, "correction is 'bonferroni'"),
        ({"n_resamples": 0}, "n_resamples is 0"),
        ({"tested": ["auc"]}, "tested: the score 'auc' is unknown"),
    ],
)
def test_a_bad_comparison_is_named(arguments: dict[str, Any], message: str) -> None:
    refused(message, compared, **models(5), **{"scores": ["brier"], **arguments})


def test_bad_tables_are_named() -> None:
    frame = claims()
    refused("data has no column 'truth'; set y to one of sharp, ", score, "sharp", "truth",
            data=frame)  # fmt: skip
    refused("p names several columns and model", score, **WIDE, data=frame, model="answer")
    refused("data is not a table", score, "p", "y", data=3)
    refused("data is empty", score, "p", "y", data=[])
    with pytest.raises(InputError, match="p\\[0\\] is 'x', not a number"):
        score("sharp", "label", "answer", data=frame.assign(sharp="x"))
    twice = pd.concat([long(frame), long(frame)])
    refused("model 'sharp' has a claim twice", score, data=twice, **LONG, claim="claim", **QUICKLY)
    nameless = long(frame)
    nameless["model"] = [None, *nameless["model"][1:]]
    refused("column 'model' is empty in row 0", score, data=nameless, **LONG)
    short = {"long": frame["sharp"], "short": frame["blunt"][1:]}
    refused("model 'short': lengths differ", score, short, frame["label"], frame["answer"])
    table = score(**WIDE, data=frame, scores=["brier"], test=None)
    refused("there are several models", table.__getitem__, "brier")
    refused("there is no 'y' of 'x'", table.__getitem__, ("x", "y"))


def cells_of_two_datasets() -> Any:
    """Two models on two datasets that call their claims the same."""
    generator = np.random.default_rng(0)
    parts = ((data, model, f"r{n}") for data in "AB" for model in ("m", "n") for n in range(8))
    rows = [(*part, claim) for part in parts for claim in range(3)]
    frame = pd.DataFrame(rows, columns=["dataset", "model", "response", "claim"])
    truth = {each: n % 3 > 0 for n, each in enumerate(dict.fromkeys(frame["response"]))}
    return frame.assign(p=generator.random(len(frame)), label=frame["response"].map(truth))


def test_a_reference_is_compared_with_the_cells_of_its_data() -> None:
    frame = cells_of_two_datasets()
    how: dict[str, Any] = {"scores": ["brier"], "intervals": None}
    scores = score(frame, by=["dataset", "model"], reference="A, m", **how)
    alone = score(frame[frame["dataset"] == "A"], by=["model"], reference="m", **how)
    assert scores.n_comparisons == alone.n_comparisons == 1
    first, two = scores.difference("A, n", "brier"), alone.difference("n", "brier")
    assert (first.value, first.p_value) == (two.value, two.p_value)
    with pytest.raises(InputError):
        scores.difference("B, n", "brier")


@pytest.mark.parametrize(
    "names", [(("x, y", "z"), ("x", "y, z")), ((1, "z"), ("1", "z")), ((None, "z"), ("None", "z"))]
)
def test_cells_of_one_name_are_refused_rather_than_pooled(names: Any) -> None:
    rows = [
        {"a": name[0], "b": name[1], "response": f"{position}{n}", "claim": 0, "p": 0.2, "label": n}
        for position, name in enumerate(names)
        for n in (0, 1)
    ]
    with pytest.raises(InputError, match="two cells are called"):
        score(pd.DataFrame(rows), by=["a", "b"])


def test_cells_of_different_numbers_of_claims_are_not_paired_by_order() -> None:
    frame = cells_of_two_datasets().drop(columns="claim").drop(index=24)
    how: dict[str, Any] = {"scores": ["brier"], "intervals": None}
    scores = score(frame, by=["dataset", "model"], reference="A, m", **how)
    assert not scores.n_comparisons
    assert any("name the column of claim ids" in each for each in scores.remarks)
    # A claim without a probability has its place all the same.
    whole = cells_of_two_datasets().drop(columns="claim")
    whole.loc[24, "p"] = np.nan
    assert score(whole, by=["dataset", "model"], reference="A, m", **how).n_comparisons == 1


def test_remarks_on_a_long_frame_are_those_on_its_arrays() -> None:
    frame = cells_of_two_datasets()
    frame = frame[(frame["dataset"] == "A") & (frame["model"] == "m")]
    frame = frame.assign(label=frame["label"].astype(object))
    frame.loc[frame.index[0], "label"] = None
    of_frame = score(frame, by=["model"], scores=["brier"])
    of_arrays = score(
        {"m": frame["p"].to_numpy()},
        frame["label"].tolist(),
        frame["response"].tolist(),
        scores=["brier"],
    )
    assert of_frame.remarks == of_arrays.remarks
    assert "intervals over responses" in of_frame.remarks[0]
    assert any("without a label" in remark for remark in of_frame.remarks)


@pytest.mark.parametrize(
    ("sizes", "is_named"), [([3] * 3, True), ([3] * 58, True), ([3] * 59, False)]
)
def test_a_kind_of_response_that_may_be_missing_is_named(sizes: list[int], is_named: bool) -> None:
    scored = _score_of_sizes(sizes)
    assert any("kind of response" in remark for remark in scored.remarks) is is_named
    assert scored.models[0].effective == pytest.approx(len(sizes))


def test_a_long_response_counts_as_one_kind() -> None:
    # Sixty-two responses, of which one has as many claims as sixty-one: (61 + 61)² / (61 + 61²).
    scored = _score_of_sizes([1] * 61 + [61])
    assert scored.models[0].effective == pytest.approx(122**2 / (61 + 61**2))
    assert any("3.9 responses of equal size" in remark for remark in scored.remarks)


def _score_of_sizes(sizes: list[int]) -> ScoreTable:
    generator = np.random.default_rng(3)
    responses = np.repeat(np.arange(len(sizes)), sizes)
    p = generator.uniform(0.1, 0.9, responses.size)
    y = (generator.random(responses.size) < p).tolist()
    return score({"a": p}, y, responses, scores=["brier"])


def test_the_number_of_tested_claims_is_that_of_labeled_ones() -> None:
    generator = np.random.default_rng(2)
    whole = pd.DataFrame(
        {
            "response": np.repeat(np.arange(25), 3),
            "claim": np.tile(np.arange(3), 25),
            "p": generator.uniform(0.1, 0.9, 75),
            "label": generator.integers(0, 2, 75).astype(bool).astype(object),
        }
    )
    whole.loc[7, "label"] = None
    other = whole.drop(index=[10, 11]).assign(p=lambda frame: 1 - frame["p"], model="b")
    frame = pd.concat([whole.assign(model="a"), other])
    table = score(
        *("p", "label", "response"), data=frame, model="model", claim="claim", n_resamples=50
    )
    (tested,) = [each for each in table.remarks if each.startswith("Models are tested")]
    assert tested == (
        "Models are tested on the 72 labeled claims that all of them have, of 74 of a, 72 of b."
    )
    assert table.difference("b", "brier").n == 25
    excluded = score(
        *("p", "label", "response"), data=frame, model="model", claim="claim", n_resamples=50,
        unlabeled="false",
    )  # fmt: skip
    assert any("on the 73 claims that" in each for each in excluded.remarks)
