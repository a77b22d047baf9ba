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
    jackknife_error,
    jackknife_weights,
    of_samples,
    percentile_interval,
    replicates,
    response_weights,
)
from calibration.intervals.replicates import JACKKNIFE_GROUPS
from calibration.scores import SCORES, ScoreRow
from calibration.scores.pointwise import mean_loss
from calibration.validation import Floats
from tests.calibration.coverage_simulation import draw
from tests.refusals import refused


def clustered(seed: int) -> tuple[Any, Any, Any]:
    return draw(np.random.default_rng(seed), 40)


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
        assert row.standard_error > 0
        assert row.lower < row.upper
        assert (row.level, row.resampled, row.n_bootstrap) == (0.8, "responses", 30)
        assert (row.n_atoms, row.n_responses) == (p.size, 40)
    import pandas

    frame = pandas.DataFrame([asdict(row) for row in rows])
    assert frame.shape == (len(SCORES), 16)


def test_some_scores_are_those_of_the_whole_table() -> None:
    p, y, responses = clustered(1)
    whole = {row.score: row for row in score_table(p, y, None, responses, 20)}
    names = ["auroc", "e90", "brier", "e90"]
    some = score_table(p, y, None, responses, 20, scores=names)
    assert [row.score for row in some] == ["auroc", "e90", "brier"]
    assert same(some, tuple(whole[row.score] for row in some))


def test_intervals_are_seeded_and_do_not_depend_on_threads() -> None:
    p, y, responses = clustered(2)
    first = score_table(p, y, None, responses, 25, 3, workers=1)
    assert same(first, score_table(p, y, None, responses, 25, 3, workers=3))
    assert not same(first, score_table(p, y, None, responses, 25, 4, workers=1))


def test_the_jackknife_of_a_mean_has_its_standard_error() -> None:
    generator = np.random.default_rng(4)
    p = generator.random(60)
    points = forecasts(p, generator.random(60) < p)
    left_out = replicates(of_samples(points, brier_of), jackknife_weights(60, seed=0))
    losses = (np.repeat(points.p, points.sizes) - points.y) ** 2
    assert jackknife_error(left_out)[0] == pytest.approx(losses.std(ddof=1) / math.sqrt(60))
    # Of many responses groups are left out, one of which has about as much to say.
    n = 20 * JACKKNIFE_GROUPS
    p = generator.random(n)
    points = forecasts(p, generator.random(n) < p)
    errors = []
    for seed in range(20):
        left_out = replicates(of_samples(points, brier_of), jackknife_weights(n, seed))
        assert len(left_out) == JACKKNIFE_GROUPS
        errors.append(jackknife_error(left_out)[0])
    losses = (np.repeat(points.p, points.sizes) - points.y) ** 2
    # Each has a relative error of 1 / sqrt(200) = 0.07, the mean of twenty of 0.016.
    assert np.mean(errors) == pytest.approx(losses.std(ddof=1) / math.sqrt(n), rel=0.06)


def test_percentiles_of_no_finite_replicate_are_none() -> None:
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
        | {"calibration_in_the_large": "one_class", "e90": "one_class", "brier": "ok"},
    ),
    ("no true atom", [0.2, 0.5, 0.9], [0, 0, 0], {"auprc": "one_class", "auroc": "one_class"}),
    (
        "constant",
        [0.3] * 4,
        [1, 0, 0, 1],
        {"calibration_slope": "constant_forecast", "calibration_in_the_large": "ok", "e90": "ok"}
        | {"auroc": "ok", "corp_brier_discrimination": "ok", "smooth_ece": "ok"},
    ),
    (
        "certain",
        [0.0, 1.0, 1.0, 0.0],
        [0, 1, 0, 1],
        {"log_loss": "infinite", "brier": "ok", "calibration_slope": "clipped"},
    ),
    (
        "one atom",
        [0.4],
        [1],
        {"brier": "ok", "ece_debiased": "too_few_atoms", "auroc": "one_class", "aurc": "ok"},
    ),
    ("few atoms", [0.1, 0.4, 0.6], [0, 1, 0], {"ece_debiased": "too_few_atoms"}),
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
        rows = score_table(p, y, None, responses, n_bootstrap=12)
        found = {row.score: row.status for row in rows}
        assert {name: found[name] for name in statuses} == statuses
        for row in rows:
            assert math.isfinite(row.value) == (row.status in {"ok", "clipped"}), row.score
            assert row.n_undefined <= 12
            if row.n_responses == 1:
                assert math.isnan(row.lower)


def test_a_score_that_no_resample_moves_has_no_interval() -> None:
    p, y = [0.2, 0.3, 0.7, 0.8], [0, 0, 1, 1]
    (row,) = score_table(p, y, None, ["a", "a", "b", "b"], 200, scores=["auroc"])
    assert (row.value, row.status) == (1.0, "ok")
    assert all(map(math.isnan, row.interval))


@pytest.mark.parametrize("n_responses", [2, 4, 10, 30])
@pytest.mark.parametrize("p_true", [0.9, 1.0, None])
def test_no_interval_of_perfectly_separated_claims_is_a_point(
    n_responses: int, p_true: float | None
) -> None:
    y = np.tile([True, True, True, False, False, False], n_responses)
    p = np.where(y, p_true, 1.0 - p_true) if p_true else np.full(y.size, 0.5)
    rows = score_table(p, y, responses=np.repeat(np.arange(n_responses), 6), n_bootstrap=200)
    told = 0
    for row in rows:
        assert not row.upper - row.lower < 1e-9, row.score
        without = math.isfinite(row.value) and math.isnan(row.lower)
        assert bool(row.no_interval) == without, row.score
        told += row.no_interval == "no redraw of the responses moves it"
    # All but those of the base rate, which has Wilson's, and what is not defined.
    assert told >= 8


def test_one_response_has_no_interval() -> None:
    (row,) = score_table([0.2, 0.7], [False, True], responses=["r", "r"], scores=["brier"])
    assert row.no_interval == "fewer than two responses"


def test_atoms_of_weight_zero_do_not_count() -> None:
    p, y = [0.2, 0.3, 0.7, 0.8, 0.6], [0, 1, 1, 0, 1]
    names = ["brier", "auroc", "ece"]
    ids = ["a", "a", "b", "c", "c"]
    with_zero = score_table([*p, 0.9], [*y, 0], [1] * 5 + [0], [*ids, "a"], 100, scores=names)
    for row, other in zip(with_zero, score_table(p, y, None, ids, 100, scores=names), strict=True):
        assert row.interval == pytest.approx(other.interval, rel=1e-12)


def test_no_bootstrap_gives_no_intervals() -> None:
    (row,) = score_table([0.2, 0.7], [0, 1], n_bootstrap=0, scores=["brier"])
    assert row.value == pytest.approx(0.065, abs=1e-15)
    assert math.isnan(row.standard_error)
    assert math.isnan(row.lower)


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
