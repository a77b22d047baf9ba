"""Quality of the log-probabilities of a probe's answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from factormodels.extraction.language_model import Completion, Token
from factormodels.extraction.language_model.log_probabilities import Unusable, spelled_tokens
from factormodels.extraction.probe.asking import Probed

_ROUNDING = 0.01
"""Excess of a sum of probabilities over 1 that rounding to bfloat16 can cause."""


@dataclass(frozen=True)
class LogProbabilityFacts:
    """Facts on the log-probabilities of some answers.

    Attributes:
        answers: number of answers with requested log-probabilities.
        given: number of these with log-probabilities.
        spelled: number of these whose tokens spell the answer.
        least_listed: minimum number of tokens listed at a position, including the chosen one; 0
            without log-probabilities.
        most_listed: maximum of that number.
        largest_sum: maximum sum of the probabilities listed at a position; NaN without
            log-probabilities.
        above_one: number of answers with a position whose probabilities sum to more than 1.
        spellings: for each label, number of distinct tokens that begin its word at the first
            position of an answer.
        repeated: number of questions that were asked twice.
        same: number of these with equal texts of both answers.
        largest_change: maximum difference between the two probabilities of the first token, if both
            answers begin with the same token; NaN if none do.
    """

    answers: int
    given: int
    spelled: int
    least_listed: int
    most_listed: int
    largest_sum: float
    above_one: int
    spellings: tuple[int, ...]
    repeated: int
    same: int
    largest_change: float


def log_probability_facts(probed: Probed, words: Sequence[str]) -> LogProbabilityFacts:
    """Collect facts on the log-probabilities of the answers to a probe.

    Args:
        probed: the answers.
        words: words for the probe's labels, in the order of the labels.
    """
    given = [answer for answer in probed.completions if answer.tokens]
    places = [token for answer in given for token in answer.tokens]
    sums = [_listed_sum(token) for token in places]
    listed = [len(_listed(token)) for token in places]
    firsts = {
        text for answer in given for text in _listed(answer.tokens[0]) if text.strip().isalpha()
    }
    changes = [
        abs(math.exp(first.tokens[0].log_probability) - math.exp(second.tokens[0].log_probability))
        for first, second in _pairs(probed)
        if first.tokens and second.tokens and first.tokens[0].text == second.tokens[0].text
    ]
    return LogProbabilityFacts(
        len(probed.completions),
        len(given),
        sum(not isinstance(spelled_tokens(answer), Unusable) for answer in given),
        min(listed, default=0),
        max(listed, default=0),
        max(sums, default=math.nan),
        sum(
            any(_listed_sum(token) > 1.0 + _ROUNDING for token in answer.tokens) for answer in given
        ),
        tuple(sum(word.startswith(text.strip().casefold()) for text in firsts) for word in words),
        len(probed.repeated),
        sum(first.text == second.text for first, second in _pairs(probed)),
        max(changes, default=math.nan),
    )


def _pairs(probed: Probed) -> list[tuple[Completion, Completion]]:
    return [
        (pair.first, pair.second) for pair in probed.repeated if isinstance(pair.second, Completion)
    ]


def _listed(token: Token) -> dict[str, float]:
    """Return the log-probabilities of the tokens at a position, including the chosen one."""
    return {token.text: token.log_probability, **dict(token.alternatives)}


def _listed_sum(token: Token) -> float:
    # A server may report NaN or a percentage, which cannot be summed.
    values = [value for value in _listed(token).values() if value <= 1.0]
    return math.fsum(math.exp(value) for value in values)
