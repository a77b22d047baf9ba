"""Accounting of answers: `Ledger` for the cost of a run, `Account` for the cost of a response."""

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
    """Usage of one stage.

    Attributes:
        calls: answers that a provider gave and that could be parsed.
        cached: answers from the cache, without cost now.
        failures: calls that failed permanently, including answers that could not be parsed.
        prompt_tokens, completion_tokens: tokens of the calls, including failed ones, as reported by
            the provider.
        cost: price in US dollars of the calls with a known price.
        unpriced: number of calls without a known price.
        cached_prompt_tokens, cached_completion_tokens: original tokens of the answers from the
            cache.
        cached_cost: their original price in US dollars, as far as known.
        cached_unpriced: number of them without a known price.
        prefix_tokens: prompt tokens, including those of cached answers, that a server took from its
            prefix cache.
        reason: reason of the first failure; empty if no call failed.
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
        """Number of calls, cached and failed ones included."""
        return self.calls + self.cached + self.failures

    @property
    def taken(self) -> Usage:
        """Usage of all answers, including the original usage of cached ones."""
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
    """Usage by stage, added up while stages run.

    Attributes:
        stages: usage by name of stage, in the order of their first calls.
    """

    stages: dict[str, StageUsage] = field(default_factory=dict)

    def add(self, stage: str, answer: Completion | Failure) -> None:
        """Count an answer of a stage."""
        self.stages[stage] = self.stages.get(stage, StageUsage()) + _usage(answer)

    @property
    def total(self) -> StageUsage:
        """Return the sum over the stages."""
        # Copied, since another thread may add a stage at the same time.
        return sum(tuple(self.stages.values()), StageUsage())


class MeteredModel(WrappedModel):
    """A language model whose answers are counted in a ledger.

    Args:
        model: the model.
        ledger: the ledger.
    """

    def __init__(self, model: LanguageModel, ledger: Ledger) -> None:
        super().__init__(model)
        self._ledger = ledger

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the model's answer, and count it."""
        answer = await self._model.complete(request)
        self._ledger.add(request.stage, answer)
        return answer


def _usage(answer: Completion | Failure) -> StageUsage:
    usage = answer.usage
    cost, unpriced = usage.cost or 0.0, int(usage.cost is None)
    failed = isinstance(answer, Failure)
    reason = answer.reason if isinstance(answer, Failure) else ""
    # An unanswered call has no price; an answered one has, even if the answer is unusable.
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
    """The caller no longer waits for the answer."""


@dataclass
class Account:
    """Usage since the account was opened, or since the last `take`.

    Attributes:
        outages: reasons of failures that may be temporary.
        lacking: parameters that the model is known not to take.
        stopped: whether the caller no longer waits for answers; no more calls are then made.
    """

    outages: list[str] = field(default_factory=list)
    lacking: frozenset[str] = frozenset()
    stopped: Callable[[], bool] = lambda: False
    _stages: dict[str, list[Usage]] = field(default_factory=dict)
    _made: Counter[str] = field(default_factory=Counter)
    _failed: dict[str, list[str]] = field(default_factory=dict)

    def add(self, stage: str, answer: Completion | Failure) -> None:
        """Add the usage of an answer of a stage, even if it could not be parsed."""
        usage = answer.usage
        self._made[stage] += 1
        if isinstance(answer, Failure):
            self._failed.setdefault(stage, []).append(answer.reason)
        if isinstance(answer, Completion) or usage.prompt_tokens or usage.completion_tokens:
            self._stages.setdefault(stage, []).append(usage)
        if isinstance(answer, Failure) and answer.outage:
            self.outages.append(answer.reason)

    def costs(self, stage: str) -> list[float | None]:
        """Return the US dollars of each answer of a stage, in order; None if unknown."""
        return [usage.cost for usage in self._stages.get(stage, ())]

    def take(self) -> dict[str, Any]:
        """Return answers, tokens and cost by stage, and reset the account.

        `cost` is in US dollars, for the answers with a known price; `unpriced` counts the others.
        `prefix_tokens`, if any, counts the prompt tokens that a server took from its prefix cache.
        `not_sent`, if any, names the parameters that the model does not take. `failed`, if calls
        failed, has the number of all `calls`, the number of `failures`, and the `reason` of the
        first.
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
                # Sorted, since calls end in any order and a sum of floats depends on the order.
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
    """Add the block's answers to an account, regardless of calls from other threads.

    This includes tasks and callbacks that the block starts in an event loop.
    """
    token = _ACCOUNT.set(account)
    try:
        yield
    finally:
        _ACCOUNT.reset(token)


def charged_account() -> Account | None:
    """Return the account in effect; None outside of `charged_to`."""
    return _ACCOUNT.get()


class Consumption(WrappedModel):
    """A language model that adds up the usage of its answers, in the current account or until
    `take`.

    Cached answers count like new ones, so that an interrupted and resumed run reports the same
    usage of a response as an uninterrupted one; `Ledger` has the cost of the run itself.

    Args:
        model: the model.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self._own = Account()

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the model's answer, and add up its usage.

        Raises:
            StoppedError: if the caller no longer waits for it.
        """
        account = charged_account() or self._own
        if account.stopped():
            raise StoppedError("the assessment was stopped")
        answer = await self._model.complete(request)
        account.lacking = self.lacking
        account.add(request.stage, answer)
        return answer

    def take(self) -> dict[str, Any]:
        """Return usage outside of accounts since the last call, as `Account.take`."""
        return self._own.take()


def total(stages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum over stages of usages in the form of `Account.take`."""
    names = ("answers", "prompt_tokens", "completion_tokens", "cost", "unpriced")
    listed = list(stages)
    # Sorted, since a sum of floats depends on the order.
    return {name: sum(sorted(stage[name] for stage in listed)) for name in names}
