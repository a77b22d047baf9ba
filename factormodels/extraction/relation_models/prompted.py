"""A language model as a relation model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.answers import SUREST, read_confidence, read_json, read_label
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import Completion, Failure, LanguageModel, Request
from factormodels.extraction.prompts import load_prompt
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair

Method = Literal["logprobs", "verbalised", "samples"]

STAGE = "relations"

_LABELS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL)
_NAMES = tuple(str(kind) for kind in _LABELS)
_WORD_TOKENS = 16
_JSON_TOKENS = 64
_MOST_ALTERNATIVES = 20


@dataclass(frozen=True)
class PromptedRelationModel:
    """A relation model that asks a language model about each pair.

    Attributes:
        model: the language model.
        method: where probabilities come from: "logprobs" (of the label's first token that tells
            labels apart), "verbalised" (the model states its confidence) or "samples" (the shares
            of the labels in repeated answers, one answer spread evenly added).
        fallback: the method for answers that come without log-probabilities; None: missing.
        samples: answers per pair of the method "samples".
        temperature: of the method "samples"; the others are greedy.
        top_logprobs: alternatives per token that are asked for.
        seed: sampling seed; None leaves it to the provider.
        concurrency: most pairs under way at a time.
    """

    model: LanguageModel
    method: Method = "logprobs"
    fallback: Method | None = "verbalised"
    samples: int = 5
    temperature: float = 0.7
    top_logprobs: int = 5
    seed: int | None = 0
    concurrency: int = 64

    def __post_init__(self) -> None:
        known = get_args(Method)
        if self.method not in known or self.fallback not in (None, "verbalised", "samples"):
            raise InputError(
                f"the method {self.method!r} with fallback {self.fallback!r} is unknown; use "
                f"{', '.join(known)}, and verbalised, samples or None as the fallback"
            )
        if self.samples < 1 or self.concurrency < 1:
            raise InputError("samples and concurrency of a relation model are 1 or more")
        if not 1 <= self.top_logprobs <= _MOST_ALTERNATIVES:
            raise InputError(f"top_logprobs is {self.top_logprobs}; give 1 to {_MOST_ALTERNATIVES}")

    @property
    def name(self) -> str:
        """The language model's name and the method."""
        return f"{self.model.name} ({self.method})"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """One answer per pair, in order; a failure is a value, no exception."""
        return run_until_done(self.judge_async(pairs))

    async def judge_async(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """One answer per pair, in order, from asynchronous code."""
        return await each(self._judge_one, pairs, self.concurrency)

    async def _judge_one(self, pair: TextPair) -> Judgement | Missing:
        found = await self._ask(pair, self.method)
        if found is None and self.fallback is not None:
            found = await self._ask(pair, self.fallback)
        return found or Missing("the provider gives no log-probabilities and there is no fallback")

    async def _ask(self, pair: TextPair, method: Method) -> Judgement | Missing | None:
        """Judgement; None where the answer has no log-probabilities."""
        if method == "samples":
            return await self._sampled(pair)
        answer = await self.model.complete(self._request(pair, method))
        if isinstance(answer, Failure):
            return Missing(answer.reason)
        return _verbalised(answer) if method == "verbalised" else _from_tokens(answer)

    async def _sampled(self, pair: TextPair) -> Judgement | Missing:
        counts: Counter[str] = Counter()
        reason = ""
        for sample in range(self.samples):
            answer = await self.model.complete(self._request(pair, "samples", sample))
            if isinstance(answer, Failure):
                reason = answer.reason
                continue
            label = read_label(answer, _NAMES)
            if label is None:
                reason = _unreadable(answer)
            else:
                counts[label.name] += 1
        total = counts.total()
        if not total:
            return Missing(reason)
        shares = tuple((counts[name] + 1 / len(_NAMES)) / (total + 1) for name in _NAMES)
        best = max(range(len(_NAMES)), key=shares.__getitem__)
        return Judgement(_LABELS[best], shares[best], "samples", _three(shares))

    def _request(self, pair: TextPair, method: Method, sample: int = 0) -> Request:
        prompt = load_prompt("relation_verbalised" if method == "verbalised" else "relation")
        return Request(
            messages=prompt.render(premise=pair.premise, hypothesis=pair.hypothesis),
            prompt=prompt.identity,
            stage=STAGE,
            temperature=self.temperature if method == "samples" else 0.0,
            max_tokens=_JSON_TOKENS if method == "verbalised" else _WORD_TOKENS,
            top_logprobs=self.top_logprobs if method == "logprobs" else 0,
            seed=self.seed,
            sample=sample,
        )


def _from_tokens(answer: Completion) -> Judgement | Missing | None:
    label = read_label(answer, _NAMES)
    if label is None:
        return Missing(_unreadable(answer))
    if label.probability is None or label.distribution is None:
        return None
    kind = RelationKind(label.name)
    return Judgement(kind, label.probability, "logprobs", _three(label.distribution))


def _verbalised(answer: Completion) -> Judgement | Missing:
    stated = read_json(answer.text)
    if not isinstance(stated, dict):
        return Missing(_unreadable(answer, "is no JSON object"))
    name = str(stated.get("relation", "")).strip().lower()
    confidence = read_confidence(stated.get("confidence"))
    if name not in _NAMES or confidence is None:
        return Missing(_unreadable(answer, "lacks a relation or a confidence"))
    return Judgement(RelationKind(name), min(confidence, SUREST), "verbalised")


def _three(shares: Sequence[float]) -> tuple[float, float, float]:
    entailment, contradiction, neutral = shares
    return entailment, contradiction, neutral


def _unreadable(answer: Completion, what: str = "gives no single label") -> str:
    cut = ", cut off at its longest" if answer.finish == "length" else ""
    words = " ".join(answer.text.split())
    return f"the answer {what}{cut}: {words[:60]!r}"
