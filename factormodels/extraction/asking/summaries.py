"""Summaries of passages: how the answers of the summariser are read."""

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
    """What a language model made of a passage.

    Attributes:
        text: what bears on the claims; empty where nothing does.
        confidence: how sure the model is of it, in [0, 1].
        fell_back: why the confidence is not that of the tokens, where it was to be.
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
    # What a model writes for null as often as not.
    return ContextSummary("" if words.strip(".").casefold() in ("none", "null") else words, stated)


stated_summary = json_reading(_of_value)
"""Reading of a summary with the confidence that the model states."""


def weighed_summary(
    answer: Completion, prompt: PromptTemplate, about: Any
) -> ContextSummary | Fault:
    """Return the summary with the confidence that its tokens show.

    The confidence is the geometric mean of the probabilities of the answer's tokens; it is as
    stated where they cannot be used.
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
