"""Language models of any provider: requests, answers, cache, accounting and limits."""

from factormodels.extraction.language_model.interface import (
    LOG_PROBABILITIES,
    Completion,
    Failure,
    LanguageModel,
    Message,
    Request,
    Role,
    Token,
    Usage,
    WrappedModel,
    gives_log_probabilities,
    lacking_parameters,
)
from factormodels.metadata.prompt_identity import PromptIdentity

__all__ = [
    "LOG_PROBABILITIES",
    "Completion",
    "Failure",
    "LanguageModel",
    "Message",
    "PromptIdentity",
    "Request",
    "Role",
    "Token",
    "Usage",
    "WrappedModel",
    "gives_log_probabilities",
    "lacking_parameters",
]
