"""Parsers of summaries of passages: the answers of the summarizer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from factormodels.extraction.asking.readings import json_reading
from factormodels.extraction.asking.stage import Fault
from factormodels.extraction.language_model import Completion
from factormodels.extraction.language_model.answers import read_confidence
from factormodels.extraction.language_model.log_probabilities import (
    Unusable,
    spelled_tokens,
    token_log_probabilities,
)
from factormodels.extraction.prompts import PromptTemplate


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """A language model's summary of a passage.

    Attributes:
        text: the part that bears on the claims; empty if there is none.
        confidence: the model's confidence in the summary, in [0, 1].
        fell_back: reason why the confidence was not computed from the tokens; empty if it was, or
            need not be.
    """

    text: str
    confidence: float
    fell_back: str = ""


def _of_value(value: Any, _about: Any) -> ContextSummary | None:
    if not isinstance(value, dict) or "summary" not in value:
        return None
    text, stated = value["summary"], read_confidence(value.get("confidence"))
    if stated is None or not (text is None or isinstance(text, str)):
        return None
    words = " ".join((text or "").split())
    # Models often write "none" for null.
    return ContextSummary("" if words.strip(".").casefold() in ("none", "null") else words, stated)


stated_summary = json_reading(_of_value)
"""Parser of a summary with the confidence that the model states."""


def weighed_summary(
    answer: Completion, prompt: PromptTemplate, about: Any
) -> ContextSummary | Fault:
    """Return the summary with a confidence computed from its tokens.

    The confidence is the geometric mean of the probabilities of the answer's tokens, or the stated
    one if the tokens are unusable.
    """
    summary = stated_summary(answer, prompt, about)
    if isinstance(summary, Fault):
        return summary
    tokens = spelled_tokens(answer)
    values = (
        tokens
        if isinstance(tokens, Unusable)
        else token_log_probabilities(tokens, 0, len(answer.text))
    )
    if isinstance(values, Unusable):
        return replace(summary, fell_back=str(values))
    return replace(summary, confidence=math.exp(math.fsum(values) / len(values)))
