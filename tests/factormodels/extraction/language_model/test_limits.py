"""A run ends before it asks or pays more than it may, and loses no answer that it paid for."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from factormodels.errors import LimitReachedError
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    Message,
    PromptIdentity,
    Request,
    Usage,
)
from factormodels.extraction.language_model.cache import AnswerCache, CachedModel
from factormodels.extraction.language_model.limits import Budget, Pace
from factormodels.extraction.language_model.prices import model_prices


def request(number: int) -> Request:
    return Request((Message("user", f"question {number}"),), PromptIdentity("p", 1, ""), "s")


class Charging:
    """A model that answers after a moment at a price, within a budget."""

    name = "charging"

    def __init__(self, budget: Budget, price: float | None = 0.01) -> None:
        self.budget = budget
        self.price = price
        self.asked = 0

    async def complete(self, _request: Request) -> Completion | Failure:
        await self.budget.admit()
        self.asked += 1
        await asyncio.sleep(0.02)
        self.budget.settle(self.price)
        return Completion("fine", usage=Usage(1, 1, self.price))


def test_a_limit_of_calls_ends_a_run_that_can_be_gone_on_with(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "c.db")
    model = Charging(Budget(max_calls=7))
    requests = [request(number) for number in range(20)]
    with pytest.raises(LimitReachedError, match="the limit of 7 calls is reached"):
        run_until_done(each(CachedModel(model, cache).complete, requests, 5))
    # Those that were under way when the limit was met have come in, and are kept.
    assert (model.asked, len(cache)) == (7, 7)
    model.budget = Budget(max_calls=13)
    run_until_done(each(CachedModel(model, cache).complete, requests, 5))
    assert (model.asked, len(cache)) == (20, 20)


def test_a_limit_of_cost_is_not_overrun_by_calls_under_way(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "c.db")
    model = Charging(Budget(max_cost=0.085))
    with pytest.raises(LimitReachedError, match=r"0\.085 US dollars is reached, 0\.08 are spent"):
        run_until_done(each(CachedModel(model, cache).complete, map(request, range(50)), 20))
    # Eight cents are the most that whole calls of one cent can make of eight and a half.
    assert (model.asked, len(cache)) == (8, 8)


def test_answers_of_no_price_cost_nothing() -> None:
    model = Charging(Budget(max_cost=0.0001), price=None)
    run_until_done(each(model.complete, map(request, range(3)), 3))
    assert model.asked == 3


def test_searches_are_charged_too() -> None:
    budget = Budget(max_cost=0.005)
    for _ in range(5):
        run_until_done(budget.charge(0.001))
    with pytest.raises(LimitReachedError, match=r"0\.005 US dollars"):
        run_until_done(budget.charge(0.001))
    assert budget.cost == pytest.approx(0.005)
    # What is free can always be had.
    run_until_done(budget.charge(0.0))


def test_a_search_counts_the_calls_under_way() -> None:
    budget = Budget(max_cost=1.0)

    async def go(cost: float) -> None:
        await budget.admit(0.95)
        searching = asyncio.create_task(budget.charge(0.1))
        await asyncio.sleep(0.05)
        # The call may cost so much that nothing is left for the search: it waits for the answer.
        assert not searching.done()
        budget.settle(cost, 0.95)
        await searching

    run_until_done(go(0.2))
    assert budget.cost == pytest.approx(0.3)
    budget.cost = 0.0
    with pytest.raises(LimitReachedError, match=r"0\.95 are spent"):
        run_until_done(go(0.95))


@pytest.mark.parametrize("seed", range(5))
def test_the_limit_is_exceeded_by_less_than_one_call_at_its_longest(seed: int) -> None:
    chance = random.Random(seed)
    budget, longest = Budget(max_cost=1.0), 0.3
    under_way: list[float] = []
    most = 0

    async def complete(_: int) -> None:
        nonlocal most
        await budget.admit(longest)
        under_way.append(longest)
        most = max(most, len(under_way))
        # Alone, or within the limit even if every call under way is as long as it can be.
        assert len(under_way) == 1 or budget.cost + sum(under_way) <= 1.0 + 1e-9
        await asyncio.sleep(0)
        under_way.pop()
        # Nine calls of ten cost little, so that the dearest so far says little of the next.
        budget.settle(longest if chance.random() < 0.1 else 0.01, longest)

    with pytest.raises(LimitReachedError):
        run_until_done(each(complete, range(1000), 20))
    assert most == 3
    assert 1.0 - longest < budget.cost < 1.0 + longest


def test_requests_are_spaced_evenly() -> None:
    pace = Pace(requests=1200)
    starts = []

    async def go(_: int) -> None:
        await pace.wait(lambda: 1)
        starts.append(time.monotonic())

    run_until_done(each(go, range(5), 5))
    # 1,200 a minute are one in 50 ms; sleeping may end a little late, never early.
    assert max(starts) - min(starts) >= 0.2 - 0.002


def test_tokens_are_spaced_by_what_requests_took() -> None:
    pace = Pace(tokens=60_000)

    async def go() -> float:
        begin = time.monotonic()
        expected = await pace.wait(lambda: 1000)
        pace.correct(expected, 100)
        await pace.wait(lambda: 50)
        return time.monotonic() - begin

    # A thousand a second: the first took 100 of them, though 1,000 were expected.
    assert 0.1 - 0.002 <= run_until_done(go()) < 0.9


def test_who_waits_for_tokens_goes_on_when_an_answer_was_short() -> None:
    pace = Pace(tokens=60.0)

    async def go() -> int:
        # A thousand seconds' worth, but for the answer that comes in.
        expected = await pace.wait(lambda: 1000)
        waiting = asyncio.create_task(pace.wait(lambda: 3))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        pace.correct(expected, 0)
        return await asyncio.wait_for(waiting, 60.0)

    assert run_until_done(go()) == 3


def test_a_call_that_failed_tells_no_price() -> None:
    budget = Budget(max_cost=0.001)
    prices = [None, *[0.01] * 49]

    async def complete(number: int) -> None:
        await budget.admit()
        await asyncio.sleep(0.001)
        budget.settle(prices[number])

    with pytest.raises(LimitReachedError):
        run_until_done(each(complete, range(50), 20))
    # One at a time until a price is seen: the one that failed, and the one that cost too much.
    assert budget.calls == 2


@pytest.mark.slow
def test_a_listed_model_has_prices_with_or_without_its_provider() -> None:
    prices = model_prices("openai/gpt-4o-mini")
    assert prices is not None
    assert prices == model_prices("gpt-4o-mini")
    # An answer's token costs more than a question's, and both far less than a cent.
    assert 0 < prices[0] < prices[1] < 0.01


def test_another_model_has_none() -> None:
    assert model_prices("openai/never-heard-of") is None
    assert model_prices("") is None
