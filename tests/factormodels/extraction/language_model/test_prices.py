"""Prices of tokens, from the list that comes with litellm."""

from __future__ import annotations

import pytest

from factormodels.extraction.language_model.prices import model_prices


@pytest.mark.slow
def test_a_listed_model_has_prices_with_or_without_its_provider() -> None:
    prices = model_prices("openai/gpt-4o-mini")
    assert prices is not None
    assert prices == model_prices("gpt-4o-mini")
    # An answer's token costs more than a question's, and both far less than a cent.
    assert 0 < prices[0] < prices[1] < 0.01


def test_another_model_has_none() -> None:
    assert model_prices("openai/never-heard-of") is None
    assert model_prices("") is None
