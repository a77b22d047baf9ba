"""An amount for relations: what is paid stays within it, however dear answers turn out to be."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.evaluators.purse import Purse
from factormodels import read_many
from factormodels.extraction.language_model import Completion, Usage
from factormodels.extraction.language_model.accounting import Account, charged_to
from factormodels.extraction.relation_models.prompted import STAGE
from tests.experiments.conftest import invoke, write_batch
from tests.experiments.evaluators.test_assess_model import provider, stage_of
from tests.factormodels.extraction.questions import question_of
from tests.factormodels.extraction.server import Reply, ScriptedServer

PRICE = 1e-6
"""US dollars of a token, of questions and answers."""

TEXTS = [f"Trains cross bridge {i}. Cars cross {i}. Boats pass below bridge {i}." for i in range(5)]
DOCUMENTS = {f"{i}.txt": f"Only trains cross bridge {i}, says report {i}." for i in range(4)}

# Constant, rising all the way, and at random, of a heavy tail.
DEARNESS: dict[str, Callable[[int], int]] = {
    "alike": lambda _: 3_000,
    "rising": lambda number: 200 + 60 * number,
    "any": lambda number: int(200 * np.random.default_rng(number).pareto(1.5)) + 50,
}


def spent(purse: Purse, response: str, costs: Callable[[], float | None], most: int) -> list[int]:
    """Sizes of the batches of a response whose calls cost this, until no more fit."""
    sizes: list[int] = []
    account = Account()
    with charged_to(account):
        while most > 0:
            with purse.batch(response, min(8, most)) as count:
                for _ in range(count):
                    account.add(STAGE, Completion("neutral", usage=Usage(1, 1, costs())))
            if not count:
                break
            sizes.append(count)
            most -= count
    return sizes


def test_batches_shrink_as_the_amount_does() -> None:
    sizes = spent(Purse(1.0, {"r": 1.0}, 0.1), "r", lambda: 0.02, 1_000)
    assert sum(sizes) == 50
    assert sizes[0] == sizes[-1] == 1
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    assert max(sizes) == 8


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("responses", [1, 7])
def test_an_amount_is_exceeded_by_less_than_one_pair(seed: int, responses: int) -> None:
    generator = np.random.default_rng(seed)
    # No answer is more than twice as dear as the first.
    drawn = [0.1, *generator.uniform(0.05, 0.2, 2_000)]
    paid: list[float] = []
    lock = threading.Lock()

    def cost() -> float:
        with lock:
            paid.append(drawn[len(paid)])
            return paid[-1]

    names = [f"r{number}" for number in range(responses)]
    amount = float(generator.uniform(1, 12))
    purse = Purse(amount, dict.fromkeys(names, amount / responses), 0.01)
    threads = [threading.Thread(target=spent, args=(purse, name, cost, 500)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert purse.took == pytest.approx(sum(paid))
    assert sum(paid) < amount + max(paid)
    # Not much is left over either: of each response at most what rounds to no pair.
    assert sum(paid) > amount - responses * max(paid)


def test_answers_without_a_price_count_as_expected_and_failed_ones_as_nothing() -> None:
    purse = Purse(1.0, {"r": 1.0}, 0.1)
    assert sum(spent(purse, "r", lambda: None, 1_000)) == 10
    nothing = Purse(1.0, {"r": 1.0}, 0.1)
    with charged_to(Account()), nothing.batch("r", 8) as count:
        assert count == 1
    assert nothing.took == 0.0


def test_what_an_earlier_run_finished_is_no_longer_in_the_purse() -> None:
    purse = Purse(1.0, {"r": 0.5, "s": 0.5}, 0.1)
    purse.note("s", 0.9)
    assert sum(spent(purse, "r", lambda: 0.05, 1_000)) == 2


def relations_of(server: ScriptedServer) -> list[str]:
    return [question_of(each) for each in server.requests if stage_of(each) == "relations"]


@pytest.mark.service
@pytest.mark.parametrize("dearness", DEARNESS)
@pytest.mark.parametrize("responses", [1, 5])
def test_what_is_paid_is_bounded_by_less_than_one_call(
    keyed: Path, dearness: str, responses: int
) -> None:
    write_batch(keyed, TEXTS[:responses], DOCUMENTS)
    paid: list[float] = []

    def dear(request: dict[str, Any], number: int) -> Reply:
        reply = provider(request, number)
        if stage_of(request) != "relations":
            return reply
        tokens = DEARNESS[dearness](len(paid))
        paid.append(PRICE * (20 + tokens))
        return Reply(reply.text, reply.tokens, usage=(20, tokens))

    def run(server: ScriptedServer, amount: float) -> str:
        prices = ("--model", f"openai/scripted,api-base={server.url},price-in=1,price-out=1")
        given = ("assess", "batch.jsonl", "--documents", "notes", "--atoms", "sentences", *prices)
        return invoke(*given, "--spend", f"US$ {amount}", "--out", "o").stdout

    with ScriptedServer(dear) as server:
        for amount in (0.003, 0.02):
            said = run(server, amount)
            assert 0 < sum(paid) < amount + max(paid)
            told = re.search(r"Relations took (\S+) of (\S+) US dollars", said)
            assert told is not None, said
            assert float(told[1]) == pytest.approx(sum(paid), rel=1e-4)
            assert float(told[2]) == amount
            graphs = read_many(keyed / "o/graphs.jsonl")
            of_all = [graph.metadata["relations"] for graph in graphs]
            assert sum(one["asked"] for one in of_all) == len(paid) == len(relations_of(server))
            assert not any(one["missing"] for one in of_all)
            left = [one for one in of_all if one.get("unasked")]
            assert left or sum(paid) <= amount
            assert "pairs asked, in order of what they are worth" in said
            # More goes on from there: nothing is asked twice.
            assert len(set(relations_of(server))) == len(paid)
