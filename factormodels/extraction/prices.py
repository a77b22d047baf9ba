"""What a provider asks for a token, from the list that comes with litellm."""

from __future__ import annotations

from factormodels.extraction.litellm_model import quiet_litellm


def model_prices(model: str) -> tuple[float, float] | None:
    """US dollars per token of a question and of an answer; None if they are not listed.

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
    return float(question), float(answer)
