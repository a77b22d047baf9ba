"""Language models of any provider: what is asked and answered, kept, counted, paid and limited."""

from factormodels.extraction.language_model.interface import (
    LOG_PROBABILITIES,
    Completion,
    Failure,
    LanguageModel,
    Message,
    PromptIdentity,
    Request,
    Role,
    Token,
    Usage,
    WrappedModel,
    gives_log_probabilities,
    lacking_parameters,
)

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
