"""Answers not yet asked for: their law, what each is worth, and in which order to ask.

A pair is a passage and a claim. What a relation model would say of it has a predictive
distribution, from what is cheap to know and from the answers so far:

    fields    pairs, and a Gaussian field over their scores: conditioning on answers, variances
    law       the law of an answer
    order     asking in order of value, the risk that is left, and the orders of others
    learning  the law, from responses whose pairs were all asked

No model is asked here, and no graph is known: arrays in, arrays out.
"""

from __future__ import annotations

from calibration.unasked.fields import AskablePairs, FieldState, learn_variances
from calibration.unasked.law import AnswerLaw, Answers
from calibration.unasked.learning import learn_law
from calibration.unasked.order import Asked, ask_in_order, early_stopped, play, replay, stated_risk

__all__ = [
    "AnswerLaw",
    "Answers",
    "AskablePairs",
    "Asked",
    "FieldState",
    "ask_in_order",
    "early_stopped",
    "learn_law",
    "learn_variances",
    "play",
    "replay",
    "stated_risk",
]
