"""In which order to ask, what may still change, and the orders that others use."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.scores.logistic import sigmoid
from calibration.unasked.fields import AskablePairs, FieldState
from calibration.unasked.law import TIE, AnswerLaw, Answers
from calibration.validation import Floats, Integers

_CHANGE = 1e-3
"""What a change of a posterior that flips no verdict is worth, beside a flip."""

DRAWS = 200

Step = tuple[FieldState, NDArray[np.bool_], Floats]
"""The field, which pairs were not asked, and log odds of claims."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The order in which the pairs of several responses were asked.

    Attributes:
        response: int64 (n,), number of the response.
        pair: int64 (n,), number of the pair in it.
    """

    response: Integers
    pair: Integers


def values(
    law: AnswerLaw, pairs: AskablePairs, state: FieldState, odds: Floats, weight: Floats
) -> Floats:
    """What asking each pair is worth, (n,): the chance that its answer turns its claim's verdict.

    Of a claim that two supports turn and none alone, the chance of both, a call: that of the pair
    and that of the likeliest other. Where none does, a thousandth of the expected change of the
    posterior, so that they come later, and the nearest to a turn first. What was asked has -1.

    Args:
        law: the law of answers.
        pairs: the pairs.
        state: their field, conditioned on the answers so far.
        odds: (n_claims,), log odds of claims by the answers so far.
        weight: (n,), weights of answers; those of pairs that were not asked play no part.
    """
    support, contradiction = law.chances(pairs, state, weight)
    up, down = odds + law.strengths[0][:, None], odds - law.strengths[1][:, None]
    p, true = sigmoid(odds), odds > TIE
    by_support = ((~true & (up > TIE)) + _CHANGE * (sigmoid(up) - p)).mean(axis=0)
    by_contradiction = ((true & (down <= TIE)) + _CHANGE * (p - sigmoid(down))).mean(axis=0)
    worth = support * by_support[pairs.claim] + contradiction * by_contradiction[pairs.claim]
    worth[state.asked] = -1.0
    both = odds + np.add.outer(*law.strengths[[0, 0]]).reshape(-1, 1)
    two = np.maximum((~true & (both > TIE)).mean(axis=0) - (~true & (up > TIE)).mean(axis=0), 0.0)
    some = np.flatnonzero((two > 0)[pairs.claim] & ~state.asked)
    if some.size:
        worth[some] += two[pairs.claim[some]] * _of_two(support[some], pairs.claim[some])
    found: Floats = worth
    return found


def _of_two(support: Floats, claim: Integers) -> Floats:
    """The chance that a pair and the likeliest other of its claim support it, a call.

    The other is asked only if the first supports the claim.
    """
    order = np.lexsort((-support, claim))
    starts = np.flatnonzero(np.diff(claim[order], prepend=-1))
    sizes = np.diff(starts, append=order.size)
    other = np.empty(order.size)
    other[order] = np.repeat(support[order[starts]], sizes)
    seconds = starts[sizes > 1] + 1
    other[order[starts]] = 0.0
    other[order[seconds - 1]] = support[order[seconds]]
    return support * other / (1 + support)


def ask_in_order(law: AnswerLaw, pairs: AskablePairs, answers: Answers) -> Iterator[Step]:
    """Ask the pairs of a response one by one in order of value; yield before every question.

    Args:
        law: the law of answers.
        pairs: the pairs.
        answers: what each would be answered, which is not looked at before it is asked.
    """
    state, odds = law.start(pairs), pairs.prior.copy()
    for _ in range(pairs.size):
        yield state, ~state.asked, odds
        _ask(law, pairs, state, odds, answers)


def _ask(
    law: AnswerLaw, pairs: AskablePairs, state: FieldState, odds: Floats, answers: Answers
) -> int:
    chosen = int(values(law, pairs, state, odds, answers.weight).argmax())
    tell(law, pairs, state, odds, chosen, answers)
    return chosen


def tell(
    law: AnswerLaw,
    pairs: AskablePairs,
    state: FieldState,
    odds: Floats,
    pair: int,
    answers: Answers,
) -> None:
    """Take in the answer to a pair: the field and the log odds of its claim change in place."""
    state.tell(pair, float(answers.score[pair]))
    odds[pairs.claim[pair]] += answers.weight[pair]
    near = (odds <= TIE) & (odds > -2 * law.strengths[0].max())
    state.follow(near[pairs.claim])


def play(
    laws: Sequence[AnswerLaw],
    responses: Sequence[AskablePairs],
    answers: Sequence[Answers],
    most: int | None = None,
) -> Asked:
    """The order in which the pairs of all responses would be asked, the most valuable first.

    Args:
        laws: the law for each response.
        responses: pairs of each.
        answers: what each would be answered.
        most: end after so many; None: when all are asked.
    """
    states = [law.start(pairs) for law, pairs in zip(laws, responses, strict=True)]
    odds = [pairs.prior.copy() for pairs in responses]
    total = sum(pairs.size for pairs in responses)
    waiting: list[tuple[float, int, int]] = []

    def wait(number: int) -> None:
        law, pairs, state = laws[number], responses[number], states[number]
        worth = values(law, pairs, state, odds[number], answers[number].weight)
        chosen = int(worth.argmax())
        heapq.heappush(waiting, (-float(worth[chosen]), number, chosen))

    for number, pairs in enumerate(responses):
        if pairs.size:
            wait(number)
    order: list[tuple[int, int]] = []
    while waiting and len(order) < (total if most is None else most):
        _, number, chosen = heapq.heappop(waiting)
        law, pairs, state = laws[number], responses[number], states[number]
        tell(law, pairs, state, odds[number], chosen, answers[number])
        order.append((number, chosen))
        if not state.asked.all():
            wait(number)
    found = np.array(order, dtype=np.int64).reshape(-1, 2)
    return Asked(found[:, 0], found[:, 1])


def replay(
    law: AnswerLaw, pairs: AskablePairs, answers: Answers, asked: Integers
) -> tuple[FieldState, Floats]:
    """The field of a response and the log odds of its claims after some answers.

    Args:
        law: the law of answers.
        pairs: the pairs.
        answers: answers to them.
        asked: numbers of the pairs that were asked, in order.
    """
    state, odds = law.start(pairs), pairs.prior.copy()
    for pair in asked.tolist():
        tell(law, pairs, state, odds, pair, answers)
    return state, odds


def change_of_verdicts(
    law: AnswerLaw,
    pairs: AskablePairs,
    state: FieldState,
    odds: Floats,
    weight: Floats,
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> Floats:
    """For each claim the share of completions, drawn from the law, that turn its verdict.

    A half is added to both counts, so that no share is 0 or 1.

    Args:
        law: the law of answers.
        pairs: the pairs.
        state: their field, conditioned on the answers so far.
        odds: (n_claims,), log odds of claims by the answers so far.
        weight: (n,), weights of answers; those of pairs that were not asked play no part.
        seed: seed of the completions.
        draws: number of completions.
    """
    from scipy.special import ndtr

    left = np.flatnonzero(~state.asked)
    support, contradiction = law.chances(pairs, state, weight)
    uniform = ndtr(state.draw(draws, seed)[:, left])
    added = law.drawn_weights(support[left], contradiction[left], uniform)
    # Sums by claim: the pairs are put in the order of their claims.
    by_claim = np.argsort(pairs.claim[left], kind="stable")
    claims, starts = np.unique(pairs.claim[left][by_claim], return_index=True)
    turned = np.zeros(odds.size)
    if left.size:
        sums = np.add.reduceat(added[:, by_claim], starts, axis=1)
        now = odds[claims]
        turned[claims] = ((now + sums > TIE) != (now > TIE)).sum(axis=0)
    share: Floats = (turned + 0.5) / (draws + 1.0)
    return share


def stated_risk(
    law: AnswerLaw,
    pairs: AskablePairs,
    state: FieldState,
    odds: Floats,
    weight: Floats,
    *,
    seed: int = 0,
) -> Floats:
    """For each claim, (n_claims,): how likely its verdict is to change if all pairs were asked.

    Shares of completions (see `change_of_verdicts`), calibrated on the responses that the law was
    learned from. A claim with nothing left to ask has 0.
    """
    share = change_of_verdicts(law, pairs, state, odds, weight, seed=seed)
    risk = sigmoid(law.risk[0] + law.risk[1] * np.log(share / (1 - share)))
    left = np.bincount(pairs.claim[~state.asked], minlength=odds.size)
    return np.where(left > 0, risk, 0.0)


def early_stopped(
    order: Asked,
    responses: Sequence[AskablePairs],
    answers: Sequence[Answers],
    limit: float = 0.5,
) -> Asked:
    """An order with what is asked of decided claims put last.

    Args:
        order: the order, such as that of the retriever's ranks.
        responses: pairs of each response.
        answers: answers to them.
        limit: a claim is decided once its log odds have moved by so much.
    """
    moved = [np.zeros(pairs.prior.size) for pairs in responses]
    late = np.zeros(order.pair.size, dtype=np.bool_)
    for place, (number, pair) in enumerate(zip(order.response, order.pair, strict=True)):
        claim = responses[number].claim[pair]
        late[place] = abs(moved[number][claim]) >= limit
        if not late[place]:
            moved[number][claim] += answers[number].weight[pair]
    kept = np.argsort(late, kind="stable")
    return Asked(order.response[kept], order.pair[kept])
