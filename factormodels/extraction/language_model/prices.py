"""Prices of tokens, given by the user or from the list that comes with litellm."""

from __future__ import annotations

import math
from typing import NamedTuple

from factormodels.errors import InputError
from factormodels.extraction.language_model import Usage
from factormodels.extraction.language_model.litellm_library import quiet_litellm

_MILLION = 1_000_000


class Prices(NamedTuple):
    """US dollars per token.

    Attributes:
        question: price of a token of a question.
        answer: price of a token of an answer.
        prefix: price of a token of a question from the server's prefix cache; None: as `question`.
    """

    question: float
    answer: float
    prefix: float | None = None

    def of(self, usage: Usage) -> float:
        """Return the US dollars for the usage of a call."""
        prefix = self.question if self.prefix is None else self.prefix
        return (
            (usage.prompt_tokens - usage.prefix_tokens) * self.question
            + usage.prefix_tokens * prefix
            + usage.completion_tokens * self.answer
        )


def model_prices(model: str) -> Prices | None:
    """Return the prices of a model's tokens; None if they are not listed.

    Args:
        model: the model as litellm spells it, with or without its provider.

    Raises:
        MissingDependencyError: if litellm is not installed.
    """
    listed = quiet_litellm().model_cost
    known = listed.get(model) or listed.get(model.partition("/")[2]) or {}
    question, answer = known.get("input_cost_per_token"), known.get("output_cost_per_token")
    if not isinstance(question, int | float) or not isinstance(answer, int | float):
        return None
    prefix = known.get("cache_read_input_token_cost")
    return Prices(
        float(question), float(answer), float(prefix) if isinstance(prefix, int | float) else None
    )


def prices_per_million(price_in: float | None, price_out: float | None) -> Prices | None:
    """Return prices from US dollars per million tokens of questions and answers; None without both.

    Raises:
        InputError: if only one price is given, or a value is not a price.
    """
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("one price of tokens is missing; give both --price-in and --price-out")
    for name, price in (("price_in", price_in), ("price_out", price_out)):
        if not 0.0 <= price < math.inf:
            raise InputError(f"{name} is {price}; give US dollars per million tokens, from 0")
    return Prices(price_in / _MILLION, price_out / _MILLION)
