"""The loop that asks the questions of all stages and parses the answers.

The language model handles the budget, the count of calls, the cache and retries: see
`factormodels.extraction.language_model`.
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
    """Return the request that asks a question of a model, with the prompts in effect."""
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
    """Return the JSON schema that an answer must match, as text; empty for none.

    A prompt with its own words for labels has another form of answers. If log-probabilities are
    read, no schema is enforced: servers report the model's probability of a token before the schema
    forbids the others, so a forced token may be reported as improbable.
    """
    free = stage.schema is None or prompt.labels or stage.top_logprobs
    return "" if free else json.dumps(stage.schema)


async def ask_one(model: LanguageModel, question: Question[Read]) -> Read | Failure:
    """Return the parsed answer to a question, or the failure of the call."""
    answer = await model.complete(request_of(model, question))
    if isinstance(answer, Failure):
        return answer
    prompt = prompts_of(model)[question.stage.prompt]
    reading = question.stage.read(answer, prompt, question.about)
    return unreadable(answer, reading.words) if isinstance(reading, Fault) else reading


def ask_all(
    model: LanguageModel, questions: Sequence[Question[Read]], concurrency: int = MOST_WAITING
) -> list[Read | Failure]:
    """Return the parsed answers to questions, in order; many calls run at a time.

    Args:
        model: the model.
        questions: the questions, of one or more stages.
        concurrency: maximum number of questions that wait for the model at a time.
    """
    return run_until_done(each(partial(ask_one, model), questions, concurrency))


def ask_each(
    model: LanguageModel, questions: Mapping[str, Question[Read]]
) -> tuple[dict[str, Read], tuple[tuple[str, str], ...]]:
    """Return the parsed answers by id, and (id, reason) of the questions without an answer."""
    answers = dict(zip(questions, ask_all(model, list(questions.values())), strict=True))
    read = {id: answer for id, answer in answers.items() if not isinstance(answer, Failure)}
    failed = {id: answer for id, answer in answers.items() if isinstance(answer, Failure)}
    return read, tuple((id, failure.reason) for id, failure in failed.items())


def ask_chunks(
    chunks: Iterable[Chunk], ask: Callable[[Sequence[Chunk]], Sequence[Read | Failure]]
) -> tuple[list[tuple[Chunk, Read | Failure]], int]:
    """Return the answers about chunks of a response, in order, and the number of questions asked.

    A chunk whose answer was cut off at the maximum length is split into halves, down to one
    sentence.

    Args:
        chunks: the chunks.
        ask: asks about some chunks, and returns an answer to each.
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
