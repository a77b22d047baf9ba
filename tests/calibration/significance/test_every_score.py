"""Comparisons in scores that are not sums over responses, against computations of another kind."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibration.forecasts import pooled
from calibration.grouping import group_by_response
from calibration.scores import (
    auprc,
    auroc,
    calibration_error,
    calibration_line,
    corp_decomposition,
    smooth_ece,
)
from calibration.scores.definition import JudgedClaims
from calibration.scores.families.ranking import clustered_auroc
from calibration.scores.families.selective import risk_areas
from calibration.scores.registry import response_k
from calibration.significance import compare_judged, score_difference
from calibration.significance.bootstrap import bootstrap_scores
from calibration.significance.outcome import Alternative
from calibration.significance.permutation import permute_scores
from tests.calibration.references import r_claims, r_values
from tests.calibration.scored import QUICK, compared, models
from tests.refusals import refused

SCORES: dict[str, Callable[[Any, Any], float]] = {
    "auroc": auroc,
    "auprc": auprc,
    "ece": calibration_error,
    "smooth_ece": smooth_ece,
    "corp_brier_miscalibration": lambda p, y: corp_decomposition(p, y).miscalibration,
    "corp_brier_discrimination": lambda p, y: corp_decomposition(p, y).discrimination,
    "calibration_slope": lambda p, y: calibration_line(p, y).slope,
    "aurc": lambda p, y: risk_areas(pooled(p, y), "verdict")[0],
}


def judged(p: Any, y: Any, responses: Any, folds: Any = None) -> JudgedClaims:
    grouping = group_by_response(responses)
    fold = None if folds is None else group_by_response(folds).index
    return JudgedClaims(p, np.asarray(y, float), grouping, response_k(1, grouping), fold)


def few(seed: int, n_responses: int = 5) -> tuple[Any, Any, Any, Any]:
    """Two methods' probabilities, labels and responses of claims in few responses."""
    given = models(seed, n_responses)
    methods = given["methods"]
    return methods["sharp"], methods["blunt"], given["y"], given["responses"]


def of_all_swaps(score: Callable[[Any], float], p: Any, q: Any, responses: Any) -> list[float]:
    """The difference of two methods in a score for every swap of responses, at first for none."""
    differences = []
    for swaps in itertools.product([False, True], repeat=responses.max() + 1):
        swapped = np.array(swaps)[responses]
        first, second = np.where(swapped, q, p), np.where(swapped, p, q)
        differences.append(score(first) - score(second))
    return differences


@pytest.mark.parametrize("name", SCORES)
def test_permutations_are_all_swaps_of_whole_responses(name: str) -> None:
    p, q, y, responses = few(0)
    differences = of_all_swaps(lambda each: SCORES[name](each, y), p, q, responses)
    observed = differences[0]
    # A tie with the observed difference counts; it is the same number in another order of sums.
    sides = {
        Alternative.TWO_SIDED: np.mean(np.abs(differences) >= abs(observed) - 1e-9),
        Alternative.GREATER: np.mean(np.array(differences) >= observed - 1e-9),
        Alternative.LESS: np.mean(np.array(differences) <= observed + 1e-9),
    }
    for side, expected in sides.items():
        permuted = permute_scores(
            judged(p, y, responses), judged(q, y, responses), [name], [side],
            n_permutations=32, seed=0,
        )  # fmt: skip
        assert permuted[0] == pytest.approx(expected, abs=1e-12)


def test_drawn_permutations_are_near_all_of_them() -> None:
    p, q, y, responses = few(1, n_responses=8)
    sides = judged(p, y, responses), judged(q, y, responses)
    both = [Alternative.TWO_SIDED] * 2
    names = ["auroc", "ece"]
    exact = permute_scores(*sides, names, both, n_permutations=256, seed=0)
    drawn = permute_scores(*sides, names, both, n_permutations=255, seed=0)
    # 255 draws of a share have a standard deviation of at most 0.032.
    np.testing.assert_allclose(drawn, exact, atol=0.13)


@pytest.mark.parametrize("name", ["auroc", "ece", "calibration_slope"])
def test_permutation_holds_its_level_where_methods_do_not_differ(name: str) -> None:
    generator = np.random.default_rng(2)
    n_runs, rejected = 60, 0
    for _ in range(n_runs):
        responses = np.repeat(np.arange(6), generator.integers(3, 8, 6))
        level = generator.normal(0, 1, 6)[responses]
        y = generator.random(responses.size) < 1 / (1 + np.exp(-level))
        p, q = 1 / (1 + np.exp(-(level + generator.normal(0, 1, (2, responses.size)))))
        if y.all() or not y.any():
            continue
        permuted = permute_scores(
            judged(p, y, responses), judged(q, y, responses), [name], [Alternative.TWO_SIDED],
            n_permutations=64, seed=0,
        )  # fmt: skip
        rejected += permuted[0] <= 1 / 8
    # 60 exact tests at 1/8 reject 7.5 times, with a standard deviation of 2.6.
    assert rejected <= 7.5 + 4 * 2.6


def test_the_bootstrap_moves_its_replicates_to_no_difference() -> None:
    p, q, y, responses = few(3, n_responses=12)
    sides = judged(p, y, responses), judged(q, y, responses)
    bootstrapped = bootstrap_scores(
        *sides, ["auroc"], [Alternative.TWO_SIDED], n_bootstrap=60, seed=1
    )[0]
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 12, (60, 12))
    places = [np.flatnonzero(responses == each) for each in range(12)]
    drawn = []
    for row in rows:
        rows_of_draw = np.concatenate([places[each] for each in row])
        drawn.append(
            auroc(p[rows_of_draw], y[rows_of_draw]) - auroc(q[rows_of_draw], y[rows_of_draw])
        )
    observed = auroc(p, y) - auroc(q, y)
    extreme = np.abs(np.array(drawn) - np.mean(drawn)) >= abs(observed)
    assert bootstrapped == pytest.approx((1 + extreme.sum()) / 61, abs=1e-12)


def test_auroc_of_single_claims_is_that_of_delong() -> None:
    p, q, y, _ = r_claims()
    alone = group_by_response(range(y.size))
    areas, covariance = clustered_auroc([p, q], y.astype(float), alone)
    # pROC sums in another order.
    np.testing.assert_allclose(areas, r_values("pROC", "auroc"), atol=1e-12)
    np.testing.assert_allclose(np.diag(covariance), r_values("pROC", "auroc_variance"), rtol=1e-10)
    (expected,) = r_values("pROC", "auroc_covariance")
    assert covariance[0, 1] == pytest.approx(expected, rel=1e-10)
    table = compared({"p": p, "q": q}, y, range(y.size), scores=["auroc"], n_resamples=50)
    gap = table.difference("q", "auroc")
    # Student's t of 127 degrees against DeLong's normal law.
    from scipy.stats import norm, t

    error = (gap.upper - gap.value) / t.ppf(0.975, 127)
    p_value = 2 * norm.sf(abs(gap.value) / error)
    assert p_value == pytest.approx(r_values("pROC", "auroc_p_value")[0], abs=1e-9)


def obuchowski(methods: list[Any], y: Any, responses: Any) -> Any:
    """Covariance of AUROCs as Obuchowski 1997 writes it, by loops over pairs and clusters."""
    true, false = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    clusters = np.unique(responses)
    kernels = []
    for p in methods:
        difference = p[true][:, np.newaxis] - p[false]
        kernels.append(np.where(difference > 0, 1.0, np.where(difference == 0, 0.5, 0.0)))
    area = [kernel.mean() for kernel in kernels]
    own_true = [np.array(responses)[true] == each for each in clusters]
    own_false = [np.array(responses)[false] == each for each in clusters]
    n_true = sum(each.any() for each in own_true)
    n_false = sum(each.any() for each in own_false)
    m, n, size = true.size, false.size, len(clusters)

    def of_true(k: int, i: int) -> float:
        return float(kernels[k].mean(axis=1)[own_true[i]].sum() - own_true[i].sum() * area[k])

    def of_false(k: int, i: int) -> float:
        return float(kernels[k].mean(axis=0)[own_false[i]].sum() - own_false[i].sum() * area[k])

    covariance = np.empty((2, 2))
    for r, s in itertools.product(range(2), repeat=2):
        every = range(size)
        s10 = n_true / ((n_true - 1) * m) * sum(of_true(r, i) * of_true(s, i) for i in every)
        s01 = n_false / ((n_false - 1) * n) * sum(of_false(r, i) * of_false(s, i) for i in every)
        s11 = size / (size - 1) * sum(of_true(r, i) * of_false(s, i) for i in every)
        s11 += size / (size - 1) * sum(of_true(s, i) * of_false(r, i) for i in every)
        covariance[r, s] = s10 / m + s01 / n + s11 / (m * n)
    return covariance


def test_clustered_auroc_is_that_of_obuchowski() -> None:
    p, q, y, responses = r_claims()
    p = np.round(p, 1)  # Ties.
    areas, covariance = clustered_auroc([p, q], y.astype(float), group_by_response(responses))
    np.testing.assert_allclose(covariance, obuchowski([p, q], y, responses), rtol=1e-10)
    assert areas[0] == pytest.approx(auroc(p, y), abs=1e-12)


def test_auroc_within_folds_compares_claims_of_one_fold() -> None:
    p, q, y, responses = few(4, n_responses=9)
    folds = np.asarray(responses) % 3
    counts = [
        (np.sum(np.sign(p[a][:, np.newaxis] - p[b]) / 2 + 0.5), a.size * b.size)
        for fold in range(3)
        for a, b in [(np.flatnonzero((folds == fold) & y), np.flatnonzero((folds == fold) & ~y))]
    ]
    expected = sum(each[0] for each in counts) / sum(each[1] for each in counts)
    assert auroc(p, y, folds=folds) == pytest.approx(expected, abs=1e-12)
    table = compared(
        {"p": p, "q": q}, y, responses, scores=["auroc"], folds=folds, n_resamples=40,
    )  # fmt: skip
    score_of_p = table["p", "auroc"]
    assert score_of_p.value == pytest.approx(expected, abs=1e-12)
    assert score_of_p.lower < score_of_p.value < score_of_p.upper
    both = permute_scores(
        judged(p, y, responses, folds), judged(q, y, responses, folds), ["auroc"],
        [Alternative.TWO_SIDED], n_permutations=512, seed=0,
    )  # fmt: skip
    swaps = of_all_swaps(lambda each: auroc(each, y, folds=folds), p, q, responses)
    assert both[0] == pytest.approx(np.mean(np.abs(swaps) >= abs(swaps[0]) - 1e-9), abs=1e-12)


def test_a_cross_fitted_base_rate_ranks_nothing_within_folds() -> None:
    generator = np.random.default_rng(5)
    areas = []
    for _ in range(40):
        responses = np.repeat(np.arange(40), 8)
        y = generator.random(320) < 0.5 + 0.15 * generator.normal(size=40)[responses]
        folds = responses % 5
        total = np.array([y[folds != fold].mean() for fold in range(5)])
        p = total[folds]
        areas.append(auroc(p, y))
        assert auroc(p, y, folds=folds) == 0.5
    # Pooled, what knows nothing looks worse than chance, always.
    assert np.mean(areas) < 0.46
    assert max(areas) <= 0.5


def test_within_folds_the_variance_is_that_of_folds_apart() -> None:
    generator = np.random.default_rng(6)
    parts = []
    for _ in range(2):
        responses = np.repeat(np.arange(60), 4)
        y = (generator.random(240) < 0.5).astype(float)
        parts.append((generator.random(240) + 0.3 * y, y, responses))
    whole = [np.concatenate(each) for each in zip(*parts, strict=True)]
    folds = np.repeat([0, 1], 240)
    grouping = group_by_response(whole[2] + 100 * folds)
    area, covariance = clustered_auroc([whole[0]], whole[1], grouping, folds)
    apart = [
        (clustered_auroc([p], y, group_by_response(responses)), y.sum() * (1 - y).sum())
        for p, y, responses in parts
    ]
    share = np.array([pairs for _, pairs in apart]) / sum(pairs for _, pairs in apart)
    values = np.array([each[0][0] for each, _ in apart])
    variances = np.array([each[1][0, 0] for each, _ in apart])
    assert area[0] == pytest.approx(share @ values, abs=1e-12)
    # Folds share no response; the one formula measures from the common value and divides by 119.
    assert covariance[0, 0] == pytest.approx(float(share**2 @ variances), rel=0.03)


@pytest.mark.parametrize("test", ["permutation", "bootstrap"])
def test_every_measure_takes_as_many_resamples_as_were_asked_for(test: str) -> None:
    given = models(7)
    names = ["brier", "auroc", "ece", "calibration_slope", "smooth_ece"]
    table = compared(**given, scores=names, test=test, n_resamples=37)
    for name in names:
        counts = table.difference("sharp", name).p_value * 38
        if test == "permutation" or name != "brier":
            assert counts == pytest.approx(round(counts), abs=1e-9), name
        assert table.difference("sharp", name).n_resamples == 37
    assert f"(37 {'swaps' if test == 'permutation' else 'replicates'})" in table.stars_note


def test_few_responses_use_every_swap_and_report_their_number() -> None:
    table = compared(**models(7, 5), scores=["brier", "auroc"], n_resamples=100)
    for name in table.tested:
        assert table.difference("sharp", name).n_resamples == 32
        counts = table.difference("sharp", name).p_value * 32
        assert counts == pytest.approx(round(counts), abs=1e-9), name


def test_every_score_has_an_interval_and_a_p_value_in_one_call() -> None:
    given = models(7)
    names = ["auroc", "auprc", "ece", "corp_brier_miscalibration", "calibration_slope", "aurc"]
    table = compared(**given, scores=names, n_resamples=100)
    p_values = []
    for name in names:
        gap = table.difference("sharp", name)
        assert gap.value == pytest.approx(
            SCORES[name](given["methods"]["sharp"], given["y"])
            - SCORES[name](given["methods"]["blunt"], given["y"]),
            abs=1e-9,
        )
        assert gap.lower < gap.value < gap.upper
        p_values.append(gap.p_value)
        same = table.difference("same", name)
        assert (same.value, same.p_value, gap.n_resamples) == (0, 1, 100)
    assert min(p_values) == pytest.approx(1 / 101)
    assert table.difference("sharp", "auroc").better is True
    assert table.difference("sharp", "calibration_slope").better is None


def test_interval_of_a_calibration_error_uses_recentered_redraws() -> None:
    p, q, y, responses = few(12, n_responses=14)
    sizes, total = np.bincount(responses), y.size
    drawn = []
    for each in (p, q):
        bin_of = np.minimum((each * 10).astype(int), 9)
        sums = np.zeros((14, 10))
        np.add.at(sums, (responses, bin_of), y - each)
        mean = sums.sum(axis=0) / total
        # A response's residual is too small by its share of the mean.
        influences = (sums - sizes[:, np.newaxis] * mean) / np.sqrt(1 - sizes / total)[
            :, np.newaxis
        ]
        generator = np.random.default_rng(3)
        values = []
        for row in generator.integers(0, 14, (400, 14)):
            counts = np.bincount(row, minlength=14)
            values.append(np.abs(mean + (counts - 1) @ influences / (counts @ sizes)).sum())
        drawn.append(np.array(values))
    error = np.std(drawn[0] - drawn[1])
    difference = score_difference("ece", p, q, y, responses, n_bootstrap=400, seed=3, level=0.5)
    assert difference.method == "redrawn"
    assert difference.value == pytest.approx(calibration_error(p, y) - calibration_error(q, y))
    assert difference.standard_error == pytest.approx(error, rel=1e-9)
    from scipy.stats import t

    half = t.ppf(0.75, sizes.sum() ** 2 / (sizes**2).sum() - 1) * error
    assert difference.upper - difference.value == pytest.approx(half, rel=1e-9)
    assert difference.value - difference.lower == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("name", ["ece", "smooth_ece", "e90", "corp_brier_miscalibration"])
def test_methods_that_hardly_differ_have_a_narrow_interval(name: str) -> None:
    p, _, y, responses = few(13, n_responses=14)
    difference = score_difference(name, p, np.clip(p + 1e-7, 0, 1), y, responses, n_bootstrap=100)
    assert -1e-5 < difference.lower <= difference.value <= difference.upper < 1e-5


def test_without_a_fold_of_both_classes_there_is_no_auroc() -> None:
    p, q, y, responses = few(14, n_responses=9)
    table = compared(
        {"p": p, "q": q}, y, responses, scores=["auroc"], folds=y.astype(int), n_resamples=20
    )
    for name in ("p", "q"):
        assert math.isnan(table[name, "auroc"].value)
        assert table[name, "auroc"].status == "one_class"


def test_interval_over_different_claims_is_the_jackknife() -> None:
    p, q, y, responses = few(8, n_responses=10)
    keep = np.arange(y.size) % 4 > 0
    first, second = judged(p[keep], y[keep], responses[keep]), judged(q, y, responses)
    (compared,) = compare_judged(first, second, ["ece"], n_resamples=50, intervals=QUICK)
    left = []
    for gone in range(10):
        kept_here, other = (responses != gone) & keep, responses != gone
        left.append(
            calibration_error(p[kept_here], y[kept_here]) - calibration_error(q[other], y[other])
        )
    error = math.sqrt(9 / 10 * np.sum((np.array(left) - np.mean(left)) ** 2))
    from scipy.stats import t

    for level in (0.5, 0.95):
        settings = replace(QUICK, level=level)
        (compared,) = compare_judged(first, second, ["ece"], n_resamples=50, intervals=settings)
        half = t.ppf((1 + level) / 2, 9) * error
        reached = compared.upper - compared.value, compared.value - compared.lower
        # A wide interval is cut where no resample of the responses reaches.
        least = half if level == 0.5 else 0.7 * half
        assert all(least * (1 - 1e-9) < each < half * (1 + 1e-9) for each in reached)


def test_no_interval_of_a_difference_leaves_what_a_score_can_be() -> None:
    y = np.array([True, False] * 6)
    responses = np.repeat(range(6), 2)
    p, q = np.where(y, 0.9, 0.1), np.where(y, 0.1, 0.9)
    p[:2], q[2:4] = [0.1, 0.9], [0.9, 0.1]
    keep = np.arange(12) < 11
    others = judged(p[keep], y[keep], responses[keep]), judged(q, y, responses)
    comparison = compare_judged(*others, ["auroc", "ece"], n_resamples=20, intervals=QUICK)
    first, second = (judged(each, y, responses, responses % 2) for each in (p, q))
    comparison += compare_judged(first, second, ["auroc"], n_resamples=20, intervals=QUICK)
    for each in comparison:
        assert -1 <= each.lower <= each.value <= each.upper <= 1, each


def test_one_response_cannot_be_tested() -> None:
    p, q, y, _ = few(9)
    table = compared({"p": p, "q": q}, y, ["x"] * y.size, scores=["auroc", "ece"])
    for name in ("auroc", "ece"):
        gap = table.difference("q", name)
        assert math.isnan(gap.p_value)
        assert gap.status == "too_few_responses"


def test_bad_folds_are_named() -> None:
    p, q, y, responses = few(10)
    refused("model 'p': lengths differ: p has .*, folds has 2", compared,
            {"p": p, "q": q}, y, responses, scores=["auroc"], folds=[0, 1])  # fmt: skip
