"""What answers took and cost: `Ledger` of what a run paid, `Account` of what a response took."""

from __future__ import annotations

from collections import Counter
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
    Usage,
    WrappedModel,
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
        prefix_tokens: those of the prompt tokens, of answers from the cache too, that a server took
            from its prefix cache.
        reason: why the first call failed; empty if none did.
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
    prefix_tokens: int = 0
    reason: str = ""

    @property
    def made(self) -> int:
        """Number of calls, whoever answered them and whether or not they failed."""
        return self.calls + self.cached + self.failures

    @property
    def taken(self) -> Usage:
        """What all answers took, whenever they were asked for."""
        unknown = self.unpriced or self.cached_unpriced
        return Usage(
            self.prompt_tokens + self.cached_prompt_tokens,
            self.completion_tokens + self.cached_completion_tokens,
            None if unknown else self.cost + self.cached_cost,
            self.prefix_tokens,
        )

    def __add__(self, other: StageUsage) -> StageUsage:
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__dataclass_fields__
            if name != "reason"
        }
        return StageUsage(**sums, reason=self.reason or other.reason)


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


class MeteredModel(WrappedModel):
    """A language model whose answers are counted.

    Args:
        model: who answers.
        ledger: where its answers are counted.
    """

    def __init__(self, model: LanguageModel, ledger: Ledger) -> None:
        super().__init__(model)
        self._ledger = ledger

    async def complete(self, request: Request) -> Completion | Failure:
        """Model's answer, counted."""
        answer = await self._model.complete(request)
        self._ledger.add(request.stage, answer)
        return answer


def _usage(answer: Completion | Failure) -> StageUsage:
    usage = answer.usage
    cost, unpriced = usage.cost or 0.0, int(usage.cost is None)
    failed = isinstance(answer, Failure)
    reason = answer.reason if isinstance(answer, Failure) else ""
    # A call that nobody answered has no price; one whose answer was of no use has.
    if failed and not usage.prompt_tokens and not usage.completion_tokens:
        return StageUsage(failures=1, reason=reason)
    if answer.cached:
        return StageUsage(
            cached=int(not failed),
            failures=int(failed),
            cached_prompt_tokens=usage.prompt_tokens,
            cached_completion_tokens=usage.completion_tokens,
            cached_cost=cost,
            cached_unpriced=unpriced,
            prefix_tokens=usage.prefix_tokens,
            reason=reason,
        )
    return StageUsage(
        calls=int(not failed),
        failures=int(failed),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=cost,
        unpriced=unpriced,
        prefix_tokens=usage.prefix_tokens,
        reason=reason,
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
    _stages: dict[str, list[Usage]] = field(default_factory=dict)
    _made: Counter[str] = field(default_factory=Counter)
    _failed: dict[str, list[str]] = field(default_factory=dict)

    def add(self, stage: str, answer: Completion | Failure) -> None:
        """Add what an answer of a stage took, also one that could not be read."""
        usage = answer.usage
        self._made[stage] += 1
        if isinstance(answer, Failure):
            self._failed.setdefault(stage, []).append(answer.reason)
        if isinstance(answer, Completion) or usage.prompt_tokens or usage.completion_tokens:
            self._stages.setdefault(stage, []).append(usage)
        if isinstance(answer, Failure) and answer.outage:
            self.outages.append(answer.reason)

    def costs(self, stage: str) -> list[float | None]:
        """US dollars of each answer of a stage, in turn; None where its price is not known."""
        return [usage.cost for usage in self._stages.get(stage, ())]

    def take(self) -> dict[str, Any]:
        """Answers, tokens and cost by stage, and begin anew.

        `cost` is in US dollars, of the answers whose price is known; `unpriced` counts the others.
        `prefix_tokens`, where there are any, counts the tokens of questions that a server took from
        its prefix cache. `not_sent` names the parameters that the model does not take, where there
        are any. `failed`,
        where calls failed, has the number of all `calls`, that of the `failures` among them, and
        the `reason` of the first.
        """
        not_sent = {"not_sent": sorted(self.lacking)} if self.lacking else {}
        stages, self._stages = self._stages, {}
        made, self._made = self._made, Counter()
        failed, self._failed = self._failed, {}
        counts = {
            stage: {"calls": made[stage], "failures": len(reasons), "reason": reasons[0]}
            for stage, reasons in failed.items()
        }
        return {
            stage: {
                "answers": len(taken),
                "prompt_tokens": sum(usage.prompt_tokens for usage in taken),
                "completion_tokens": sum(usage.completion_tokens for usage in taken),
                # Calls end in any order, and the order of a sum of floats shows.
                "cost": sum(sorted(usage.cost for usage in taken if usage.cost is not None)),
                "unpriced": sum(usage.cost is None for usage in taken),
                **({"prefix_tokens": prefix} if prefix else {}),
                **not_sent,
                **({"failed": counts[stage]} if stage in counts else {}),
            }
            for stage in sorted({*stages, *failed})
            for taken in [stages.get(stage, [])]
            for prefix in [sum(usage.prefix_tokens for usage in taken)]
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


def charged_account() -> Account | None:
    """The account that answers are added to here; None outside of every `charged_to`."""
    return _ACCOUNT.get()


class Consumption(WrappedModel):
    """A language model that adds up what its answers took: in an account, or until it is asked.

    An answer from the cache counts like a new one, so that a run that was interrupted tells the
    same of a response as one that was not; `Ledger` has what a run itself paid.

    Args:
        model: who answers.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self._own = Account()

    async def complete(self, request: Request) -> Completion | Failure:
        """Model's answer, added up.

        Raises:
            StoppedError: if nobody waits for it any more.
        """
        account = charged_account() or self._own
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
    listed = list(stages)
    # The order of a sum of floats shows.
    return {name: sum(sorted(stage[name] for stage in listed)) for name in names}
