"""What the answers for one response took, whoever paid for them and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from factormodels.errors import FactormodelsError
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    Request,
    lacking_parameters,
)


class StoppedError(FactormodelsError):
    """Nobody waits for the answer any more."""


@dataclass
class Account:
    """What answers took since it was opened, or since the last `take`.

    Attributes:
        outages: why calls failed that may succeed later.
        lacking: parameters that the model does not take, as far as is known.
        stopped: whether nobody waits for answers any more: then none is asked for.
    """

    outages: list[str] = field(default_factory=list)
    lacking: frozenset[str] = frozenset()
    stopped: Callable[[], bool] = lambda: False
    _stages: dict[str, list[tuple[int, int, float | None]]] = field(default_factory=dict)

    def add(self, stage: str, answer: Completion | Failure) -> None:
        """Add what an answer of a stage took, also one that could not be read."""
        usage = answer.usage
        if isinstance(answer, Completion) or usage.prompt_tokens or usage.completion_tokens:
            taken = (usage.prompt_tokens, usage.completion_tokens, usage.cost)
            self._stages.setdefault(stage, []).append(taken)
        if isinstance(answer, Failure) and answer.outage:
            self.outages.append(answer.reason)

    def take(self) -> dict[str, Any]:
        """Answers, tokens and cost by stage, and begin anew.

        `cost` is in US dollars, of the answers whose price is known; `unpriced` counts the others.
        `not_sent` names the parameters that the model does not take, where there are any.
        """
        not_sent = {"not_sent": sorted(self.lacking)} if self.lacking else {}
        stages, self._stages = self._stages, {}
        return {
            stage: {
                "answers": len(taken),
                "prompt_tokens": sum(question for question, _, _ in taken),
                "completion_tokens": sum(answer for _, answer, _ in taken),
                # Calls end in any order, and the order of a sum of floats shows.
                "cost": sum(sorted(cost for _, _, cost in taken if cost is not None)),
                "unpriced": sum(cost is None for _, _, cost in taken),
                **not_sent,
            }
            for stage, taken in sorted(stages.items())
        }


_ACCOUNT: ContextVar[Account | None] = ContextVar("account", default=None)


@contextmanager
def charged_to(account: Account) -> Iterator[None]:
    """Let the block's answers be added to an account, whatever other threads ask meanwhile.

    Tasks and callbacks that the block starts in an event loop belong to it too.
    """
    token = _ACCOUNT.set(account)
    try:
        yield
    finally:
        _ACCOUNT.reset(token)


class Consumption:
    """A language model that adds up what its answers took: in an account, or until it is asked.

    An answer from the cache counts like a new one, so that a run that was interrupted tells the
    same of a response as one that was not; `accounting.Ledger` has what a run itself paid.

    Args:
        model: who answers.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._own = Account()

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._model.name

    @property
    def lacking(self) -> frozenset[str]:
        """Parameters that the model does not take, as far as is known."""
        return lacking_parameters(self._model)

    async def complete(self, request: Request) -> Completion | Failure:
        """Model's answer, added up.

        Raises:
            StoppedError: if nobody waits for it any more.
        """
        account = _ACCOUNT.get() or self._own
        if account.stopped():
            raise StoppedError("the assessment was stopped")
        answer = await self._model.complete(request)
        account.lacking = self.lacking
        account.add(request.stage, answer)
        return answer

    def take(self) -> dict[str, Any]:
        """What answers took outside of accounts since the last call, as `Account.take`."""
        return self._own.take()


def total(stages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum of what stages took, each as `Account.take` tells it."""
    names = ("answers", "prompt_tokens", "completion_tokens", "cost", "unpriced")
    told = list(stages)
    # The order of a sum of floats shows.
    return {name: sum(sorted(stage[name] for stage in told)) for name in names}
