"""Answers not yet asked for: field, law and order, each held to a calculation by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from calibration.unasked import (
    AnswerLaw,
    Answers,
    AskablePairs,
    Asked,
    early_stopped,
    learn_law,
    learn_variances,
    play,
    replay,
    stated_risk,
)
from calibration.unasked.fields import EFFECTS, REACH, FieldState, covariance
from calibration.unasked.law import evidence
from calibration.unasked.learning import ridge_logistic
from calibration.unasked.order import change_of_verdicts, values

VARIANCES = np.array([0.1, 0.3, 0.2, 0.1, 0.2, 0.1, 0.4])


def shared(pairs: AskablePairs) -> list[np.ndarray]:
    """For each of `EFFECTS`, (n, n): how much of it two pairs have in common."""
    claim, passage, sentence = (
        each[:, None] == each[None] for each in (pairs.claim, pairs.passage, pairs.sentence)
    )
    near = np.exp(-np.abs(pairs.sentence[:, None] - pairs.sentence[None]) / REACH)
    ones = np.ones(claim.shape)
    return [ones, 1.0 * claim, 1.0 * passage, 1.0 * sentence, 1.0 * (sentence & passage),
            passage * near]  # fmt: skip


def grid(claims: int = 4, passages: int = 3, per_sentence: int = 2) -> AskablePairs:
    """Every claim with every passage; a column of ones and one that differs."""
    passage, claim = (each.ravel() for each in np.indices((passages, claims)))
    columns = np.column_stack([np.ones(claim.size), (claim + passage) % 2])
    return AskablePairs(claim, passage, claim // per_sentence, columns, np.zeros(claims))


def drawn(pairs: AskablePairs, seed: int, variances: np.ndarray = VARIANCES) -> Answers:
    """Answers by the field itself: support above score 0, contradiction below -2.5."""
    joint = sum(v * part for v, part in zip(variances, shared(pairs), strict=False))
    joint = joint + variances[-1] * np.eye(pairs.size)
    generator = np.random.default_rng(seed)
    score = generator.multivariate_normal(pairs.columns @ [-1.2, 0.5], joint)
    return Answers(score, np.where(score > 0, 1.0, np.where(score < -2.5, -1.0, 0.0)))


def law(support: float = 1.7, contradiction: float = -4.0) -> AnswerLaw:
    """A law whose chance of support follows the score alone."""
    of_support, of_contradiction = np.zeros(6), np.zeros(6)
    of_support[0], of_contradiction[4] = support, contradiction
    mean = np.array([-1.2, 0.5])
    ones = np.ones((2, 1))
    shares, risk = np.array([0.2, 0.05]), np.array([0.0, 1.0])
    return AnswerLaw(mean, VARIANCES, of_support, of_contradiction, ones, shares, risk)


def test_covariances_are_sums_of_what_pairs_share() -> None:
    pairs = grid(6, 3)
    some, every = np.array([4, 0, 17]), np.arange(pairs.size)
    joint = sum(v * part for v, part in zip(VARIANCES, shared(pairs), strict=False))
    np.testing.assert_allclose(covariance(pairs, VARIANCES, some, every), joint[some])


def test_variances_solve_the_regression_of_products_of_residuals() -> None:
    """Written out with a matrix a response and effect; sentences with gaps, pairs in any order."""
    generator = np.random.default_rng(5)
    pairs = []
    for number in range(4):
        one = grid(8, 5)
        kept = generator.permutation(one.size)[: 30 + number]
        pairs.append(AskablePairs(one.claim[kept], one.passage[kept], 3 * one.sentence[kept],
                                  one.columns[kept], one.prior))  # fmt: skip
    scores = [drawn(each, number, 4 * VARIANCES).score for number, each in enumerate(pairs)]
    mean, found = learn_variances(pairs, scores)
    size = len(EFFECTS) + 1
    products, right = np.zeros((size, size)), np.zeros(size)
    for each, score in zip(pairs, scores, strict=True):
        rest = score - each.columns @ mean
        flat = np.stack([part.ravel() for part in (*shared(each), np.eye(each.size))])
        products += flat @ flat.T / each.size
        right += flat @ np.outer(rest, rest).ravel() / each.size
    free = found > 0
    slope = products @ found - right
    np.testing.assert_allclose(slope[free], 0, atol=1e-5 * np.abs(right).max())
    assert (slope[~free] > -1e-5 * np.abs(right).max()).all()


def test_the_field_is_the_normal_law_conditioned_on_all_answers_at_once() -> None:
    pairs, scores = grid(), drawn(grid(), 1).score
    state = FieldState(pairs, np.array([-1.2, 0.5]), VARIANCES)
    asked = [7, 0, 5, 11]
    for pair in asked:
        state.tell(pair, float(scores[pair]))
    joint = sum(v * part for v, part in zip(VARIANCES, shared(pairs), strict=False))
    noisy = np.linalg.inv(joint[np.ix_(asked, asked)] + VARIANCES[-1] * np.eye(4))
    start = pairs.columns @ [-1.2, 0.5]
    gain = joint[:, asked] @ noisy
    np.testing.assert_allclose(state.mean, start + gain @ (scores - start)[asked], atol=1e-10)
    left = (joint - gain @ joint[asked]).diagonal()
    np.testing.assert_allclose(state.variance, left, atol=1e-10)
    assert np.flatnonzero(state.asked).tolist() == sorted(asked)


def test_what_is_left_stays_as_it_was_and_the_rest_is_conditioned_as_before() -> None:
    pairs, scores = grid(), drawn(grid(), 2).score
    whole, part = law().start(pairs), law().start(pairs)
    wanted = pairs.claim > 1
    part.follow(wanted)
    before = part.mean[~wanted].copy()
    for pair in (2, 7):
        whole.tell(pair, float(scores[pair]))
        part.tell(pair, float(scores[pair]))
    np.testing.assert_allclose(part.mean[wanted], whole.mean[wanted], atol=1e-12)
    np.testing.assert_array_equal(part.mean[~wanted], before)


def test_draws_are_correlated_as_the_scores_are() -> None:
    pairs = grid(3, 2)
    state = law().start(pairs)
    state.tell(0, 1.0)
    found = np.corrcoef(state.draw(40_000, 0)[:, 1:].T)
    joint = sum(v * part for v, part in zip(VARIANCES, shared(pairs), strict=False))
    joint = joint - np.outer(joint[0], joint[0]) / (joint[0, 0] + VARIANCES[-1])
    joint = joint + VARIANCES[-1] * np.eye(pairs.size)
    scale = np.sqrt(joint.diagonal())
    # Four standard errors of a correlation from so many draws.
    np.testing.assert_allclose(found, (joint / np.outer(scale, scale))[1:, 1:], atol=0.02)


@pytest.mark.slow
def test_variances_are_those_that_scores_were_drawn_with() -> None:
    pairs = [grid(8, 6)] * 150
    mean, found = learn_variances(pairs, [drawn(each, k).score for k, each in enumerate(pairs)])
    np.testing.assert_allclose(mean, [-1.2, 0.5], atol=0.15)
    # What two pairs of a passage share is better known than which of nested effects it is.
    np.testing.assert_allclose(found.sum(), VARIANCES.sum(), rtol=0.05)
    np.testing.assert_allclose(found[1], VARIANCES[1], atol=0.06)
    np.testing.assert_allclose(found[[2, 4, 5]].sum(), VARIANCES[[2, 4, 5]].sum(), atol=0.06)
    np.testing.assert_allclose(found[-1], VARIANCES[-1], atol=0.03)


def test_logistic_regression_has_the_gradient_of_its_penalty() -> None:
    generator = np.random.default_rng(0)
    columns = np.column_stack([np.ones(200), generator.normal(size=(200, 2)) * [1, 10]])
    true = generator.random(200) < 0.2
    found = ridge_logistic(columns, true)
    p = 1 / (1 + np.exp(-columns @ found))
    gradient = columns.T @ (true - p)
    scale = columns.std(axis=0)
    np.testing.assert_allclose(gradient[0], 0, atol=1e-4)
    np.testing.assert_allclose(gradient[1:], (found * scale**2)[1:], atol=1e-5)
    assert np.isfinite(ridge_logistic(columns, np.zeros(200, dtype=np.bool_))).all()


@pytest.mark.parametrize("odds", [0.0, 0.5, 1.5, -0.5, -1.5])
def test_the_value_of_a_pair_is_the_chance_that_its_answer_turns_the_verdict(odds: float) -> None:
    pairs = grid(2, 2)
    state, now, none = law().start(pairs), np.full(2, odds), np.zeros(4)
    support, contradiction = law().chances(pairs, state, none)
    seen = evidence(pairs, state, none, law().shares)
    np.testing.assert_allclose(support, 1 / (1 + np.exp(-1.7 * seen[:, 0])))
    found = values(law(), pairs, state, now, none)
    for pair in range(4):
        turns = sum(
            p
            for p, weight in ((support[pair], 1.0), (contradiction[pair], -1.0))
            if (odds + weight > 0) != (odds > 0)
        )
        if odds < -1:
            # Two supports turn it: the other pair of the claim is asked if this one is a support.
            turns = support[pair] * support[(pair + 2) % 4] / (1 + support[pair])
        # The rest is the expected change of the posterior, which no verdict hangs on.
        assert 0 < found[pair] - turns < 1e-3


def test_half_of_the_supports_are_strong_enough_and_that_halves_the_value() -> None:
    pairs = grid(2, 3)
    two = replace(law(), strengths=np.array([[0.5, 1.5], [1.0, 1.0]]))
    state, none = two.start(pairs), np.zeros(6)
    support, _ = two.chances(pairs, state, none)
    # Claim 0 needs 1: the strong half turns it, and of the pairs of answers what is more than 1,
    # three in four (a strong one with either), of which one half turned it at once.
    found = values(two, pairs, state, np.array([-1.0, 0.0]), none)
    of_claim = support[[0, 2, 4]]
    other = np.array([np.delete(of_claim, k).max() for k in range(3)])
    by_hand = of_claim / 2 + of_claim * other / (1 + of_claim) / 4
    np.testing.assert_allclose(found[[0, 2, 4]], by_hand, atol=1e-3)
    np.testing.assert_allclose(found[[1, 3, 5]], support[[1, 3, 5]], atol=1e-3)


def test_drawn_weights_have_the_chances_and_strengths_of_their_law() -> None:
    two = replace(law(), strengths=np.array([[0.5, 1.5], [1.0, 3.0]]))
    uniform = (np.arange(1000) + 0.5)[:, None] / 1000
    found = two.drawn_weights(np.array([0.4, 1e-9]), np.array([0.2, 0.6]), uniform)
    shares = [
        [(found[:, k] == each).mean() for each in (1.5, 0.5, 0.0, -1.0, -3.0)] for k in (0, 1)
    ]
    np.testing.assert_allclose(
        shares, [[0.2, 0.2, 0.4, 0.1, 0.1], [0, 0, 0.4, 0.3, 0.3]], atol=0.002
    )
    # The higher a number, the more support.
    assert (np.diff(found, axis=0) >= 0).all()


def test_the_risk_of_a_claim_is_that_of_all_its_answers_enumerated() -> None:
    """Scores without anything in common: then answers are independent."""
    claim, passage, sentence = np.array([[0, 0, 0, 1], [0, 1, 2, 0], [0, 0, 0, 0]])
    pairs = AskablePairs(claim, passage, sentence, np.ones((4, 1)), np.zeros(2))
    coefficients = np.zeros(5), np.zeros(5)
    coefficients[0][4], coefficients[1][4] = -0.5, -1.0
    alone = AnswerLaw(np.zeros(1), np.array([0.0] * 6 + [1.0]), *coefficients,
                      np.array([[1.0], [2.0]]), np.array([0.2, 0.2]),
                      np.array([0.0, 1.0]))  # fmt: skip
    state, odds, none = alone.start(pairs), np.zeros(2), np.zeros(4)
    e, c = (each[0] for each in alone.chances(pairs, state, none))
    law_of_one = ((1.0, e), (-2.0, c), (0.0, 1 - e - c))
    by_hand = [
        sum(
            np.prod([p for _, p in each])
            for each in product(law_of_one, repeat=count)
            if sum(weight for weight, _ in each) > 0
        )
        for count in (3, 1)
    ]
    found = change_of_verdicts(alone, pairs, state, odds, none, draws=40_000)
    np.testing.assert_allclose(found, by_hand, atol=0.01)
    # Nothing is left to ask of the second claim.
    state.tell(3, 0.0)
    assert stated_risk(alone, pairs, state, odds, none)[1] == 0.0


def test_every_pair_is_asked_once_and_the_most_valuable_first() -> None:
    responses = [grid(), grid(3, 2), grid(2, 5)]
    answers = [drawn(each, number) for number, each in enumerate(responses)]
    order = play([law()] * 3, responses, answers)
    names = list(zip(order.response.tolist(), order.pair.tolist(), strict=True))
    every = [(r, p) for r, pairs in enumerate(responses) for p in range(pairs.size)]
    assert sorted(names) == every
    first = [values(law(), p, law().start(p), p.prior, np.zeros(p.size)) for p in responses]
    best = max(range(3), key=lambda number: first[number].max())
    assert names[0] == (best, int(first[best].argmax()))
    short = play([law()] * 3, responses, answers, 5)
    assert list(zip(short.response.tolist(), short.pair.tolist(), strict=True)) == names[:5]
    for number in range(3):
        own = order.pair[order.response == number]
        _, odds = replay(law(), responses[number], answers[number], own)
        expected = np.bincount(responses[number].claim, answers[number].weight)
        np.testing.assert_allclose(odds, expected)


def test_stopping_early_puts_off_what_decided_claims_would_be_asked() -> None:
    pairs = grid(2, 3)
    answers = Answers(np.zeros(6), np.array([1.0, 0, 0, 0, 1.0, 0]))
    order = Asked(np.zeros(6, dtype=np.int64), np.arange(6))
    # Claim 0 is decided by its first answer, claim 1 by none.
    found = early_stopped(order, [pairs], [answers], 0.5)
    assert found.pair.tolist() == [0, 1, 3, 5, 2, 4]


@pytest.mark.slow
def test_a_learned_law_states_risks_that_hold_and_beats_a_random_order() -> None:
    """Of responses that the law was not learned from."""
    responses = [grid(8, 6)] * 60
    answers = [drawn(each, number) for number, each in enumerate(responses)]
    learned = learn_law(responses[:30], answers[:30])
    again = learn_law(responses[:30], answers[:30])
    np.testing.assert_array_equal(learned.support, again.support)
    stated, changed, at_random = [], [], []
    generator = np.random.default_rng(0)
    for pairs, told in zip(responses[30:], answers[30:], strict=True):
        final = np.bincount(pairs.claim, told.weight) > 0
        order = play([learned], [pairs], [told], 12).pair
        state, odds = replay(learned, pairs, told, order)
        stated.append(stated_risk(learned, pairs, state, odds, told.weight))
        changed.append((odds > 0) != final)
        some = generator.permutation(pairs.size)[:12]
        seen = np.bincount(pairs.claim[some], told.weight[some], 8) > 0
        at_random.append(seen != final)
    risk, turned = np.concatenate(stated), np.concatenate(changed)
    assert turned.mean() < np.concatenate(at_random).mean() - 0.05
    # 240 claims: four standard errors of the mean.
    assert abs(risk.mean() - turned.mean()) < 4 * np.sqrt(0.25 / 240)
    assert turned[risk < np.median(risk)].mean() < turned[risk >= np.median(risk)].mean()
