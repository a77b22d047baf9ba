"""What language models were asked and what it cost, by stage."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from factormodels.extraction.language_model import Completion, Failure, LanguageModel, Request


@dataclass(frozen=True)
class StageUsage:
    """What one stage asked.

    Attributes:
        calls: answers that a provider gave.
        cached: answers from the cache, at no cost.
        failures: calls that failed for good.
        prompt_tokens, completion_tokens: tokens of the calls, as providers reported them.
        cost: price in US dollars of the calls whose price is known.
        unpriced: calls whose price is not known.
    """

    calls: int = 0
    cached: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def __add__(self, other: StageUsage) -> StageUsage:
        return StageUsage(
            *(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__)
        )


@dataclass
class Ledger:
    """A count that grows while stages run.

    Attributes:
        stages: usage by name of stage, in the order of their first calls.
    """

    stages: dict[str, StageUsage] = field(default_factory=dict)

    def add(self, stage: str, answer: Completion | Failure) -> None:
        """Count an answer of a stage."""
        self.stages[stage] = self.stages.get(stage, StageUsage()) + _usage(answer)

    @property
    def total(self) -> StageUsage:
        """The sum over the stages."""
        return sum(self.stages.values(), StageUsage())


class MeteredModel:
    """A language model whose answers are counted.

    Args:
        model: who answers.
        ledger: where its answers are counted.
    """

    def __init__(self, model: LanguageModel, ledger: Ledger) -> None:
        self._model = model
        self._ledger = ledger

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._model.name

    async def complete(self, request: Request) -> Completion | Failure:
        """Model's answer, counted."""
        answer = await self._model.complete(request)
        self._ledger.add(request.stage, answer)
        return answer


def _usage(answer: Completion | Failure) -> StageUsage:
    if isinstance(answer, Failure):
        return StageUsage(failures=1)
    if answer.cached:
        return StageUsage(cached=1)
    usage = answer.usage
    counted = StageUsage(
        calls=1,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
    )
    if usage.cost is None:
        return replace(counted, unpriced=1)
    return replace(counted, cost=usage.cost)
