"""The loop that puts the probe's questions to a model, for any stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from factormodels.claims import JUDGED_KINDS
from factormodels.errors import InputError
from factormodels.extraction.asking.loop import ask_all
from factormodels.extraction.asking.stage import ModelStage, Question
from factormodels.extraction.asking.table import RELATION
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    Request,
    WrappedModel,
)
from factormodels.extraction.probe.questions import CONTENT_FREE
from factormodels.extraction.probe.table import Probe, ProbeAnswer, ProbeQuestion, probe_named
from factormodels.extraction.prompts.replaced import WithPrompts, prompts_of
from factormodels.extraction.relation_models.base import (
    Judgment,
    Missing,
    RelationModel,
    TextPair,
)

REPEATED = 3
"""Number of questions that are asked twice, to compare both answers."""

STAGE = "probe"
"""Name under which the calls of a probe are counted, for any stage."""


def probe_calls(name: str, relations: ModelStage[Any] = RELATION) -> int:
    """Return the number of calls of a probe, at one call per question or list of claims.

    Args:
        name: name of a probe.
        relations: the stage that asks for relations.
    """
    probe = probe_named(name)
    stage = relations if probe.stage is None else probe.stage
    return (
        len(probe.asked)
        + (len(CONTENT_FREE) if probe.stage is None else 0)
        # Some questions with log-probabilities are asked twice.
        + (REPEATED if stage.top_logprobs else 0)
    )


@dataclass(frozen=True)
class Repeated:
    """The two answers to a question that was asked twice.

    Attributes:
        first: the first answer.
        second: the second answer, or the failure of its call.
    """

    first: Completion
    second: Completion | Failure


@dataclass(frozen=True)
class Probed:
    """Answers of a model to the questions of a probe.

    Attributes:
        probe: the probe.
        answers: an answer to each question, in order.
        content_free: answers about texts without content; empty except for relations.
        completions: the model's answers with their log-probabilities; empty for a relation model
            that is not a language model.
        repeated: answers to the questions that were asked twice.
        outage: reason why the model does not answer, in which case all answers are missing; empty
            if it answers.
    """

    probe: Probe
    answers: tuple[ProbeAnswer, ...]
    content_free: tuple[ProbeAnswer, ...] = ()
    completions: tuple[Completion, ...] = ()
    repeated: tuple[Repeated, ...] = ()
    outage: str = ""


class Watched(WrappedModel):
    """A language model whose answers are recorded, and counted under `STAGE`.

    Attributes:
        seen: requests and their answers.

    Args:
        model: the language model.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.seen: list[tuple[Request, Completion | Failure]] = []

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the model's answer, and record it."""
        asked = replace(request, stage=STAGE)
        answer = await super().complete(asked)
        self.seen.append((asked, answer))
        return answer


def watched(model: LanguageModel) -> tuple[WithPrompts, Watched]:
    """Return a language model with its prompts, and the recorder of its answers."""
    kept = Watched(model)
    return WithPrompts(kept, prompts_of(model)), kept


def probe_stage(model: LanguageModel, probe: Probe) -> Probed:
    """Put the questions of a stage to a language model.

    The first question is asked alone: if the model does not answer, the others are not asked.

    Args:
        model: the language model.
        probe: the probe of a stage.

    Raises:
        InputError: if the probe is for a relation model.
    """
    asked, seen = watched(model)
    if (stage := probe.stage) is None:
        raise InputError(f"the probe of {probe.name} asks a relation model; use probe_relations")

    known: dict[tuple[tuple[str, str], ...], Any] = {}

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        new = {question.texts: question for question in questions if question.texts not in known}
        wanted = [
            Question(stage, question.fields, about=question.about, parts=question.parts)
            for question in new.values()
        ]
        known.update(zip(new, ask_all(asked, wanted), strict=True))
        return [_read(probe, question, known[question.texts]) for question in questions]

    return _probed(probe, ask, (), seen)


def _read(probe: Probe, question: ProbeQuestion, answer: Any) -> ProbeAnswer:
    if isinstance(answer, Failure):
        return ProbeAnswer("", missing=answer.reason)
    return probe.read(question.read_part(answer))


def probe_relations(
    judge: RelationModel, probe: Probe, seen: Watched | None = None, *, content_free: bool = True
) -> Probed:
    """Ask a relation model about the pairs of the probe, and about texts without content.

    Args:
        judge: the relation model; if it asks a language model, that model is `seen`.
        probe: the probe of relations.
        seen: the recorder of a language model's answers; None for other relation models.
        content_free: whether to ask about texts without content too.
    """

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        pairs = [TextPair(**question.fields) for question in questions]
        return [judged_answer(answer) for answer in judge.judge(pairs)]

    empty = tuple(
        ProbeQuestion(text, "content-free", "", text, {"premise": text, "hypothesis": text})
        for text in CONTENT_FREE[: len(CONTENT_FREE) * content_free]
    )
    return _probed(probe, ask, empty, seen)


def judged_answer(answer: Judgment | Missing) -> ProbeAnswer:
    """Convert an answer of a relation model to an answer of the probe."""
    if isinstance(answer, Missing):
        return ProbeAnswer("", missing=answer.reason)
    distribution = answer.distribution
    if distribution is None:
        rest = (1.0 - answer.probability) / (len(JUDGED_KINDS) - 1)
        entailment, contradiction, neutral = (
            answer.probability if kind is answer.kind else rest for kind in JUDGED_KINDS
        )
        distribution = (entailment, contradiction, neutral)
    return ProbeAnswer(
        str(answer.kind),
        distribution,
        shared=answer.distribution is None,
        unusable=answer.fell_back,
    )


def _probed(
    probe: Probe,
    ask: Callable[[Sequence[ProbeQuestion]], list[ProbeAnswer]],
    empty: Sequence[ProbeQuestion],
    seen: Watched | None,
) -> Probed:
    first, *others = probe.questions
    answers = ask([first])
    outage = _outage(seen)
    if outage:
        lost = [ProbeAnswer("", missing=outage) for _ in others]
        return Probed(probe, (*answers, *lost), outage=outage)
    answers += ask(others)
    content_free = tuple(ask(empty)) if empty else ()
    if seen is None:
        return Probed(probe, tuple(answers), content_free)
    # Calls end in any order, on which results must not depend. A plan counts the repeated ones too.
    given = sorted(
        (
            (request, answer)
            for request, answer in seen.seen
            if request.top_logprobs and (isinstance(answer, Completion) or answer.planned)
        ),
        key=lambda pair: [message.content for message in pair[0].messages],
    )
    # Evenly spaced among the questions, which are sorted by their texts.
    again = given[:: max(1, len(given) // REPEATED)][:REPEATED]
    seconds = run_until_done(each(partial(_again, seen), [request for request, _ in again]))
    repeated = [
        Repeated(answer, second)
        for (_, answer), second in zip(again, seconds, strict=True)
        if isinstance(answer, Completion)
    ]
    return Probed(
        probe,
        tuple(answers),
        content_free,
        tuple(answer for _, answer in given if isinstance(answer, Completion)),
        tuple(repeated),
    )


async def _again(model: LanguageModel, request: Request) -> Completion | Failure:
    return await model.complete(replace(request, sample=request.sample + 1))


def _outage(seen: Watched | None) -> str:
    """Return the reason why the first question was not answered; empty if it was."""
    answers = [] if seen is None else [answer for _, answer in seen.seen]
    lost = [answer for answer in answers if isinstance(answer, Failure) and answer.outage]
    return lost[0].reason if lost and len(lost) == len(answers) else ""
