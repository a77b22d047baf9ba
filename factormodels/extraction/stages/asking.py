"""What the stages that ask a language model share: one question each, and a strict reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    PromptIdentity,
    Request,
)
from factormodels.extraction.language_model.answers import (
    contradicts_itself,
    json_values,
    unreadable,
)
from factormodels.extraction.prompts.replaced import OURS, Prompts, prompts_of
from factormodels.extraction.sentences import Chunk

CUT_OFF = "cut off at its longest"
"""What the reason of a failure says where an answer was longer than it may be."""

Value = TypeVar("Value")
Read = TypeVar("Read", covariant=True)


@dataclass(frozen=True, slots=True)
class Question(Generic[Read]):
    """A question whose answer is JSON.

    Attributes:
        fields: what the prompt is filled with.
        read: turns the JSON value into what is wanted; None if it is not of the kind asked for.
        max_tokens: the longest answer.
        read_text: what is wanted of an answer that holds no such value, but may say the same in
            another form; None if it does not.
        weighed: makes something more of what was read with the answer's log-probabilities, which
            are asked for; None asks for none.
    """

    fields: dict[str, str]
    read: Callable[[Any], Read | None]
    max_tokens: int
    read_text: Callable[[str], Read | None] = lambda _: None
    weighed: Callable[[Any, Completion], Read] | None = None

    def reading(self, text: str) -> Read | None:
        """What an answer says; None if it is not of the form asked for, or says two things."""
        if contradicts_itself(text):
            return None
        found = [one for value in json_values(text) if (one := self.read(value)) is not None]
        if not found:
            return self.read_text(text)
        return found[0] if all(one == found[0] for one in found) else None


def ask_all(
    model: LanguageModel, prompt: str, stage: str, questions: Sequence[Question[Value]]
) -> list[Value | Failure]:
    """Readings of the answers to questions, in order; many are under way at a time.

    An answer that was cut off, or is not of the form asked for, is a failure.
    """
    template = prompts_of(model)[prompt]

    async def ask(question: Question[Value]) -> Value | Failure:
        request = Request(
            messages=template.render(**question.fields),
            prompt=template.identity,
            stage=stage,
            max_tokens=question.max_tokens,
            top_logprobs=0 if question.weighed is None else 1,
            seed=0,
            fault=lambda answer: _fault(question, answer),
        )
        answer = await model.complete(request)
        if isinstance(answer, Failure):
            return answer
        value = question.reading(answer.text)
        fault = _fault(question, answer)
        if fault or value is None:
            return unreadable(answer, fault)
        return value if question.weighed is None else question.weighed(value, answer)

    return run_until_done(each(ask, questions))


def ask_each(
    model: LanguageModel, prompt: str, stage: str, questions: Mapping[str, Question[Value]]
) -> tuple[dict[str, Value], tuple[tuple[str, str], ...]]:
    """Readings of the answers to questions by id, and (id, reason) of those without one."""
    found = ask_all(model, prompt, stage, list(questions.values()))
    answers = dict(zip(questions, found, strict=True))
    read = {id: answer for id, answer in answers.items() if not isinstance(answer, Failure)}
    failed = {id: answer for id, answer in answers.items() if isinstance(answer, Failure)}
    return read, tuple((id, failure.reason) for id, failure in failed.items())


def ask_chunks(
    chunks: Iterable[Chunk], ask: Callable[[Sequence[Chunk]], Sequence[Value | Failure]]
) -> tuple[list[tuple[Chunk, Value | Failure]], int]:
    """Answers about chunks of a response, in order, and how many questions these took.

    A chunk whose answer was cut off at its longest is asked about in halves, down to a sentence.

    Args:
        chunks: the chunks.
        ask: asks about some of them, and returns an answer to each.
    """
    found: dict[int, tuple[Chunk, Value | Failure]] = {}
    waiting, calls = list(chunks), 0
    while waiting:
        answers = ask(waiting)
        calls += len(waiting)
        again: list[Chunk] = []
        for chunk, answer in zip(waiting, answers, strict=True):
            if isinstance(answer, Failure) and CUT_OFF in answer.reason and chunk.can_be_halved:
                again += chunk.halves()
            else:
                found[chunk.first] = (chunk, answer)
        waiting = again
    return [found[first] for first in sorted(found)], calls


def _fault(question: Question[Any], answer: Completion) -> str:
    if answer.finish == "length":
        return f"it was {CUT_OFF}"
    return "" if question.reading(answer.text) is not None else "its form is not the requested one"


def text_at(key: str) -> Callable[[Any], str | None]:
    """Reading of an object with one text, white space made single."""

    def read(value: Any) -> str | None:
        text = value.get(key) if isinstance(value, dict) else None
        return " ".join(text.split()) or None if isinstance(text, str) else None

    return read


def identity_of(prompt: str, prompts: Prompts = OURS) -> dict[str, Any]:
    """Name, version and digest of a prompt as JSON values."""
    return identity_values(prompts[prompt].identity)


def identity_values(identity: PromptIdentity) -> dict[str, Any]:
    """Identity of a prompt as JSON values."""
    return {"name": identity.name, "version": identity.version, "digest": identity.digest}
