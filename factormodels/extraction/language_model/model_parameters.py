"""Parameters of requests that a model takes, as listed by litellm or refused by its server."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from factormodels.errors import InputError
from factormodels.extraction.language_model import LOG_PROBABILITIES
from factormodels.extraction.language_model.litellm_library import quiet_litellm

TEMPERATURE, SEED = "temperature", "seed"
STRUCTURE = "response_format"
"""Name of the parameter that enforces a JSON schema, in providers' interfaces."""

LENGTHS = ("max_tokens", "max_completion_tokens")
"""Two names of the maximum length of an answer; the second is sent if the first is refused."""

MANY_TOKENS = 25_000
"""Tokens that a reasoning model may use besides its answer, as advised by OpenAI."""

_NAMED = {
    TEMPERATURE: r"\btemperature\b",
    SEED: r"\b(?:random_)?seed\b",
    STRUCTURE: r"(?:response|output)_?(?:format|schema|config|mime_?type)|json[\s_-]?schema|"
    r"\bschema\b|structured[\s_-]?output|grammar",
    LOG_PROBABILITIES: r"log[\s_-]?prob(?:s|abilit)",
    **dict.fromkeys(LENGTHS, r"max_?(?:completion_?|output_?|new_?)?tokens\b|\bnum_predict\b"),
}
"""Names of a parameter in providers' errors, in any case."""

_TOO_MANY = re.compile(
    r"context|too (?:large|long|high|many)|exceed|at most|greater|less than|<=|maximum", re.I
)
_WORDS = {LOG_PROBABILITIES: "log-probabilities"}
_NO_REFUSALS = {401, 408, 429}
"""Statuses of errors that have other causes, regardless of their message."""


def provider_of(model: str) -> tuple[str, str]:
    """Return the provider of a model, and the model's name there.

    Raises:
        InputError: if litellm knows no such provider.
    """
    litellm = quiet_litellm()
    try:
        name, provider, _, _ = litellm.get_llm_provider(model)
    except litellm.BadRequestError:
        raise InputError(
            f"the model {model!r} has no provider that litellm knows; give one such as "
            f"openai/{model.rpartition('/')[2]}"
        ) from None
    return provider, name


def unlisted_parameters(model: str) -> frozenset[str]:
    """Return the parameters that a model does not take according to litellm, without a request.

    Log-probabilities count as supported only with the alternatives of each token, since they
    otherwise give no information on the labels that were not chosen. For a model that litellm does
    not list, such as one on the user's own server, schemas of answers are assumed to be supported
    until the server refuses one.

    Raises:
        InputError: if litellm does not know the provider.
        MissingDependencyError: if litellm is not installed.
    """
    litellm = quiet_litellm()
    provider, name = provider_of(model)
    listed = litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)
    if listed is None:
        return frozenset()
    lacking = {parameter for parameter in (TEMPERATURE, SEED, *LENGTHS) if parameter not in listed}
    if not {"logprobs", "top_logprobs"} <= set(listed):
        lacking.add(LOG_PROBABILITIES)
    if STRUCTURE not in listed or not _may_take_schemas(litellm, model, provider, name):
        lacking.add(STRUCTURE)
    if TEMPERATURE not in lacking and not _takes_zero_temperature(litellm, provider, name):
        lacking.add(TEMPERATURE)
    return frozenset(lacking)


def _may_take_schemas(litellm: Any, model: str, provider: str, name: str) -> bool:
    """Return whether the provider enforces schemas for a model, or support is unknown."""
    known = model in litellm.model_cost or name in litellm.model_cost
    return not known or bool(
        litellm.supports_response_schema(model=name, custom_llm_provider=provider)
    )


def _takes_zero_temperature(litellm: Any, provider: str, name: str) -> bool:
    """Return whether a model accepts temperature 0; some list temperature but require 1."""
    try:
        litellm.get_optional_params(model=name, custom_llm_provider=provider, temperature=0.0)
    except litellm.UnsupportedParamsError:
        return False
    return True


def refused_parameter(error: BaseException, sent: Collection[str]) -> str | None:
    """Return the sent parameter that a server or litellm refuses; None if it refuses none."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or status in _NO_REFUSALS:
        return None
    named = getattr(error, "param", None)
    texts = [named] if isinstance(named, str) and named else []
    for text in (*texts, str(error)):
        # An error may name several parameters; the refused one comes first.
        places = {
            parameter: match.start()
            for parameter in sent
            if parameter in _NAMED and (match := re.search(_NAMED[parameter], text, re.I))
        }
        if places:
            return min(places, key=places.__getitem__)
    return None


def is_about_size(error: BaseException) -> bool:
    """Return whether an error reports a number that is too large, not an unknown parameter."""
    return bool(_TOO_MANY.search(str(error)))


def reasoning_tokens(model: str) -> int:
    """Return the tokens that a model may spend on reasoning before its answer; 0 if none."""
    litellm = quiet_litellm()
    provider, name = provider_of(model)
    if not litellm.supports_reasoning(model=name, custom_llm_provider=provider):
        return 0
    longest = _listed_longest(litellm, provider, name)
    return MANY_TOKENS if longest is None else min(MANY_TOKENS, longest // 2)


def _listed_longest(litellm: Any, provider: str, name: str) -> int | None:
    try:
        known = litellm.get_model_info(model=name, custom_llm_provider=provider)
    except Exception:
        # For an unlisted model, litellm raises any exception of the provider's code.
        return None
    longest = known.get("max_output_tokens")
    return longest if isinstance(longest, int) and longest > 0 else None


def in_words(parameters: Iterable[str]) -> str:
    """Return names of parameters as in a sentence, such as "seed or temperature"."""
    # Name the two spellings of the same parameter once.
    names = sorted(
        {
            _WORDS.get(parameter, LENGTHS[0] if parameter in LENGTHS else parameter)
            for parameter in parameters
        }
    )
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
