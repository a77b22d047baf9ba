"""Learning the law of answers from responses whose pairs were all asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil

import numpy as np
from numpy.typing import NDArray

from calibration.scores.logistic import sigmoid
from calibration.unasked.fields import AskablePairs, learn_variances
from calibration.unasked.law import MOVING, TIE, AnswerLaw, Answers, evidence
from calibration.unasked.order import Step, ask_in_order, change_of_verdicts
from calibration.validation import Floats, Integers

_PENALTY = 1.0
_LEAST_SHARE = 1e-4

_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Of the weights of supports, and of contradictions, that stand for all."""

_STOPS, _RISK_STOPS = 6, 3
"""At how many random moments of a response chances, and risks, are learned from."""

_PLAYED = 0.5
"""The share of a response's pairs up to which the order is played: little is open after that."""


def learn_law(
    responses: Sequence[AskablePairs], answers: Sequence[Answers], *, seed: int = 0, rounds: int = 1
) -> AnswerLaw:
    """The law of answers, from responses whose pairs were all asked.

    Variances first; then chances, by logistic regression on what would have been seen while asking
    in order of value; then the calibration of stated risks, from responses asked to random ends.

    Args:
        responses: pairs of each response.
        answers: answers to them.
        seed: seed of what is drawn.
        rounds: how often the order is played and chances are learned from it.
    """
    mean, variances = learn_variances(responses, [each.score for each in answers])
    weights = np.concatenate([each.weight for each in answers])
    supported, contradicted = weights > 0, weights < 0
    shares = np.clip([supported.mean(), contradicted.mean()], _LEAST_SHARE, 1.0)
    strengths = np.array([
        np.quantile(weight if weight.size else [1.0], _QUANTILES)
        for weight in (weights[supported], -weights[contradicted])
    ])  # fmt: skip
    generator = np.random.default_rng(seed)
    width = MOVING + responses[0].columns.shape[1]
    start = np.zeros(width)
    start[0] = 1.7  # the logistic function is nearly the normal one of 1.7 times its argument
    none = np.zeros(width)
    none[MOVING] = np.log(shares[1] / (1 - shares[1]))
    law = AnswerLaw(mean, variances, start, none, strengths, shares, np.array([0.0, 1.0]))
    seen: list[Floats] = []
    true: list[Integers] = []

    def stopped(pairs: AskablePairs, told: Answers, count: int) -> Iterator[tuple[int, Step]]:
        last = ceil(_PLAYED * pairs.size)
        stops = set(generator.integers(0, last, count).tolist()) if last else set()
        steps = enumerate(islice(ask_in_order(law, pairs, told), last))
        return ((number, step) for number, step in steps if number in stops)

    for _ in range(rounds):
        for pairs, told in zip(responses, answers, strict=True):
            for _, (state, left, odds) in stopped(pairs, told, _STOPS):
                # What is learned is needed where it decides: of claims that are still open.
                open_claims = np.where(
                    odds > TIE, odds <= strengths[1].max(), odds > -strengths[0].max()
                )
                kept = left & open_claims[pairs.claim]
                seen.append(evidence(pairs, state, told.weight, shares)[kept])
                true.append(np.sign(told.weight[kept]).astype(np.int64))
        columns, signs = np.concatenate(seen), np.concatenate(true)
        law = replace(
            law,
            support=ridge_logistic(columns, signs > 0),
            contradiction=ridge_logistic(columns, signs < 0),
        )
    stated: list[Floats] = []
    changed: list[Floats] = []
    for pairs, told in zip(responses, answers, strict=True):
        final = pairs.prior + np.bincount(pairs.claim, told.weight, pairs.prior.size)
        for number, (state, left, odds) in stopped(pairs, told, _RISK_STOPS):
            drawn = change_of_verdicts(law, pairs, state, odds, told.weight, seed=number)
            # What is wholly asked cannot change, and teaches nothing.
            kept = np.bincount(pairs.claim[left], minlength=odds.size) > 0
            stated.append(drawn[kept])
            changed.append(((odds > TIE) != (final > TIE))[kept].astype(np.float64))
    risks, truth = np.concatenate(stated), np.concatenate(changed)
    columns = np.column_stack([np.ones(risks.size), np.log(risks / (1 - risks))])
    return replace(law, risk=ridge_logistic(columns, truth > 0))


def ridge_logistic(columns: Floats, true: NDArray[np.bool_]) -> Floats:
    """Coefficients of a logistic regression with a small quadratic penalty, by Newton's method.

    Args:
        columns: (n, k); columns that do not vary are intercepts, and are not penalised.
        true: bool (n,).
    """
    scale = columns.std(axis=0)
    fixed = scale < 1e-12
    scale = np.where(fixed, 1.0, scale)
    scaled = columns / scale
    penalty = np.where(fixed, 1e-6, _PENALTY)
    found = np.zeros(columns.shape[1])
    for _ in range(50):
        p = sigmoid(scaled @ found)
        gradient = scaled.T @ (true - p) - penalty * found
        curvature = (scaled * (p * (1 - p))[:, None]).T @ scaled + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        # Far steps overshoot where nearly all labels are equal.
        found = found + step * min(1.0, 5.0 / max(1e-12, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-7:
            break
    return found / scale
