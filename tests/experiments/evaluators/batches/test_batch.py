"""A batch: responses side by side under one limit, outages, what a later run does about them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments.evaluators.batches.threads import OneAtATime, as_ready
from factormodels import read_many
from tests.experiments.conftest import invoke, write_batch
from tests.experiments.evaluators.test_assess_model import provider, stage_of
from tests.factormodels.extraction.server import Reply, ScriptedServer

N = 12
LIMIT = 5


@pytest.fixture
def notes(keyed: Path) -> Path:
    """A batch, one document, and a key in the environment."""
    texts = {f"r{i:02}": f"Train {i} crosses the bridge. Cars do." for i in range(N)}
    write_batch(keyed, texts, {"a.txt": "Only trains cross the bridge."})
    return keyed


def arguments(url: str, *more: str) -> list[str]:
    options = ["--documents", "notes", "--model", "openai/scripted", "--api-base", url]
    # Two calls that list claims, and no other but those for relations.
    options += ["--stride", "1", "--no-revise"]
    return ["assess", "batch.jsonl", *options, "--out", "o", *more]


class Refusing:
    """A provider that has an outage for questions about some trains, and counts who asks."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.asked: list[str] = []

    def __call__(self, request: dict[str, Any], number: int) -> Reply:
        question = request["messages"][-1]["content"]
        about = question.rpartition("<hypothesis>")[2] if "<hypothesis>" in question else ""
        self.asked.append(question)
        if any(f"Train {number} " in about for number in self.refused):
            return Reply("overloaded", status=503, headers={"Retry-After": "0"})
        return provider(request, number)


@pytest.mark.service
def test_results_are_in_order_and_one_limit_holds(notes: Path) -> None:
    together = threading.Barrier(LIMIT, timeout=60)

    def slow(request: dict[str, Any], number: int) -> Reply:
        # The first calls end when as many are under way as may be; none would end otherwise.
        if number < LIMIT:
            together.wait()
        time.sleep(0.002 * (number % 7))
        return provider(request, number)

    with ScriptedServer(slow) as server:
        result = invoke(*arguments(server.url, "--concurrency", f"{LIMIT}"))
    assert [graph.id for graph in read_many(notes / "o/graphs.jsonl")] == [
        f"r{i:02}" for i in range(N)
    ]
    assert server.most_at_once == LIMIT
    # A row per response, and what all of them took is not mixed up.
    assert len(re.findall(r"^r\d\d +2 ", result.stdout, re.M)) == min(N, 10)
    assert len(pd.read_csv(notes / "o/responses.csv")) == N
    for graph in read_many(notes / "o/graphs.jsonl"):
        taken = graph.metadata["consumption"]
        # Two sentences of one claim each, a call for each; one passage.
        assert {stage: counts["answers"] for stage, counts in taken.items()} == {
            "atomizer": 2,
            "relations": 2,
        }


@pytest.mark.service
def test_responses_that_an_outage_cut_off_are_not_scored_and_asked_again(notes: Path) -> None:
    script = Refusing("3", "7")
    with ScriptedServer(script) as server:
        first = invoke(*arguments(server.url), code=1)
        assert "r03, r07 failed: an outage cut off calls: " in first.stdout
        assert (
            "2 responses without a result; repeat the command to request only the missing answers"
            in first.stdout
        )
        kept = [graph.id for graph in read_many(notes / "o/graphs.jsonl")]
        assert kept == [f"r{i:02}" for i in range(N) if i not in (3, 7)]
        assert "10 responses, 20 atoms" in first.stdout
        script.refused, script.asked = (), []
        second = invoke(*arguments(server.url))
        # The two pairs that were cut off, and nothing else.
        assert len(script.asked) == 2
        text = " ".join(second.stdout.split())
        assert "10 responses were finished by an earlier run; the table `cost` has" in text
    assert len(read_many(notes / "o/graphs.jsonl")) == N
    whole = (notes / "o/graphs.jsonl").read_bytes()
    (notes / "o/graphs.jsonl").unlink()
    (notes / "answers.sqlite").unlink()
    with ScriptedServer(Refusing()) as server:
        invoke(*arguments(server.url))
    assert (notes / "o/graphs.jsonl").read_bytes() == whole


@pytest.mark.service
def test_an_outage_is_accepted_on_request(notes: Path) -> None:
    with ScriptedServer(Refusing("3")) as server:
        result = invoke(*arguments(server.url, "--partial"))
    graphs = read_many(notes / "o/graphs.jsonl")
    assert [len(graph.metadata["relations"]["missing"]) for graph in graphs] == [
        int(i == 3) for i in range(N)
    ]
    assert "1 of 24 relations missing" in result.stdout


@pytest.mark.service
def test_failures_are_asked_again_on_request_alone(notes: Path) -> None:
    def mute(request: dict[str, Any], number: int) -> Reply:
        question = request["messages"][-1]["content"]
        if stage_of(request) == "relations" and "Train 3 " in question:
            return Reply("the server dislikes it", status=400)
        if "Train 5 " in question:
            return Reply("overloaded", status=503, headers={"Retry-After": "0"})
        return provider(request, number)

    with ScriptedServer(mute) as server:
        # The store stays, since one response has no result.
        invoke(*arguments(server.url), code=1)
    script = Refusing("5")
    with ScriptedServer(script) as server:
        again = invoke(*arguments(server.url), code=1)
        assert not any("Train 3 " in question for question in script.asked)
        assert "1 of 22 relations missing" in again.stdout
        retried = invoke(*arguments(server.url, "--retry-failed"), code=1)
        assert any("Train 3 " in question for question in script.asked)
        assert "relations missing" not in retried.stdout
        # Train 3 alone is assessed anew, beside train 5, which has no result.
        assert "10 responses were finished by an earlier run" in retried.stdout
        script.refused = ()
        invoke(*arguments(server.url))
    graphs = read_many(notes / "o/graphs.jsonl")
    assert len(graphs) == N
    assert not any(graph.metadata["relations"]["missing"] for graph in graphs)


def test_threads_yield_as_results_are_ready_and_stop_at_the_first_error() -> None:
    stop, gate = threading.Event(), threading.Event()
    seen: list[int] = []

    def work(item: int) -> int:
        seen.append(item)
        if item == 0:
            gate.wait(60)
        if item == 4:
            raise ValueError("four")
        return 10 * item

    results = []
    with pytest.raises(ValueError, match="four"):  # noqa: PT012
        for position, result in as_ready(work, [0, 1, 2, 3, 4, 5, 6, 7], 2, stop):
            results.append((position, result))
            if position == 3:
                gate.set()
    assert stop.is_set()
    assert {(1, 10), (2, 20), (3, 30)} <= set(results)
    assert results[:3] == [(1, 10), (2, 20), (3, 30)]
    assert seen[:5] == [0, 1, 2, 3, 4]


def test_computation_is_prepared_once_during_the_wait_for_the_first_answer() -> None:
    prepared, asked = [], threading.Event()

    def prepare() -> None:
        prepared.append(asked.is_set())

    def tenfold(item: int) -> int:
        return 10 * item

    compute = OneAtATime(tenfold, prepare)

    def work(item: int) -> int:
        # As if a server took its time: until everything is ready for its answer.
        asked.set()
        while not prepared:
            time.sleep(0.01)
        return compute(item)

    results = dict(as_ready(work, [0, 1, 2], 2, threading.Event(), compute.prepare))
    assert results == {0: 0, 1: 10, 2: 20}
    compute.prepare()
    assert prepared == [True]


def test_one_thread_is_this_one() -> None:
    threads = {
        result
        for _, result in as_ready(lambda _: threading.get_ident(), range(3), 1, threading.Event())
    }
    assert threads == {threading.get_ident()}


def test_a_search_that_nobody_answered_is_an_outage_and_a_lost_page_is_none() -> None:
    from experiments.evaluators.batches.batch import BatchSettings, assess_responses
    from experiments.evaluators.response import AssessmentView
    from factormodels import Atom, FactGraph
    from factormodels.extraction.pipeline import retrieval_stage
    from factormodels.extraction.retrieval.base import Passage, Retrieved
    from inference import get_backend

    class Web:
        name = "web"

        def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
            answers = {
                "page": Retrieved((Passage("t", "", "s", "s"),), ("a page: status 404",)),
                "gone": Retrieved((), ("a page: status 404",)),
                "lost": Retrieved((), ("search: no answer in time",), searched=False),
                "shut": Retrieved((), ("search: status 403",), searched=False, refused=True),
            }
            return [answers[query] for query in queries]

    graphs = [FactGraph(name, (Atom("a1", name),)) for name in ("page", "gone", "lost", "shut")]
    views = [AssessmentView("FR2", "implication", get_backend("exact"))]
    batch = assess_responses(graphs, [retrieval_stage(Web())], views, {}, BatchSettings())
    assert [response.response for response in batch.responses] == ["page", "gone"]
    assert batch.failed == (
        ("lost", "an outage cut off searches: search: no answer in time"),
        # Whoever waits for that to pass waits in vain.
        (
            "shut",
            "a search was refused (search: status 403); check the key, the credit and the "
            "address of the service",
        ),
    )
