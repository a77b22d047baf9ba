"""Conformal filtering: by hand, against the definition, and its coverage in simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from calibration.filtering.conformal import (
    ConformalStatus,
    conformal_filter,
    conformity_scores,
    exchangeability,
    filtered_precision,
    held_out,
)
from calibration.grouping import group_by_response
from factormodels import datasets, variant
from factormodels.errors import InputError
from inference import infer_batch
from tests.refusals import refused


def responses_of(seed: int, n_responses: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return p, y and response ids; p is poorly calibrated, and claims share their response."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 12, n_responses)
    responses = np.repeat(np.arange(n_responses), sizes)
    easy = generator.normal(0, 1, n_responses)[responses]
    logit = easy + generator.normal(0, 1.5, responses.size)
    y = generator.random(responses.size) < 1 / (1 + np.exp(-logit))
    p = 1 / (1 + np.exp(-(2.5 * logit + generator.normal(0, 1, responses.size) + 1)))
    # Two decimals, as language models say them, give ties.
    return np.round(p, 2), y, responses


def naive_score(p: np.ndarray, y: np.ndarray, target: float) -> float:
    """The least threshold, -inf or a probability, from which on precision never falls short."""
    candidates = [-math.inf, *sorted(set(p.tolist()))]

    def precise(threshold: float) -> bool:
        kept = y[p > threshold]
        return kept.size == 0 or bool(kept.mean() >= target - 1e-12)

    good = [all(precise(other) for other in candidates if other >= each) for each in candidates]
    return float(candidates[good.index(True)])


@pytest.mark.parametrize("target", [1.0, 0.8, 0.5])
def test_scores_are_those_of_the_definition(target: float) -> None:
    p, y, responses = responses_of(0, 80)
    scores = conformity_scores(p, y.astype(float), group_by_response(responses), target)
    for response in range(80):
        of_response = responses == response
        assert scores[response] == naive_score(p[of_response], y[of_response], target)


def test_threshold_by_hand() -> None:
    # Scores: x keeps its claims above 0.6 (its wrong one), y all, z above 0.3.
    p = [0.9, 0.6, 0.2, 0.8, 0.5, 0.3]
    y = [True, False, True, True, True, False]
    responses = ["x", "x", "x", "y", "z", "z"]
    # Ranks of (3 + 1) confidence: the first, second and third smallest of -inf, 0.3 and 0.6.
    for confidence, threshold in ((0.25, -math.inf), (0.5, 0.3), (0.75, 0.6)):
        result = conformal_filter(p, y, responses, confidence=confidence)
        assert result.threshold == threshold
    assert result.keep([0.6, 0.61]).tolist() == [False, True]
    assert conformal_filter(p, y, responses, confidence=0.25).status is ConformalStatus.KEEPS_ALL
    many = conformal_filter(p, y, responses, confidence=0.8)
    assert many.status is ConformalStatus.KEEPS_NONE
    assert not many.keep([1.0]).any()
    # Half of the claims right is enough in x and z at any threshold.
    half = conformal_filter(p, y, responses, precision=0.5, confidence=0.75)
    assert half.threshold == -math.inf


def test_rounding_moves_no_rank() -> None:
    # Scores of 99 responses of one false claim each are their probabilities: the rank at k/100 is
    # k, although 100 times 0.07, 0.14, 0.28, 0.55 and others are above k in doubles.
    p = np.arange(1, 100) / 128
    for k in range(1, 100):
        chosen = conformal_filter(p, np.zeros(99), np.arange(99), confidence=k / 100)
        assert chosen.threshold == p[k - 1]


def test_rounding_refuses_no_precision() -> None:
    # 0.1 * 3 is above 3/10 in doubles, and 10 * (1 - 0.9) below 1.
    p, y = np.full(90, 0.5), np.tile([1.0] * 3 + [0.0] * 7, 9)
    responses = np.repeat(np.arange(9), 10)
    some = conformal_filter(p, y, responses, precision=0.1 * 3, confidence=0.5)
    assert some.status is ConformalStatus.KEEPS_ALL
    assert held_out(p, y, responses, precision=0.1 * 3, confidence=0.5, n_splits=3).reached == 1.0
    sure = conformal_filter(p, np.ones(90), responses, precision=0.9, guarantee="mean")
    assert sure.status is ConformalStatus.KEEPS_ALL
    short = conformal_filter(p, np.ones(90), responses, precision=0.901, guarantee="mean")
    assert short.status is ConformalStatus.KEEPS_NONE


def test_precision_need_not_fall_with_the_threshold() -> None:
    # The surest claim is wrong: only above it is there no fault.
    result = conformal_filter([0.9, 0.5, 0.4], [False, True, True], ["x"] * 3, confidence=0.5)
    assert result.threshold == 0.9
    lenient = conformal_filter(
        [0.9, 0.5, 0.4], [False, True, True], ["x"] * 3, precision=0.6, confidence=0.5
    )
    # All three have 2/3, but the threshold 0.5 keeps the wrong one alone.
    assert lenient.threshold == 0.9


@pytest.mark.parametrize("precision", [1.0, 0.75])
def test_coverage_is_what_is_promised_and_little_more(precision: float) -> None:
    confidence, n_calibration, trials = 0.8, 59, 60
    p, y, responses = responses_of(1, 12_000)
    scores = conformity_scores(p, y.astype(float), group_by_response(responses), precision)
    covered = total = 0
    for trial in range(trials):
        calibration_part = slice(200 * trial, 200 * trial + n_calibration)
        there = slice(200 * trial + n_calibration, 200 * (trial + 1))
        first = np.isin(responses, np.arange(12_000)[calibration_part])
        result = conformal_filter(
            p[first], y[first], responses[first], precision=precision, confidence=confidence
        )
        assert result.n_responses == n_calibration
        met = scores[there] <= result.threshold
        in_test = np.isin(responses, np.arange(12_000)[there])
        kept = result.keep(p[in_test])
        reached = filtered_precision(kept, y[in_test], responses[in_test]) >= precision - 1e-12
        # What the score promises is kept, and more may be reached by chance.
        assert (reached >= met).all()
        covered += int(met.sum())
        total += met.size
    # Coverage of a trial varies by sqrt(0.8 0.2/60) = 0.052 with its calibration and by 0.034 with
    # its 141 responses, its mean over 60 trials by 0.008. It is at least 0.8, and above by up to
    # 1/60 and by what ties add.
    assert 0.8 - 4 * 0.008 < covered / total < 0.8 + 1 / 60 + 0.01 + 4 * 0.008


def naive_mean_threshold(
    p: np.ndarray, y: np.ndarray, responses: np.ndarray, allowed: float
) -> float:
    """Conformal risk control by trying every threshold."""
    candidates = [-math.inf, *sorted(set(p.tolist())), math.inf]
    ids = np.unique(responses)

    def losses(scores: np.ndarray) -> np.ndarray:
        kept = [y[scores][p[scores] > other] for other in candidates]
        return np.array([1 - float(each.mean()) if each.size else 0.0 for each in kept])

    of_responses = [losses(responses == each) for each in ids]
    for number, threshold in enumerate(candidates):
        # The worst of each response at this threshold and above.
        total = sum(float(each[number:].max()) for each in of_responses)
        if (total + 1) / (ids.size + 1) <= allowed + 1e-12:
            return float(threshold)
    return math.inf


@pytest.mark.parametrize("target", [0.5, 0.7, 0.85, 0.99])
@pytest.mark.parametrize("seed", [2, 3])
def test_mean_threshold_is_that_of_the_definition(seed: int, target: float) -> None:
    p, y, responses = responses_of(seed, 25)
    result = conformal_filter(p, y, responses, precision=target, guarantee="mean")
    assert result.threshold == naive_mean_threshold(p, y, responses, 1 - target)
    assert math.isnan(result.confidence)


def test_mean_precision_is_what_is_promised() -> None:
    p, y, responses = responses_of(4, 12_000)
    reached, kept_share = [], []
    for trial in range(60):
        first = (responses >= 200 * trial) & (responses < 200 * trial + 60)
        there = (responses >= 200 * trial + 60) & (responses < 200 * (trial + 1))
        result = conformal_filter(
            p[first], y[first], responses[first], precision=0.85, guarantee="mean"
        )
        kept = result.keep(p[there])
        reached.append(filtered_precision(kept, y[there], responses[there]).mean())
        kept_share.append(kept.mean())
    error = np.std(reached) / math.sqrt(60)
    assert np.mean(reached) > 0.85 - 4 * error
    # The promise is kept by filtering some claims, not all.
    assert 0.2 < np.mean(kept_share) < 0.95
    assert filtered_precision(np.ones(y.size, dtype=bool), y, responses).mean() < 0.75


def test_precision_of_nothing_is_one() -> None:
    assert filtered_precision([0, 0, 1], [0, 1, 0], ["x", "x", "y"]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": 0}, "precision is 0; give a number above 0"),
        ({"precision": 1.1}, "precision is 1.1"),
        ({"confidence": 1}, "confidence is 1"),
        (
            {"guarantee": "always"},
            "guarantee is 'always'; choose one of probability, mean, coherent",
        ),
        ({"guarantee": "mean"}, "precision is 1, which cannot be promised in the mean"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    refused(message, conformal_filter, [0.5, 0.6], [True, False], ["x", "y"], **settings)


def test_bad_arrays() -> None:
    with pytest.raises(InputError, match=r"y\[1\] is unlabeled"):
        conformal_filter([0.5, 0.6], [True, None], ["x", "y"], unlabeled="error")
    refused("responses has 1", conformal_filter, [0.5, 0.6], [True, False], ["x"])
    refused(r"p\[0\] is 5.0", conformal_filter([0.5], [True], ["x"]).keep, [5.0])


@cache
def real_claims(data: str) -> tuple[np.ndarray, list[bool | None], list[str]]:
    """Probabilities, labels and responses of an embedded dataset."""
    graphs = datasets.load(data).graphs
    atoms = [(graph, atom) for graph in graphs for atom in graph.atoms]
    if data == "selfcheck":
        votes = [graph.metadata["votes"][atom.id] for graph, atom in atoms]
        p = np.array([each.upper().count("Y") / len(each) for each in votes])
    else:
        factors = [variant(graph, "FR1").to_factor_graph() for graph in graphs]
        answers = zip(graphs, infer_batch(factors, "exact"), strict=True)
        parts = [
            posterior.marginals.flat[1 : 2 * len(graph.atoms) : 2] for graph, posterior in answers
        ]
        p = np.concatenate(parts)
    return p, [atom.label for _, atom in atoms], [graph.id for graph, _ in atoms]


@pytest.mark.parametrize("data", ["factscore", "selfcheck"])
@pytest.mark.parametrize("guarantee", ["probability", "mean"])
def test_promises_hold_over_halves_of_real_responses(data: str, guarantee: str) -> None:
    results = held_out(
        *real_claims(data),
        precision=0.7,
        confidence=0.8,
        guarantee=guarantee,
    )
    # Means over 200 halves that overlap: a hundredth for what is left of chance.
    if guarantee == "probability":
        assert results.reached >= 0.8 - 0.01
    else:
        assert results.precision >= 0.7 - 0.01


def test_new_responses_that_look_otherwise_are_found() -> None:
    generator = np.random.default_rng(0)
    responses = np.repeat(np.arange(80), 5)
    p, same, other = generator.random(400), generator.random(400), generator.random(400) ** 3
    assert min(exchangeability(p, responses, same, responses).values()) > 0.05
    assert exchangeability(p, responses, other, responses)["mean probability"] < 1e-6
    # Bonferroni's three times the p-value of scipy's test on one number a response, at most 1.
    nearly = np.sqrt(same)
    expected = (
        3 * ks_2samp(p.reshape(80, 5).mean(axis=1), nearly.reshape(80, 5).mean(axis=1)).pvalue
    )
    test_result = exchangeability(p, responses, nearly, responses)
    assert test_result["mean probability"] == pytest.approx(expected, rel=1e-9)
    assert test_result["number of claims"] == 1.0
    short = np.repeat(np.arange(100), 4)
    assert exchangeability(p, responses, same, short)["number of claims"] < 1e-6
    with pytest.raises(InputError, match="one labeled response"):
        held_out(p[:5], [True] * 5, ["a"] * 5)


def test_shares_without_empty_responses_are_those_of_responses_that_keep_a_claim() -> None:
    generator = np.random.default_rng(3)
    responses = np.repeat(np.arange(40), 4)
    p = generator.random(160)
    y = generator.random(160) < p
    trial = held_out(p, y, responses, precision=0.7, confidence=0.8, n_splits=1, seed=5)
    first = np.isin(responses, np.random.default_rng(5).permutation(40)[:20])
    chosen = conformal_filter(
        *(p[first], y[first].tolist(), responses[first]), precision=0.7, confidence=0.8
    )
    kept = chosen.keep(p[~first])
    precisions = filtered_precision(kept, y[~first].tolist(), responses[~first])
    some = kept.reshape(20, 4).any(axis=1)
    assert 0 < some.sum() < 20
    assert trial.reached_nonempty == pytest.approx((precisions[some] >= 0.7).mean())
    assert trial.faultless_nonempty == pytest.approx((precisions[some] == 1).mean())
    assert trial.precision_nonempty == pytest.approx(precisions[some].mean())
    assert trial.reached_nonempty < trial.reached
    assert math.isnan(replace(trial, empty=1.0, reached=1.0).reached_nonempty)
