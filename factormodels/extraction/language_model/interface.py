"""Interface to language models of any provider: requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from factormodels.metadata.prompt_identity import PromptIdentity

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """Turn of a conversation.

    Attributes:
        role: role of the speaker.
        content: the text.
    """

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """A question to a language model, with everything that its answer may depend on.

    Attributes:
        messages: the conversation so far, the question last.
        prompt: the template that it was rendered from.
        stage: the stage that asks, by which calls and costs are counted.
        temperature: sampling temperature; 0 is greedy.
        max_tokens: maximum length of the answer, in tokens.
        top_logprobs: number of alternatives per token to report; 0 requests no log-probabilities.
        seed: the provider's sampling seed; None leaves it to the provider.
        sample: index among repeated samples of the same question.
        schema: JSON schema of the answer, as text, enforced by servers that can; empty for none.
        needs_logprobs: whether an answer without log-probabilities is of little use. Not part of
            the cache key.
        fault: function that returns the fault of an answer, in words that can be sent to the model;
            empty if the answer can be parsed. None: every answer can. Not part of the cache key.
    """

    messages: tuple[Message, ...]
    prompt: PromptIdentity
    stage: str
    temperature: float = 0.0
    max_tokens: int = 1024
    top_logprobs: int = 0
    seed: int | None = None
    sample: int = 0
    schema: str = ""
    needs_logprobs: bool = field(default=False, compare=False)
    fault: Callable[[Completion], str] | None = field(default=None, compare=False, repr=False)

    def fault_of(self, answer: Completion) -> str:
        """Return the fault of an answer; empty if it can be parsed."""
        return "" if self.fault is None else self.fault(answer)

    def corrected(self, fault: str) -> Request:
        """Return the request that repeats the question and states the fault of the first answer."""
        *before, question = self.messages
        # Part of the question, since a turn of the model would have to repeat its answer verbatim.
        text = (
            f"An earlier answer to this could not be used: {fault}. Answer in exactly the form "
            f"that is asked for, with nothing before or after it.\n\n{question.content}"
        )
        return replace(self, messages=(*before, replace(question, content=text)))


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer.

    Attributes:
        text: the token.
        log_probability: its natural log-probability.
        alternatives: (token, natural log-probability) of the most probable tokens at this position,
            including the chosen one if the provider lists it.
    """

    text: str
    log_probability: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a call, as its provider reported it.

    Attributes:
        prompt_tokens: tokens of the question.
        completion_tokens: tokens of the answer.
        cost: price in US dollars; None if unknown.
        prefix_tokens: tokens of the question that the server took from its prefix cache,
            `cached_tokens` in OpenAI's protocol; 0 if not reported.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    prefix_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        costs = [
            usage.cost for usage in (self, other) if usage.completion_tokens or usage.prompt_tokens
        ]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            # The sum is unknown if any price is.
            None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
            self.prefix_tokens + other.prefix_tokens,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a language model to a request.

    Attributes:
        text: the answer.
        tokens: its tokens with log-probabilities; empty if the provider gives none.
        usage: usage of the original call, or of both calls if it was repeated.
        cached: whether the answer came from the cache, without cost now.
        finish: the provider's reason for the end: "stop", or "length" if the answer was cut off.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    usage: Usage = Usage()
    cached: bool = False
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without a usable answer: counted and shown, never cached, never scored.

    Attributes:
        reason: one sentence with the reason, without keys.
        usage: usage of answers that could not be parsed.
        outage: whether the reason may be temporary, so that a later call may succeed.
        cached: whether a replay repeats the failure of an earlier run.
        unread: whether the model answered and the answer could not be parsed; another form of the
            question may succeed.
        planned: whether nothing was sent, since the call is only planned.
    """

    reason: str
    usage: Usage = Usage()
    outage: bool = False
    cached: bool = False
    unread: bool = False
    planned: bool = False


class LanguageModel(Protocol):
    """Protocol of language models: anything that answers requests."""

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        ...

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the answer to `request`, or a `Failure` if the call fails permanently."""
        ...


LOG_PROBABILITIES = "logprobs"
"""Name of the parameter that requests log-probabilities, in providers' interfaces."""


def lacking_parameters(model: LanguageModel) -> frozenset[str]:
    """Return the parameters of requests that a model is known not to take."""
    return frozenset(getattr(model, "lacking", ()))


def gives_log_probabilities(model: LanguageModel) -> bool:
    """Return whether a model may give log-probabilities, as far as known."""
    return LOG_PROBABILITIES not in lacking_parameters(model)


class WrappedModel:
    """A language model that delegates to another; subclasses process its answers.

    Args:
        model: the model.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._model.name

    @property
    def lacking(self) -> frozenset[str]:
        """Parameters that the model is known not to take."""
        return lacking_parameters(self._model)

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the model's answer."""
        return await self._model.complete(request)
