"""The table of scores: its rows, its intervals, what it refuses and what it names."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from calibration import score_table
from calibration.forecasts import Sample, forecasts
from calibration.intervals import (
    bca_interval,
    jackknife_weights,
    of_samples,
    percentile_interval,
    replicates,
    response_weights,
)
from calibration.intervals.replicates import JACKKNIFE_GROUPS
from calibration.scores import SCORES, ScoreRow
from calibration.scores.proper import mean_loss
from calibration.validation import Floats
from tests.calibration.coverage_simulation import coverage, draw
from tests.calibration.scipy_bootstrap import scipy_bootstrap
from tests.refusals import refused


def clustered(seed: int) -> tuple[Any, Any, Any]:
    return draw(np.random.default_rng(seed), n_responses=40)


def brier_of(sample: Sample) -> Floats:
    return np.array([mean_loss(sample, "brier")])


def same(first: tuple[ScoreRow, ...], second: tuple[ScoreRow, ...]) -> bool:
    return all(
        left == right or (isinstance(left, float) and math.isnan(left) and math.isnan(right))
        for one, other in zip(first, second, strict=True)
        for left, right in zip(asdict(one).values(), asdict(other).values(), strict=True)
    )


def test_rows_are_tidy() -> None:
    p, y, responses = clustered(0)
    rows = score_table(p, y, responses=responses, n_bootstrap=30, level=0.8)
    assert [row.score for row in rows] == list(SCORES)
    for row in rows:
        assert row.status == "ok", row.score
        assert math.isfinite(row.value)
        assert row.standard_error >= 0
        assert row.percentile_lower <= row.percentile_upper
        assert row.basic_lower == pytest.approx(2 * row.value - row.percentile_upper)
        assert row.basic_upper == pytest.approx(2 * row.value - row.percentile_lower)
        assert math.isnan(row.bca_lower)
        assert (row.level, row.resampled, row.n_bootstrap) == (0.8, "responses", 30)
        assert (row.n_atoms, row.n_responses) == (p.size, 40)
    import pandas

    frame = pandas.DataFrame([asdict(row) for row in rows])
    assert frame.shape == (len(SCORES), 17)


def test_some_scores_are_those_of_the_whole_table() -> None:
    p, y, responses = clustered(1)
    whole = {row.score: row for row in score_table(p, y, None, responses, 20)}
    names = ["auroc", "ici", "brier", "ici"]
    some = score_table(p, y, None, responses, 20, scores=names)
    assert [row.score for row in some] == ["auroc", "ici", "brier"]
    assert same(some, tuple(whole[row.score] for row in some))


def test_intervals_are_seeded_and_do_not_depend_on_threads() -> None:
    p, y, responses = clustered(2)
    first = score_table(p, y, None, responses, 25, 3, workers=1, bca=True)
    assert same(first, score_table(p, y, None, responses, 25, 3, workers=3, bca=True))
    assert not same(first, score_table(p, y, None, responses, 25, 4, workers=1, bca=True))


def test_intervals_are_those_of_scipy() -> None:
    p, y, responses = clustered(3)
    sums = np.bincount(responses, weights=(p - y) ** 2)
    sizes = np.bincount(responses)
    (row,) = score_table(p, y, None, responses, 20_000, level=0.9, scores=["brier"], bca=True)
    for method, lower, upper in (
        ("percentile", row.percentile_lower, row.percentile_upper),
        ("basic", row.basic_lower, row.basic_upper),
        ("BCa", row.bca_lower, row.bca_upper),
    ):
        theirs = scipy_bootstrap(sums, sizes, method)
        # A 5 % quantile of 20,000 normal numbers of standard deviation s has a Monte Carlo error
        # of s sqrt(0.05 * 0.95 / 20000) / 0.103 = 0.015 s; both have it, and BCa some more.
        tolerance = 0.12 * row.standard_error
        assert lower == pytest.approx(theirs.confidence_interval.low, abs=tolerance)
        assert upper == pytest.approx(theirs.confidence_interval.high, abs=tolerance)
        assert row.standard_error == pytest.approx(float(theirs.standard_error), rel=0.05)


def test_the_grouped_jackknife_has_the_acceleration_of_the_plain_one() -> None:
    generator = np.random.default_rng(4)
    n = 20 * JACKKNIFE_GROUPS
    p = np.round(generator.beta(0.3, 1.5, n), 3)
    points = forecasts(p, generator.random(n) < p**3)

    def acceleration(influence: Floats) -> float:
        centred = influence.mean() - influence
        return float((centred**3).sum() / (6 * (centred**2).sum() ** 1.5))

    def left_out(seed: int) -> Floats:
        weights = jackknife_weights(points.n_responses, seed)
        return replicates(of_samples(points, brier_of), weights)[:, 0]

    grouped = [acceleration(left_out(seed)) for seed in range(20)]
    assert len(left_out(0)) == JACKKNIFE_GROUPS
    losses = np.repeat(points.p, points.sizes) - points.y
    plain = acceleration(-(losses**2))
    # Each has a standard error of about 0.4 / 100; the mean of twenty of 0.001.
    assert np.mean(grouped) == pytest.approx(plain, abs=0.005)


def test_bca_where_replicates_say_little() -> None:
    still = np.full(10, 0.3)
    drawn = np.stack([still, np.linspace(0.4, 0.5, 10)], axis=1)
    lower, upper = bca_interval([0.3, 0.3], drawn, np.stack([still, still], axis=1), 0.95)
    assert (lower[0], upper[0]) == (0.3, 0.3)
    assert math.isnan(lower[1])
    assert math.isnan(upper[1])
    nothing = percentile_interval(np.array([[np.nan], [np.inf]]), 0.95)
    assert all(np.isnan(end).all() for end in nothing)


def test_replicates_draw_whole_responses() -> None:
    p, y, responses = clustered(5)
    points = forecasts(p, y, None, responses)
    total = of_samples(points, lambda sample: np.array([sample.total]))
    totals = replicates(total, response_weights(40, 50, seed=0))[:, 0]
    sizes = np.bincount(responses)
    assert np.ptp(totals) > 0
    by_hand = np.random.default_rng(0).integers(0, 40, (50, 40))
    assert totals.tolist() == sizes[by_hand].sum(axis=1).tolist()
    # Without responses, each replicate has as many atoms as the data.
    atoms = forecasts(p, y)
    total = of_samples(atoms, lambda sample: np.array([sample.total]))
    alone = replicates(total, response_weights(p.size, 5, seed=0))[:, 0]
    assert alone.tolist() == [p.size] * 5


DEGENERATE: list[tuple[str, Any, Any, dict[str, str]]] = [
    (
        "one class",
        [0.2, 0.5, 0.9],
        [1, 1, 1],
        {"auroc": "one_class", "auprc": "ok", "calibration_slope": "one_class"}
        | {"calibration_in_the_large": "one_class", "ici": "one_class", "brier": "ok"},
    ),
    ("no true atom", [0.2, 0.5, 0.9], [0, 0, 0], {"auprc": "one_class", "auroc": "one_class"}),
    (
        "constant",
        [0.3] * 4,
        [1, 0, 0, 1],
        {"calibration_slope": "constant_forecast", "calibration_in_the_large": "ok", "ici": "ok"}
        | {"auroc": "ok", "corp_brier_discrimination": "ok", "smooth_ece": "ok"},
    ),
    (
        "certain",
        [0.0, 1.0, 1.0, 0.0],
        [0, 1, 0, 1],
        {"log_loss": "infinite", "corp_log_loss_miscalibration": "infinite", "brier": "ok"}
        | {"spiegelhalter_z": "no_variance", "hosmer_lemeshow": "infinite"}
        | {"hosmer_lemeshow_p": "ok", "calibration_slope": "clipped"},
    ),
    (
        "one atom",
        [0.4],
        [1],
        {"brier": "ok", "murphy_reliability_corrected": "too_few_atoms"}
        | {"ece_debiased": "too_few_atoms", "auroc": "one_class", "aurc": "ok"},
    ),
    ("few atoms", [0.1, 0.4, 0.6], [0, 1, 0], {"rms_calibration_error_debiased": "too_few_atoms"}),
]


@pytest.mark.parametrize(
    ("p", "y", "statuses"),
    [case[1:] for case in DEGENERATE],
    ids=[case[0] for case in DEGENERATE],
)
def test_degenerate_forecasts_have_a_status_and_never_raise(
    p: Any, y: Any, statuses: dict[str, str]
) -> None:
    for responses in (None, list(range(len(p))), ["one"] * len(p)):
        rows = score_table(p, y, None, responses, n_bootstrap=12, bca=True)
        found = {row.score: row.status for row in rows}
        assert {name: found[name] for name in statuses} == statuses
        for row in rows:
            assert math.isfinite(row.value) == (row.status in {"ok", "clipped"}), row.score
            assert row.n_undefined <= 12
            if row.n_responses == 1:
                assert math.isnan(row.percentile_lower)


def test_intervals_leave_out_replicates_without_a_value() -> None:
    # Half of the replicates of two responses draw one of them twice, and so one class.
    p, y = [0.2, 0.3, 0.7, 0.8], [0, 0, 1, 1]
    (row,) = score_table(p, y, None, ["a", "a", "b", "b"], 200, scores=["auroc"])
    assert 70 < row.n_undefined < 130
    assert row.percentile_lower == row.percentile_upper == row.value == 1.0


def test_atoms_of_weight_zero_may_be_all_that_is_drawn() -> None:
    p, y = [0.2, 0.3, 0.7, 0.8], [0, 1, 1, 0]
    rows = score_table(p, y, [0, 0, 2, 3], ["a", "a", "b", "b"], 100, scores=["brier", "auroc"])
    # One replicate in four draws the first response twice.
    for row in rows:
        assert 5 < row.n_undefined < 50
        assert math.isfinite(row.percentile_lower)


def test_no_bootstrap_gives_no_intervals() -> None:
    (row,) = score_table([0.2, 0.7], [0, 1], n_bootstrap=0, scores=["brier"])
    assert row.value == pytest.approx(0.065, abs=1e-15)
    assert math.isnan(row.standard_error)
    assert math.isnan(row.percentile_lower)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"responses": ["a"]}, "lengths differ: p has 2, responses has 1"),
        ({"n_bootstrap": -1}, "n_bootstrap is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"level": 1}, "level is 1; give a number between 0 and 1"),
        ({"n_bins": 0}, "n_bins is 0"),
        ({"clip": 0.6}, "clip is 0.6"),
        ({"workers": 0}, "workers is 0"),
        ({"scores": "brier"}, "scores is the text 'brier'"),
        ({"scores": ["briar"]}, "scores has 'briar'; choose some of brier"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"p": [0.2, 0.7], "y": [0, 1], "n_bootstrap": 5}
    refused(message, score_table, **given | arguments)


def test_intervals_over_responses_cover_where_those_over_atoms_do_not() -> None:
    # The full simulation is `python -m tests.calibration.coverage_simulation`.
    n_simulations = 120
    rows = coverage(n_simulations, n_responses=80, n_bootstrap=150)
    for row in rows:
        if row.resampled == "responses":
            # Nominal 95 %, of which percentiles of 150 replicates over 80 responses keep about
            # 93; five standard deviations of 120 simulations are 11 points.
            assert row.share > 0.82, row
    # Atoms of a response repeat what the others say: the intercept has about half the width that
    # it needs, and covers about 70 %.
    naive = {row.score: row.share for row in rows if row.resampled == "atoms"}
    assert naive["calibration_intercept"] < 0.82
