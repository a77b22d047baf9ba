"""The table of methods and measures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration import summarise
from calibration.intervals import IntervalSettings
from calibration.scores import USUAL_MEASURES
from calibration.significance import (
    adjust,
    compare_methods,
    paired_permutation,
    paired_t_test,
)
from factormodels.errors import InputError
from tests.refusals import refused

QUICK = IntervalSettings(n_bootstrap=50)


def data(seed: int, n_responses: int = 30) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), generator.integers(3, 12, n_responses))
    truth = generator.random(responses.size)
    y = generator.random(responses.size) < truth
    sharp = np.clip(truth + generator.normal(0, 0.05, truth.size), 0.02, 0.98)
    blunt = np.clip(truth + generator.normal(0, 0.5, truth.size), 0.02, 0.98)
    methods = {"blunt": blunt, "sharp": sharp, "same": blunt.copy()}
    return {"methods": methods, "y": y, "responses": responses}


def test_estimates_are_those_of_summarise() -> None:
    given = data(0)
    table = compare_methods(**given, n_resamples=50, intervals=QUICK)
    for name, p in given["methods"].items():
        row = summarise(p, given["y"], given["responses"])
        for measure in USUAL_MEASURES:
            cell = table.cell(name, measure)
            # Sums of some hundred terms, by response first.
            assert cell.estimate == pytest.approx(getattr(row, measure), abs=1e-12), measure
            assert cell.lower <= cell.estimate <= cell.upper
    assert (table.n_responses, table.n_claims) == (30, given["y"].size)


def test_p_values_are_those_of_the_paired_tests() -> None:
    given = data(1)
    y, responses = given["y"], given["responses"]
    blunt, sharp = given["methods"]["blunt"], given["methods"]["sharp"]
    table = compare_methods(**given, measures=["brier"], n_resamples=500, intervals=QUICK)
    losses = [(p - y) ** 2 for p in (sharp, blunt)]
    reference = paired_permutation(losses[0], losses[1], responses, n_permutations=500)
    cell = table.cell("sharp", "brier")
    assert cell.p_value == pytest.approx(reference.p_value, abs=1e-12)
    assert cell.difference == pytest.approx(reference.estimate, abs=1e-12)
    assert cell.better is True

    names = ["precision", "precision_mae"]
    students = compare_methods(
        **given, measures=names, test="t", alternative="better", intervals=QUICK
    )
    index = np.unique(responses, return_inverse=True)[1]
    sizes = np.bincount(index)
    own = [np.bincount(index, weights=p > 0.5) / sizes for p in (sharp, blunt)]
    expected = paired_t_test(*own, alternative="greater").p_value
    assert students.cell("sharp", "precision").p_value == pytest.approx(expected, abs=1e-12)
    truth = np.bincount(index, weights=y) / sizes
    errors = [np.abs(share - truth) for share in own]
    expected = paired_t_test(*errors, alternative="less").p_value
    assert students.cell("sharp", "precision_mae").p_value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg"])
def test_stars_come_of_corrected_p_values_alone(correction: str) -> None:
    given = data(2)
    table = compare_methods(**given, correction=correction, n_resamples=2000, intervals=QUICK)
    p_values = [cell.p_value for cell in table.cells]
    np.testing.assert_allclose(
        [cell.corrected for cell in table.cells], adjust(p_values, correction), equal_nan=True
    )
    assert table.n_comparisons == 2 * len(USUAL_MEASURES)
    for cell in table.cells:
        starred = bool(cell.stars)
        assert starred == (cell.corrected < 0.05)
    assert table.cell("sharp", "brier").stars
    same = table.cell("same", "brier")
    assert (same.p_value, same.stars, same.better) == (1.0, "", False)
    reference = table.cell("blunt", "brier")
    assert math.isnan(reference.p_value)
    assert (reference.status, reference.better, reference.stars) == ("reference", None, "")
    assert "corrected over 14 comparisons" in table.note()


def test_without_correction_nothing_is_marked() -> None:
    table = compare_methods(**data(2), correction=None, n_resamples=2000, intervals=QUICK)
    assert min(cell.p_value for cell in table.cells if cell.p_value == cell.p_value) < 0.001
    assert all(cell.stars == "" and math.isnan(cell.corrected) for cell in table.cells)
    assert "not corrected" in table.note()


def test_bootstrap_finds_what_the_permutation_does() -> None:
    given = data(3)
    table = compare_methods(**given, test="bootstrap", n_resamples=999, intervals=QUICK)
    assert table.cell("sharp", "brier").p_value < 0.01
    assert table.cell("same", "brier").p_value == 1.0
    assert len(table.rows()) == 3 * len(USUAL_MEASURES)


def test_what_is_not_defined_has_a_status_in_its_cell() -> None:
    given = data(6)
    given["methods"] = {
        "blunt": given["methods"]["blunt"],
        "certain": (~given["y"]).astype(float),
        "constant": np.full(given["y"].size, 0.5),
    }
    names = ["log_loss", "brier", "auroc", "calibration_slope"]
    table = compare_methods(**given, measures=names, n_resamples=50, intervals=QUICK)
    loss = table.cell("certain", "log_loss")
    assert (loss.estimate, loss.status) == (math.inf, "infinite")
    assert loss.reason == "it has the logarithm of a probability of 0"
    assert all(math.isnan(each) for each in (loss.lower, loss.difference, loss.p_value))
    assert table.cell("certain", "calibration_slope").status == "separated"
    slope = table.cell("constant", "calibration_slope")
    assert (slope.status, slope.reason) == (
        "constant_forecast", "all probabilities are the same",
    )  # fmt: skip
    # The other cells are whole, and alone are corrected.
    for name in ("certain", "constant"):
        assert 0 <= table.cell(name, "brier").p_value <= 1
        assert table.cell(name, "auroc").status == "ok"
    assert table.n_comparisons == 2 * 4 - 3
    assert "Slope of constant: constant forecast (all probabilities are the same)." in table.note()


def test_bad_input_is_named() -> None:
    given = data(5)
    blunt = given["methods"]["blunt"]
    with pytest.raises(InputError, match="methods holds fewer than two"):
        compare_methods({"blunt": blunt}, given["y"], given["responses"])
    with pytest.raises(InputError, match="method 'short': lengths differ"):
        compare_methods(
            {"blunt": blunt, "short": blunt[1:]}, given["y"], given["responses"], intervals=QUICK
        )
    refused("reference is 'exact'", compare_methods, **given, reference="exact")
    with pytest.raises(InputError, match="measure 'auc' is unknown; choose some of precision"):
        compare_methods(**given, measures=["auc"])
    refused("give each measure once", compare_methods, **given, measures=["brier", "brier"])
    with pytest.raises(InputError, match="test is 't', but brier are pooled over claims"):
        compare_methods(**given, measures=["brier"], test="t")
    refused("test is 'z'", compare_methods, **given, test="z")
    with pytest.raises(
        InputError, match="alternative is 'greater'; choose 'two-sided' or 'better'"
    ):
        compare_methods(**given, alternative="greater")
    with pytest.raises(
        InputError, match="neither way is for calibration_slope; choose 'two-sided'"
    ):
        compare_methods(**given, measures=["calibration_slope"], alternative="better")
    refused("margins has 'brier', which is not", compare_methods, **given, measures=["auroc"],
            margins={"brier": 0.1})  # fmt: skip
    refused(
        r"margins\['brier'\] is 0",
        compare_methods,
        **given,
        measures=["brier"],
        margins={"brier": 0},
    )
    with pytest.raises(InputError, match="there is no cell of 'x'"):
        compare_methods(**given, measures=["brier"], n_resamples=9, intervals=QUICK).cell("x", "y")
