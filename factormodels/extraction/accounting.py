"""What language models were asked and what it cost, by stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    Request,
    Usage,
    lacking_parameters,
)


@dataclass(frozen=True)
class StageUsage:
    """What one stage asked.

    Attributes:
        calls: answers that a provider gave and that could be read.
        cached: answers from the cache, at no cost now.
        failures: calls that failed for good, also for an answer that could not be read.
        prompt_tokens, completion_tokens: tokens of the calls, failed ones among them, as providers
            reported them.
        cost: price in US dollars of the calls whose price is known.
        unpriced: calls whose price is not known.
        cached_prompt_tokens, cached_completion_tokens: tokens that answers from the cache took when
            they were requested.
        cached_cost: their price in US dollars, as far as it is known.
        cached_unpriced: those of them whose price is not known.
    """

    calls: int = 0
    cached: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0
    cached_cost: float = 0.0
    cached_unpriced: int = 0

    @property
    def taken(self) -> Usage:
        """What all answers took, whenever they were asked for."""
        unknown = self.unpriced or self.cached_unpriced
        return Usage(
            self.prompt_tokens + self.cached_prompt_tokens,
            self.completion_tokens + self.cached_completion_tokens,
            None if unknown else self.cost + self.cached_cost,
        )

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
        # A copy: another thread may add a stage meanwhile.
        return sum(tuple(self.stages.values()), StageUsage())


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

    @property
    def lacking(self) -> frozenset[str]:
        """Parameters that the model does not take, as far as is known."""
        return lacking_parameters(self._model)

    async def complete(self, request: Request) -> Completion | Failure:
        """Model's answer, counted."""
        answer = await self._model.complete(request)
        self._ledger.add(request.stage, answer)
        return answer


def _usage(answer: Completion | Failure) -> StageUsage:
    usage = answer.usage
    cost, unpriced = usage.cost or 0.0, int(usage.cost is None)
    failed = isinstance(answer, Failure)
    # A call that nobody answered has no price; one whose answer was of no use has.
    if failed and not usage.prompt_tokens and not usage.completion_tokens:
        return StageUsage(failures=1)
    if answer.cached:
        return StageUsage(
            cached=int(not failed),
            failures=int(failed),
            cached_prompt_tokens=usage.prompt_tokens,
            cached_completion_tokens=usage.completion_tokens,
            cached_cost=cost,
            cached_unpriced=unpriced,
        )
    return StageUsage(
        calls=int(not failed),
        failures=int(failed),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=cost,
        unpriced=unpriced,
    )
