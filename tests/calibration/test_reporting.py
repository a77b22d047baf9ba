"""The report: every score of models on one table of claims, against the functions it is made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration import auroc, compare_methods, report, score_table, summarise
from calibration.intervals import IntervalSettings
from calibration.recalibration import PlattRecalibrator, cross_fit
from calibration.reporting import REPORTED, TESTED, recalibration_report
from calibration.scores import calibration_line
from factormodels.errors import InputError
from tests.refusals import refused

QUICK = IntervalSettings(n_bootstrap=40)
CHEAP = ("brier", "auroc", "accuracy", "precision", "calibration_slope")


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


WIDE: dict[str, Any] = {"p": ["sharp", "blunt"], "y": "label", "response": "answer"}
LONG: dict[str, Any] = {"p": "p", "y": "label", "response": "answer", "model": "model"}
QUICKLY: dict[str, Any] = {"scores": CHEAP, "intervals": QUICK, "n_resamples": 200}


def test_numbers_are_those_of_the_functions() -> None:
    frame = claims()
    found = report(frame, **WIDE, **QUICKLY)
    row = found.to_frame().set_index("model").loc["blunt"]
    given = frame["blunt"], frame["label"], frame["answer"]
    scored = score_table(
        *given[:2], responses=given[2], n_bootstrap=40, scores=["calibration_slope", "auroc"]
    )
    for each in scored:
        ends = (row[f"{each.score}_lower"], row[f"{each.score}_upper"])
        assert (row[each.score], *ends) == (each.value, *each.interval)
    summary = summarise(*given)
    assert (row["accuracy"], row["precision"]) == (summary.accuracy, summary.precision)
    assert (row["n_claims"], row["n_responses"], row["n_unlabelled"]) == (len(frame), 12, 0)
    tests = compare_methods(
        {name: frame[name] for name in ("sharp", "blunt")},
        *given[1:],
        measures=TESTED,
        n_resamples=200,
        intervals=QUICK,
    )
    assert found.tests is not None
    assert found.tests.to_frame().equals(tests.to_frame())


def test_a_table_says_the_same_however_it_is_given() -> None:
    wide = claims()
    expected = report(wide, **WIDE, **QUICKLY)
    tall = long(wide)
    shuffled = tall.sample(frac=1, random_state=0)
    for frame, how in (
        (tall, LONG),
        (tall.to_dict("list"), LONG),
        (tall.to_dict("records"), LONG),
        # Rows in any order are paired by the claim's id.
        (shuffled, {**LONG, "claim": "claim", "reference": "sharp"}),
    ):
        found = report(frame, **how, **QUICKLY)
        one, other = found.to_frame().set_index("model"), expected.to_frame().set_index("model")
        for name in CHEAP:
            # Sums in another order.
            np.testing.assert_allclose(one.loc[other.index, name], other[name], atol=1e-12)
        assert found.tests is not None
        assert expected.tests is not None
        p_values = [
            each.tests.cell("blunt", "brier").difference for each in (found, expected) if each.tests
        ]
        assert p_values[0] == pytest.approx(p_values[1], abs=1e-12)


def test_models_whose_claims_differ_are_not_tested_and_the_report_says_so() -> None:
    tall = long(claims())
    fewer = tall[(tall["model"] == "sharp") | (tall["claim"] > 4)]
    found = report(fewer, **LONG, **QUICKLY)
    assert found.tests is None
    assert "different numbers of claims" in found.remarks[-1]
    # With ids, tests are over what both have.
    paired = report(fewer, **LONG, claim="claim", **QUICKLY)
    assert paired.tests is not None
    assert paired.tests.n_claims == int((fewer["model"] == "blunt").sum())
    other = tall.assign(label=tall["label"] ^ (tall["model"] == "blunt"))
    assert "different labels" in report(other, **LONG, **QUICKLY).remarks[-1]


def test_one_model_without_responses_has_scores_and_no_tests() -> None:
    found = report(claims(), p="sharp", y="label", response=None, **QUICKLY)
    assert found.tests is None
    assert [each.name for each in found.models] == ["sharp"]
    assert found.models[0].n_responses == found.models[0].n_claims
    assert "taken as independent" in found.remarks[0]


def test_stars_are_those_of_the_tests() -> None:
    frame = claims(3, 40)
    frame["label"] = [None, *frame["label"][1:]]
    found = report(frame, **WIDE, scores=["brier", "aurc"], intervals=QUICK,
                   tested=["brier"], n_resamples=2000)  # fmt: skip
    assert found.tests is not None
    assert found.stars("blunt", "brier") == found.tests.cell("blunt", "brier").stars != ""
    assert found.stars("blunt", "aurc") == found.stars("sharp", "brier") == ""
    assert "against sharp" in found.remarks[-1]
    assert "Claims without a label: 1 of sharp, 1 of blunt." in found.remarks


def test_certain_claims_are_counted_and_can_be_left_out() -> None:
    frame = claims()
    frame.loc[[1, 5], "sharp"] = [0.0, 1.0]
    moved, out = (
        report(frame, p="sharp", y="label", response="answer", extremes=how, intervals=QUICK,
               scores=["calibration_slope", "brier"])
        for how in ("clip", "leave-out")
    )  # fmt: skip
    assert moved.models[0].n_extreme == out.models[0].n_extreme == 2
    assert "moved to 1e-06 and 1 - 1e-06 where a score needs their logit: 2 of sharp" in " ".join(
        moved.remarks
    )
    assert "left out where" in " ".join(out.remarks)
    for found, how in ((moved, "clip"), (out, "leave-out")):
        line = calibration_line(frame["sharp"], frame["label"], extremes=how)
        assert found.models[0].scores["calibration_slope"].value == pytest.approx(line.slope)
    brier = [each.models[0].scores["brier"].value for each in (moved, out)]
    assert brier[0] == brier[1]


def test_auroc_of_cross_fitted_probabilities_is_within_folds() -> None:
    frame = claims(4).assign(part=lambda table: table["answer"].str[-1].astype(int) % 3)
    found = report(frame, **WIDE, fold="part", scores=["auroc"], tested=["auroc"],
                   intervals=QUICK, n_resamples=100)  # fmt: skip
    for each in found.models:
        expected = auroc(frame[each.name], frame["label"], folds=frame["part"])
        assert each.scores["auroc"].value == pytest.approx(expected, abs=1e-12)
    assert found.tests is not None
    assert found.tests.within_folds
    assert "AUROC compares claims of one fold" in " ".join(found.remarks)


def test_an_infinite_log_loss_leaves_the_other_tests() -> None:
    frame = claims(5)
    frame.loc[0, "sharp"] = 1.0 - float(frame["label"].iloc[0])
    found = report(frame, **WIDE, scores=["log_loss", "brier"], tested=["log_loss", "brier"],
                   intervals=QUICK, n_resamples=100)  # fmt: skip
    assert found.tests is not None
    assert found.tests.cell("blunt", "log_loss").status == "infinite"
    assert 0 < found.tests.cell("blunt", "brier").p_value <= 1
    assert math.isinf(found.models[0].scores["log_loss"].value)


def test_a_score_that_is_not_defined_says_why() -> None:
    frame = claims().assign(label=True)
    found = report(frame, p="sharp", y="label", response="answer", scores=["auroc"])
    assert math.isnan(found.models[0].scores["auroc"].value)
    assert found.rows()[0]["auroc_status"] == "one_class"


def test_the_default_scores_are_those_of_a_calibration_table() -> None:
    assert {"brier", "log_loss", "auroc", "ece", "aurc", "accuracy"} < set(REPORTED)


def test_bad_input_is_named() -> None:
    frame = claims()
    refused("frame has no column 'truth'; set y to one of sharp, ", report, frame, "sharp", "truth")
    refused("p names several columns and model", report, frame, model="answer", **WIDE)
    refused("frame is not a table", report, 3)
    refused("frame is empty", report, [])
    refused("measure 'best' is unknown", report, frame, **WIDE, scores=["best"])
    refused("extremes is 'drop'", report, frame, **WIDE, extremes="drop")
    with pytest.raises(InputError, match="model 'sharp': p\\[0\\] is 'x', not a number"):
        report(frame.assign(sharp="x"), "sharp", "label", "answer")
    twice = pd.concat([long(frame), long(frame)])
    refused("model 'sharp' has a claim twice", report, twice, **LONG, claim="claim", **QUICKLY)
    nameless = long(frame)
    nameless["model"] = [None, *nameless["model"][1:]]
    refused("column 'model' is empty in row 0", report, nameless, **LONG)


def test_recalibrations_stand_beside_what_was_given() -> None:
    frame = claims(n_responses=20)
    names = ["platt", "venn-abers", "best"]
    found = report(frame, **WIDE, **QUICKLY, tested=("brier",), recalibrate=names, n_folds=4)
    part = found.recalibrated["blunt"]
    assert [each.name for each in part.models] == ["as given", *names]
    assert part.tests is not None
    assert part.tests.reference == "as given"
    fitted = cross_fit(PlattRecalibrator(), frame["blunt"], frame["label"], frame["answer"], 4)
    brier = np.mean((fitted.p - frame["label"]) ** 2)
    assert part.models[1].scores["brier"].value == pytest.approx(brier, abs=1e-12)
    # What is blunt by noise alone is too extreme, which a map mends.
    assert brier < part.models[0].scores["brier"].value
    assert found.recalibrated["sharp"].recalibrated == {}


def test_a_map_that_cannot_be_learned_is_a_remark() -> None:
    frame = claims(n_responses=6)
    frame["label"] = [False] * (len(frame) - 1) + [True]
    given = frame["blunt"], frame["label"], frame["answer"]
    found = recalibration_report(*given, ["isotonic", "platt"], **QUICKLY, tested=())
    kept = {each.name for each in found.models}
    assert "as given" in kept
    assert {"isotonic", "platt"} - kept == {
        remark.split()[0] for remark in found.remarks if "cannot be learned" in remark
    }
    assert "platt" not in kept
    refused("recalibrate has 'plat'", recalibration_report, *given, ["plat"])


def test_figures_are_of_the_models() -> None:
    found = report(claims(), **WIDE, **QUICKLY, tested=())
    reliability, risks = found.curves()
    assert list(reliability) == list(risks) == ["sharp", "blunt"]
    frame = claims()
    wrong = (frame["blunt"] > 0.5) != frame["label"]
    assert risks["blunt"].risk[-1] == pytest.approx(wrong.mean())
    assert set(found.figures()) == {"reliability", "risk_coverage"}
