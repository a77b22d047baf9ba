"""The law of an answer that was not asked for: support, contradiction or neither."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.scores.logistic import sigmoid
from calibration.unasked.fields import AskablePairs, FieldState
from calibration.validation import Floats

_SCORE_LIMIT = 6.0

TIE = 1e-9
"""Log odds up to here are no verdict of true: what nothing is known of is not supported."""

MOVING = 4
"""How many numbers of a pair move with the answers; its columns follow them."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What a relation model answers to the pairs of one response.

    Attributes:
        score: float64 (n,), log odds of entailment.
        weight: float64 (n,), what the relation adds to the log odds of its claim: above 0 for
            support, below for contradiction, 0 for neither.
    """

    score: Floats
    weight: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", np.clip(self.score, -_SCORE_LIMIT, _SCORE_LIMIT))


@dataclass(frozen=True, eq=False)
class AnswerLaw:
    """What is learned of answers across responses.

    Attributes:
        mean: float64 (d,), coefficients of the columns in the mean score.
        variances: float64 (7,), of `fields.EFFECTS` and of noise.
        support: float64 (k,), coefficients of the log odds of support; empty before learned.
        contradiction: float64 (k,), those of contradiction.
        strengths: float64 (2, k), weights of a support, rising, each as likely as the next, and
            of a contradiction (above 0).
        shares: float64 (2,), share of supports and of contradictions.
        risk: float64 (2,), intercept and slope that calibrate the log odds of stated risks.
    """

    mean: Floats
    variances: Floats
    support: Floats
    contradiction: Floats
    strengths: Floats
    shares: Floats
    risk: Floats

    def start(self, pairs: AskablePairs) -> FieldState:
        """The field of a response before any answer."""
        return FieldState(pairs, self.mean, self.variances)

    def chances(
        self, pairs: AskablePairs, state: FieldState, weight: Floats
    ) -> tuple[Floats, Floats]:
        """Chance of support and of contradiction of every pair, (n,) each.

        Args:
            pairs: the pairs.
            state: their field, conditioned on the answers so far.
            weight: (n,), weights of answers; those of pairs that were not asked play no part.
        """
        moving = moving_evidence(state, weight, self.shares)
        by = np.array([self.support, self.contradiction]).T
        # Columns stay as they are, so that they are never copied.
        found = sigmoid(moving @ by[:MOVING] + pairs.columns @ by[MOVING:])
        return found[:, 0], found[:, 1]

    def drawn_weights(self, support: Floats, contradiction: Floats, uniform: Floats) -> Floats:
        """Weights of answers with these chances, (..., n): the higher a number, the more support.

        Args:
            support: (n,), chance of support.
            contradiction: (n,), chance of contradiction.
            uniform: (..., n), numbers drawn between 0 and 1.
        """
        count = self.strengths.shape[1]
        # Where in the chance of its kind a number is says how strong the answer is.
        most = np.clip((uniform - 1 + support) / support, 0.0, 1 - 1e-12)
        least = np.clip((contradiction - uniform) / contradiction, 0.0, 1 - 1e-12)
        found = np.where(
            uniform > 1 - support, self.strengths[0][(most * count).astype(np.int64)], 0.0
        )
        found -= np.where(
            uniform < contradiction, self.strengths[1][(least * count).astype(np.int64)], 0.0
        )
        return found


def moving_evidence(state: FieldState, weight: Floats, shares: Floats) -> Floats:
    """(n, 4): the score in standard deviations above 0, what is above -2 of it, and how often
    pairs of the response so far were answered with support, and contradiction."""
    standard = state.mean / np.sqrt(state.variance + state.noise)
    told = weight[state.asked]
    found = np.array([(told > 0).sum(), (told < 0).sum()])
    often = np.log((found + 5 * shares) / (told.size + 5))
    moving = np.empty((standard.size, MOVING))
    moving[:, 0], moving[:, 1] = np.maximum(standard, -6.0), np.maximum(standard + 2.0, 0.0)
    moving[:, 2:] = often
    return moving


def evidence(pairs: AskablePairs, state: FieldState, weight: Floats, shares: Floats) -> Floats:
    """(n, 4 + d): what moves with the answers (see `moving_evidence`), and the columns."""
    return np.column_stack([moving_evidence(state, weight, shares), pairs.columns])
