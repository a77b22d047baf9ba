"""What the stages that ask a language model share: one question each, and a strict reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from factormodels.extraction.answers import read_json
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import (
    Failure,
    LanguageModel,
    PromptIdentity,
    Request,
)
from factormodels.extraction.prompts import load_prompt

Value = TypeVar("Value")
Read = TypeVar("Read", covariant=True)

CONCURRENCY = 64
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Question(Generic[Read]):
    """A question whose answer is JSON.

    Attributes:
        fields: what the prompt is filled with.
        read: turns the JSON value into what is wanted; None if it is not of the kind asked for.
        max_tokens: the longest answer.
    """

    fields: dict[str, str]
    read: Callable[[Any], Read | None]
    max_tokens: int


def ask_all(
    model: LanguageModel, prompt: str, stage: str, questions: Sequence[Question[Value]]
) -> list[Value | Failure]:
    """Readings of the answers to questions, in order; many are under way at a time.

    An answer that was cut off, holds no JSON, or another kind of JSON, is a failure.
    """

    async def ask(question: Question[Value]) -> Value | Failure:
        template = load_prompt(prompt)
        request = Request(
            messages=template.render(**question.fields),
            prompt=template.identity,
            stage=stage,
            max_tokens=question.max_tokens,
            seed=0,
        )
        answer = await model.complete(request)
        if isinstance(answer, Failure):
            return answer
        words = " ".join(answer.text.split())[:_SHOWN]
        if answer.finish == "length":
            return Failure(f"the answer was cut off at its longest: {words!r}")
        value = question.read(read_json(answer.text))
        if value is None:
            return Failure(f"the answer is not of the form asked for: {words!r}")
        return value

    return run_until_done(each(ask, questions, CONCURRENCY))


def text_at(key: str) -> Callable[[Any], str | None]:
    """Reading of an object with one text, white space made single."""

    def read(value: Any) -> str | None:
        text = value.get(key) if isinstance(value, dict) else None
        return " ".join(text.split()) or None if isinstance(text, str) else None

    return read


def identity_of(prompt: str) -> dict[str, Any]:
    """Name, version and digest of a prompt as JSON values."""
    return identity_values(load_prompt(prompt).identity)


def identity_values(identity: PromptIdentity) -> dict[str, Any]:
    """Identity of a prompt as JSON values."""
    return {"name": identity.name, "version": identity.version, "digest": identity.digest}
