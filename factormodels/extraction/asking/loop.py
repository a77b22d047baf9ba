"""The loop that asks for every stage: one request a question, and one reading of its answer.

Whoever is asked keeps the budget, the count of calls, the cache and the repetition of calls that
failed: see `factormodels.extraction.language_model`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from factormodels.extraction.asking.stage import CUT_OFF, Fault, ModelStage, Question
from factormodels.extraction.concurrency import MOST_WAITING, each, run_until_done
from factormodels.extraction.language_model import Completion, Failure, LanguageModel, Request
from factormodels.extraction.language_model.answers import unreadable
from factormodels.extraction.prompts import PromptTemplate
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.sentences import Chunk

Read = TypeVar("Read")


def request_of(model: LanguageModel, question: Question[Read]) -> Request:
    """Return the request that asks a question of a model, with the prompts that it comes with."""
    stage = question.stage
    prompt = prompts_of(model)[stage.prompt]

    def fault(answer: Completion) -> str:
        reading = stage.read(answer, prompt, question.about)
        return reading.words if isinstance(reading, Fault) else ""

    request = Request(
        messages=prompt.render(
            **{name: text for name, text in question.fields.items() if name in prompt.slots}
        ),
        prompt=prompt.identity,
        stage=stage.name,
        temperature=stage.temperature,
        max_tokens=stage.longest(question.parts),
        top_logprobs=stage.top_logprobs,
        seed=stage.seed,
        sample=question.sample,
        needs_logprobs=stage.needs_logprobs,
        schema=_schema(stage, prompt),
        fault=None if question.mended else fault,
    )
    return request.corrected(question.mended) if question.mended else request


def _schema(stage: ModelStage[Any], prompt: PromptTemplate) -> str:
    """Return the schema that an answer is held to, as JSON text; empty for none.

    A prompt with words of its own for labels has another form of answers. Where log-probabilities
    are read nothing is forced: servers report what the model thinks of a token before the schema
    forbids the others, so that a forced token is as improbable as the model finds it.
    """
    free = stage.schema is None or prompt.labels or stage.top_logprobs
    return "" if free else json.dumps(stage.schema)


async def ask_one(model: LanguageModel, question: Question[Read]) -> Read | Failure:
    """Return what the answer to a question is read as; a call that fails is a value."""
    answer = await model.complete(request_of(model, question))
    if isinstance(answer, Failure):
        return answer
    prompt = prompts_of(model)[question.stage.prompt]
    reading = question.stage.read(answer, prompt, question.about)
    return unreadable(answer, reading.words) if isinstance(reading, Fault) else reading


def ask_all(
    model: LanguageModel, questions: Sequence[Question[Read]], concurrency: int = MOST_WAITING
) -> list[Read | Failure]:
    """Return what the answers to questions are read as, in order; many are under way at a time.

    Args:
        model: who is asked.
        questions: the questions, of one stage or of several.
        concurrency: most questions that wait for the model at a time.
    """
    return run_until_done(each(partial(ask_one, model), questions, concurrency))


def ask_each(
    model: LanguageModel, questions: Mapping[str, Question[Read]]
) -> tuple[dict[str, Read], tuple[tuple[str, str], ...]]:
    """Return what the answers are read as by id, and (id, reason) of those without one."""
    answers = dict(zip(questions, ask_all(model, list(questions.values())), strict=True))
    read = {id: answer for id, answer in answers.items() if not isinstance(answer, Failure)}
    failed = {id: answer for id, answer in answers.items() if isinstance(answer, Failure)}
    return read, tuple((id, failure.reason) for id, failure in failed.items())


def ask_chunks(
    chunks: Iterable[Chunk], ask: Callable[[Sequence[Chunk]], Sequence[Read | Failure]]
) -> tuple[list[tuple[Chunk, Read | Failure]], int]:
    """Return the answers about chunks of a response, in order, and how many questions these took.

    A chunk whose answer was cut off at its longest is asked about in halves, down to a sentence.

    Args:
        chunks: the chunks.
        ask: asks about some of them, and returns an answer to each.
    """
    answered: dict[int, tuple[Chunk, Read | Failure]] = {}
    waiting, calls = list(chunks), 0
    while waiting:
        answers = ask(waiting)
        calls += len(waiting)
        again: list[Chunk] = []
        for chunk, answer in zip(waiting, answers, strict=True):
            if isinstance(answer, Failure) and CUT_OFF in answer.reason and chunk.can_be_halved:
                again += chunk.halves()
            else:
                answered[chunk.first] = (chunk, answer)
        waiting = again
    return [answered[first] for first in sorted(answered)], calls
