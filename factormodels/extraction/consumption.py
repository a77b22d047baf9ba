"""What the answers for one response took, whoever paid for them and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from factormodels.extraction.language_model import Completion, Failure, LanguageModel, Request


class Consumption:
    """A language model that adds up what its answers took until it is asked.

    An answer from the cache counts like a new one, so that a run that was interrupted tells the
    same of a response as one that was not; `accounting.Ledger` has what a run itself paid.

    Args:
        model: who answers.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._stages: dict[str, list[tuple[int, int, float | None]]] = {}

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._model.name

    async def complete(self, request: Request) -> Completion | Failure:
        """Model's answer, added up."""
        answer = await self._model.complete(request)
        if isinstance(answer, Completion):
            usage = answer.usage
            taken = (usage.prompt_tokens, usage.completion_tokens, usage.cost)
            self._stages.setdefault(request.stage, []).append(taken)
        return answer

    def take(self) -> dict[str, Any]:
        """Answers, tokens and cost by stage since the last call, and begin anew.

        `cost` is in US dollars, of the answers whose price is known; `unpriced` counts the others.
        """
        stages, self._stages = self._stages, {}
        return {
            stage: {
                "answers": len(taken),
                "prompt_tokens": sum(question for question, _, _ in taken),
                "completion_tokens": sum(answer for _, answer, _ in taken),
                # Calls end in any order, and the order of a sum of floats shows.
                "cost": sum(sorted(cost for _, _, cost in taken if cost is not None)),
                "unpriced": sum(cost is None for _, _, cost in taken),
            }
            for stage, taken in sorted(stages.items())
        }


def total(stages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum of what stages took, each as `Consumption.take` tells it."""
    names = ("answers", "prompt_tokens", "completion_tokens", "cost", "unpriced")
    told = list(stages)
    # The order of a sum of floats shows.
    return {name: sum(sorted(stage[name] for stage in told)) for name in names}
