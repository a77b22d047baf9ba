"""Coverage of intervals: a short simulation, and the long one's results against printed ones."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from calibration import score
from calibration.estimate import ABOVE_INTERVAL
from calibration.intervals import IntervalSettings
from calibration.scores import REGISTRY
from calibration.scores.coverage import (
    COVERAGE_GOAL,
    COVERS,
    MEASURED,
    MEASURED_DIFFERENCES,
    coverage_warning,
)
from calibration.significance import score_difference
from tests.calibration.coverage_simulation import (
    DIFFERENCE,
    FILE,
    OWN,
    RECORD,
    CoverageDesign,
    coverage,
    draw,
    draw_two,
    measured,
    record_table,
)
from tests.calibration.scored import scored

SCORES = (
    *("brier", "ece", "ece_debiased", "smooth_ece", "corp_brier_miscalibration", "e90"),
    *("calibration_slope", "auroc", "aurc"),
)


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, pytest.param(50, marks=pytest.mark.nightly)])
def test_intervals_hold_the_truth(n: int) -> None:
    design = CoverageDesign(OWN, 20, "equal", 0.1)
    for cell in coverage(design, n, n_bootstrap=200, scores=SCORES, seed=1).to_dict("records"):
        # Four standard deviations of simulations about 0.94 are 0.13 of 50 and 0.21 of 20.
        # Percentiles of replicates hold the ECE in none of them.
        assert cell["n"] == n, cell
        assert cell["held"] > 0.94 - 4 * math.sqrt(0.94 * 0.06 / n), cell


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, pytest.param(40, marks=pytest.mark.nightly)])
def test_intervals_of_differences_hold_the_truth(n: int) -> None:
    names = ("brier", "ece", "e90", "corp_brier_miscalibration", "auroc")
    design = CoverageDesign(DIFFERENCE, 20, "equal", 0.1)
    for cell in coverage(design, n, n_bootstrap=100, scores=names, seed=1).to_dict("records"):
        assert cell["n"] == n, cell
        assert cell["held"] > 0.94 - 4 * math.sqrt(0.94 * 0.06 / n), cell


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, pytest.param(30, marks=pytest.mark.nightly)])
def test_calibrated_forecasts_may_be_calibrated(n: int) -> None:
    # The interval of a calibration error begins at 0 for 97.5% of calibrated forecasts.
    errors = [name for name in SCORES if "ece" in name or name == "e90"]
    generator = np.random.default_rng(0)
    reached = dict.fromkeys(errors, 0)
    for _ in range(n):
        responses = np.repeat(np.arange(25), 6)
        p = generator.uniform(0.02, 0.98, responses.size)
        y = generator.random(p.size) < p
        for name, each in scored(p, y, responses, scores=errors, n_bootstrap=200).items():
            reached[name] += each.lower < 1e-9
    # Four standard deviations of draws of 0.975 are 0.11 of 30 and 0.16 of 15.
    for name, count in reached.items():
        assert count / n > 0.964 - 4 * math.sqrt(0.975 * 0.025 / n), name


def test_the_record_and_the_warnings_are_of_the_simulation() -> None:
    cells = pd.read_csv(FILE)
    assert record_table(cells) in RECORD.read_text(encoding="utf-8")
    assert measured(cells, OWN) == dict(MEASURED)
    assert measured(cells, DIFFERENCE) == dict(MEASURED_DIFFERENCES)
    unlike = " ".join(sorted(set(MEASURED) ^ set(REGISTRY)))
    command = "python -m tests.calibration.coverage_simulation"
    assert not unlike, (
        f"simulate the intervals with `{command} 20 50 92 --scores {unlike}`, then run `{command}` "
        "and copy the lines that it prints into MEASURED and MEASURED_DIFFERENCES"
    )


@pytest.mark.parametrize(("seed", "above"), [(31, True), (0, False)])
def test_a_score_above_its_interval_says_why(seed: int, above: bool) -> None:
    p, y, responses = draw(np.random.default_rng(seed), 20)
    settings = IntervalSettings(n_bootstrap=200)
    scores = score(p, y, responses, scores=["corp_brier_miscalibration"], intervals=settings)
    scored_interval = scores["corp_brier_miscalibration"]
    assert (scored_interval.value > scored_interval.upper) == above
    assert (ABOVE_INTERVAL in scores.remarks) == above


def test_a_warning_stands_beside_what_covers_too_little_or_too_much() -> None:
    low, high = COVERAGE_GOAL
    for name, shares in MEASURED.items():
        for n_responses, share in (
            (20, shares[0]),
            (49, shares[0]),
            (50, shares[1]),
            (500, shares[-1]),
        ):
            warning = coverage_warning(name, n_responses)
            assert math.isnan(warning) if low <= share <= high else warning == share
        assert math.isnan(coverage_warning(name, 19))
        assert math.isnan(coverage_warning(name, 50, level=0.9))
    of_differences = [name for name, shares in MEASURED_DIFFERENCES.items() if shares[0] < low]
    assert "smooth_ece" in of_differences
    first, second, y, responses = draw_two(np.random.default_rng(0), 20, 0.1, "equal")
    table = score(
        {"a": first, "b": second}, y, responses, scores=["accuracy", "smooth_ece"], n_resamples=20
    )
    warning = table.difference("b", "smooth_ece").coverage
    assert warning == MEASURED_DIFFERENCES["smooth_ece"][0]
    assert score_difference("smooth_ece", second, first, y, responses).coverage == warning
    assert math.isnan(table.difference("b", "accuracy").coverage)
    p, y, responses = draw(np.random.default_rng(0), 50)
    assert COVERS in score(p, y, responses, scores=["smooth_ece"]).remarks
    for name, each in scored(p, y, responses, n_bootstrap=20).items():
        np.testing.assert_equal(each.coverage, coverage_warning(name, 50))
