"""What a stage asks of a language model, and what comes back: the one interface to any provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        role: who speaks.
        content: the text.
    """

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class PromptIdentity:
    """Which prompt was rendered: what a manifest and a cache key say of it.

    Attributes:
        name: file name of the template, without suffix.
        version: the version that the template declares.
        digest: SHA-256 of the template, in hexadecimal.
    """

    name: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class Request:
    """A question to a language model, with everything that its answer may depend on.

    Attributes:
        messages: the conversation so far, the question last.
        prompt: the template that it was rendered from.
        stage: the stage that asks, by which calls and costs are counted.
        temperature: sampling temperature; 0 is greedy.
        max_tokens: the longest answer, in tokens.
        top_logprobs: number of alternatives per token to report; 0 asks for no log-probabilities.
        seed: the provider's sampling seed; None leaves it to the provider.
        sample: index among repeated samples of the same question.
        schema: JSON schema that the answer is held to where the server can do that, as JSON text;
            empty for none.
        needs_logprobs: whether an answer without log-probabilities is of little use. No part of
            what an answer depends on.
        fault: what is wrong with an answer, in words that can be said to the model; empty where it
            can be read. None: every answer can. No part of it either.
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
        """What is wrong with an answer; empty where it can be read."""
        return "" if self.fault is None else self.fault(answer)

    def corrected(self, fault: str) -> Request:
        """The request that asks once more and says what was wrong with the first answer."""
        *before, question = self.messages
        # In the question itself: a turn of the model's own would have to be repeated word for word.
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
        alternatives: (token, natural log-probability) of the likeliest tokens at this place,
            the chosen one among them where the provider lists it.
    """

    text: str
    log_probability: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call consumed, as its provider reported it.

    Attributes:
        prompt_tokens: tokens of the question.
        completion_tokens: tokens of the answer.
        cost: price in US dollars; None where it is not known.
        prefix_tokens: tokens of the question that the server had read before and took from its
            prefix cache, `cached_tokens` in OpenAI's protocol; 0 where it says nothing of them.
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
            # One price that is not known leaves the sum unknown.
            None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
            self.prefix_tokens + other.prefix_tokens,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer.

    Attributes:
        text: the answer.
        tokens: its tokens with log-probabilities; empty where the provider gives none.
        usage: what the answer took when it was asked for; of one that was asked for twice, both.
        cached: whether the answer came from the cache, at no cost now.
        finish: why the model stopped, in its provider's word: "stop", or "length" where the answer
            was cut off.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    usage: Usage = Usage()
    cached: bool = False
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that gave no usable answer: counted and shown, never cached, never scored.

    Attributes:
        reason: one sentence that says what went wrong, without keys.
        usage: what answers consumed that could not be read.
        outage: whether nobody answered for a reason that may pass: asked later, it may succeed.
        cached: whether the call failed in an earlier run, and a replay repeats it.
        unread: whether the model did answer, and what it said could not be read: asked in another
            way, it may say it better.
    """

    reason: str
    usage: Usage = Usage()
    outage: bool = False
    cached: bool = False
    unread: bool = False


class LanguageModel(Protocol):
    """Anything that answers requests."""

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        ...

    async def complete(self, request: Request) -> Completion | Failure:
        """Answer to `request`; a call that fails for good is a value, no exception."""
        ...


LOG_PROBABILITIES = "logprobs"
"""What providers call the parameter that asks for log-probabilities."""


def lacking_parameters(model: LanguageModel) -> frozenset[str]:
    """Parameters of requests that a model does not take, as far as it says."""
    return frozenset(getattr(model, "lacking", ()))


def gives_log_probabilities(model: LanguageModel) -> bool:
    """Whether a model's answers may have log-probabilities, as far as it says."""
    return LOG_PROBABILITIES not in lacking_parameters(model)


class WrappedModel:
    """A language model that answers as another does; subclasses add what happens to the answers.

    Args:
        model: who answers.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._model.name

    @property
    def lacking(self) -> frozenset[str]:
        """Parameters that the model does not take, as far as is known."""
        return lacking_parameters(self._model)

    async def complete(self, request: Request) -> Completion | Failure:
        """The model's answer."""
        return await self._model.complete(request)
