"""Language models as relation models."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from factormodels.claims import JUDGED_KINDS, likeliest_kind
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.asking.loop import ask_one, request_of
from factormodels.extraction.asking.readings import label_reading
from factormodels.extraction.asking.stage import ModelStage, Question
from factormodels.extraction.asking.table import RELATION, RELATION_PROMPTS, STATED_RELATION
from factormodels.extraction.concurrency import MOST_WAITING, each, run_until_done
from factormodels.extraction.language_model import (
    Failure,
    LanguageModel,
    gives_log_probabilities,
)
from factormodels.extraction.language_model.answers import Label
from factormodels.extraction.language_model.log_probabilities import OPENNESS, Unusable
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.relation_models.base import Judgment, Missing, Origin, TextPair
from factormodels.extraction.relation_models.windows import combined_pairs, window_pairs

Read = TypeVar("Read")

Method = Literal["automatic", "logprobs", "verbalized", "samples"]

_NAMES = tuple(map(str, JUDGED_KINDS))

_MOST_ALTERNATIVES = 20

SAMPLES = 5
"""Number of answers per pair for the method "samples"."""

WINDOW = 4096
"""Default context length in tokens. Local servers silently truncate longer questions to this length
by default."""

_LEAST_ROOM = 64
"""Minimum tokens of a useful window of a passage."""

_BYTES_PER_TOKEN = 3.0
"""Characters per token, a lower estimate: English has about four, other scripts three."""


@dataclass(frozen=True, slots=True)
class _Unread(Missing):
    """A relation that the model may give if asked differently.

    Attributes:
        cause: the reason, in words shared by many pairs.
    """

    cause: str = "the answer could not be read"


@dataclass(frozen=True)
class PromptedRelationModel:
    """A relation model that asks a language model about each pair.

    Attributes:
        model: the language model.
        method: source of probabilities: "logprobs" (the label's tokens that distinguish labels),
            "verbalized" (the confidence that the model states), "samples" (shares of the labels in
            repeated answers, smoothed by one evenly spread answer), or "automatic":
            log-probabilities if the model gives them, otherwise the stated confidence.
        fallback: the method for pairs whose answer cannot be parsed or has no usable
            log-probabilities; None: such pairs are missing.
        samples: answers per pair of the method "samples".
        temperature: temperature of the method "samples"; the others are greedy.
        top_logprobs: number of alternatives per token to request.
        seed: sampling seed; None leaves it to the provider.
        concurrency: maximum number of pairs that wait for the model at a time.
        window: tokens that the language model accepts, question and answer together; a longer
            passage is read in overlapping windows.
        openness: maximum width of the interval of a relation's probability due to tokens that are
            missing from the list, in [0, 1]; beyond it, the fallback is used.
        prompt: name of the prompt of the methods "logprobs" and "samples", one of
            `RELATION_PROMPTS`.
    """

    model: LanguageModel
    method: Method = "automatic"
    fallback: Method | None = "verbalized"
    samples: int = SAMPLES
    temperature: float = 0.7
    top_logprobs: int = 5
    seed: int | None = 0
    concurrency: int = MOST_WAITING
    window: int = WINDOW
    openness: float = OPENNESS
    prompt: str = RELATION.prompt

    def __post_init__(self) -> None:
        known = get_args(Method)
        if self.method not in known or self.fallback not in (None, "verbalized", "samples"):
            raise InputError(
                f"the method {self.method!r} with fallback {self.fallback!r} is unknown; use "
                f"{', '.join(known)}, and verbalized, samples or None as the fallback"
            )
        if self.samples < 1 or self.concurrency < 1:
            raise InputError("samples and concurrency of a relation model are 1 or more")
        if self.window < 1:
            raise InputError(
                f"the window of a relation model is {self.window}; give its size in tokens"
            )
        if not 0.0 <= self.openness <= 1.0:
            raise InputError(
                f"the openness of a relation model is {self.openness}; give a number from 0 to 1"
            )
        if self.prompt not in RELATION_PROMPTS:
            subject = f"the prompt {self.prompt!r} of relations"
            raise InputError(unknown_name(subject, self.prompt, RELATION_PROMPTS))
        if not 1 <= self.top_logprobs <= _MOST_ALTERNATIVES:
            raise InputError(f"top_logprobs is {self.top_logprobs}; give 1 to {_MOST_ALTERNATIVES}")

    @property
    def answers_per_pair(self) -> int:
        """Number of questions about each pair that is read as a whole."""
        return self.samples if self.method == "samples" else 1

    @property
    def name(self) -> str:
        """Name of the language model, and of the method unless automatic."""
        return self.model.name + ("" if self.method == "automatic" else f" ({self.method})")

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return one answer per pair, in order; failures are returned as `Missing`."""
        return run_until_done(self.judge_async(pairs))

    async def judge_async(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return one answer per pair, in order, from asynchronous code.

        Pairs of the same passage are asked about consecutively, so that the server reads the common
        beginning of their questions once.
        """
        prompt = self._around_all()
        order = _by_passage(pairs)
        asked = [pairs[number] for number in order]
        answers = await each(partial(self._judge_one, prompt), asked, self.concurrency)
        answered = dict(zip(order, answers, strict=True))
        return [answered[number] for number in range(len(pairs))]

    def windows(self, pair: TextPair) -> int:
        """Return the number of parts in which a pair is read; 0 if the prompt leaves no room."""
        return sum(map(len, self._windows(self._around_all(), pair)[1]))

    def _windows(self, prompt: int, pair: TextPair) -> tuple[int, list[list[tuple[str, str]]]]:
        """Return the tokens around a pair's texts, and its parts as in `window_pairs`."""
        around = prompt + tokens_at_most(f"{pair.title}{pair.question}")
        return around, window_pairs(
            pair.premise, pair.hypothesis, self.window - around, _LEAST_ROOM, tokens_at_most
        )

    async def _judge_one(self, prompt: int, pair: TextPair) -> Judgment | Missing:
        around, rows = self._windows(prompt, pair)
        if not rows:
            return Missing(
                f"the prompt takes some {around} tokens, and the model {self.window} in all"
            )
        return combined_pairs(
            [
                [
                    await self._judge_part(replace(pair, premise=premise, hypothesis=hypothesis))
                    for premise, hypothesis in row
                ]
                for row in rows
            ]
        )

    def _around_all(self) -> int:
        return max(self._around("samples"), self._around("verbalized"), self._around(self.method))

    def _around(self, method: Method) -> int:
        """Return the tokens of a question without its texts, and of its answer."""
        request = request_of(
            self.model, self._question(TextPair("", ""), stage_of_method(method, self.prompt))
        )
        asked = sum(tokens_at_most(message.content) for message in request.messages)
        return asked + request.max_tokens

    async def _judge_part(self, pair: TextPair) -> Judgment | Missing:
        method = chosen_method(self.method, self.model)
        # The method that "automatic" prefers if the model supports it.
        wanted = "logprobs" if self.method == "automatic" else method
        judged = await self._ask(pair, method)
        reason = Unusable.ABSENT if wanted != method else ""
        if isinstance(judged, _Unread) and self.fallback is not None and self.fallback != method:
            reason = judged.cause
            judged = await self._ask(pair, self.fallback)
        if isinstance(judged, Missing):
            return Missing(judged.reason)
        return replace(judged, fell_back=str(reason)) if reason else judged

    async def _ask(self, pair: TextPair, method: Method) -> Judgment | Missing:
        """Return a judgment; `_Unread` if another method may succeed."""
        if method == "samples":
            return await self._sampled(pair)
        if method == "logprobs" and not gives_log_probabilities(self.model):
            return _unusable(Unusable.ABSENT)  # avoids the cost of a useless call
        if method == "verbalized":
            stated = await ask_one(self.model, self._question(pair, self._stated))
            return _missing(stated) if isinstance(stated, Failure) else _stated(*stated)
        label = await ask_one(self.model, self._question(pair, self._labeled(method)))
        return _missing(label) if isinstance(label, Failure) else _from_tokens(label)

    async def _sampled(self, pair: TextPair) -> Judgment | Missing:
        """Return the shares of the answers that give a relation; the reason if none does."""
        counts: Counter[str] = Counter()
        missing = Missing("no answer was requested")
        for sample in range(self.samples):
            question = self._question(pair, self._labeled("samples"), sample)
            label = await ask_one(self.model, question)
            if isinstance(label, Failure):
                missing = _missing(label)
            else:
                counts[label.name] += 1
        if not counts:
            return missing
        kinds = len(_NAMES)
        shares = [(counts[name] + 1 / kinds) / (counts.total() + 1) for name in _NAMES]
        return _likeliest(shares, "samples")

    @property
    def _stated(self) -> ModelStage[tuple[str, float]]:
        return replace(STATED_RELATION, seed=self.seed)

    def _labeled(self, method: Method) -> ModelStage[Label]:
        by_tokens = method == "logprobs"
        return replace(
            RELATION,
            prompt=self.prompt,
            read=label_reading(_NAMES, openness=self.openness),
            temperature=self.temperature if method == "samples" else 0.0,
            top_logprobs=self.top_logprobs if by_tokens else 0,
            needs_logprobs=by_tokens,
            seed=self.seed,
        )

    def _question(self, pair: TextPair, stage: ModelStage[Read], sample: int = 0) -> Question[Read]:
        titled = "{{title}}" in prompts_of(self.model)[stage.prompt].question
        return Question(
            stage,
            {
                "question": pair.question,
                "title": pair.title,
                "premise": pair.premise if titled else pair.titled_premise,
                "hypothesis": pair.hypothesis,
            },
            sample=sample,
        )


def _by_passage(pairs: Sequence[TextPair]) -> list[int]:
    """Return the indices of pairs grouped by passage, in order of first occurrence."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, pair in enumerate(pairs):
        groups.setdefault((pair.question, pair.title, pair.premise), []).append(number)
    return [number for group in groups.values() for number in group]


def stage_of_method(method: str, prompt: str = RELATION.prompt) -> ModelStage[Any]:
    """Return the stage that a method uses.

    Args:
        method: one of `Method`.
        prompt: name of the prompt of methods that ask for a label, one of `RELATION_PROMPTS`.
    """
    if method == "verbalized":
        return STATED_RELATION
    top_logprobs = 0 if method == "samples" else RELATION.top_logprobs
    return replace(RELATION, prompt=prompt, top_logprobs=top_logprobs)


def tokens_at_most(text: str) -> int:
    """Return an approximate upper bound on the tokens of a text, for any tokenizer."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_PER_TOKEN)


def chosen_method(method: Method, model: LanguageModel) -> Method:
    """Return the source of relations' probabilities: as requested, or as the model allows."""
    if method != "automatic":
        return method
    return "logprobs" if gives_log_probabilities(model) else "verbalized"


def _from_tokens(label: Label) -> Judgment | Missing:
    if label.distribution is None:
        return _unusable(label.unusable or Unusable.ABSENT)
    # The label in the text may be an unlikely sample, or the most probable of a label's spellings.
    return _likeliest(label.distribution, "logprobs")


def _stated(name: str, confidence: float) -> Judgment:
    return Judgment(JUDGED_KINDS[_NAMES.index(name)], confidence, "verbalized")


def _likeliest(shares: Sequence[float], origin: Origin) -> Judgment:
    entailment, contradiction, neutral = shares
    distribution = (entailment, contradiction, neutral)
    kind, probability = likeliest_kind(*distribution)
    return Judgment(kind, probability, origin, distribution)


def _missing(failure: Failure) -> Missing:
    """Return why an answer gives no relation."""
    return _Unread(failure.reason) if failure.unread else Missing(failure.reason)


def _unusable(why: Unusable) -> _Unread:
    return _Unread(f"{why}, and there is no fallback", why)
