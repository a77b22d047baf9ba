"""`factormodels assess`: what a run may ask and pay, what it keeps, and any provider's model."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from factormodels import read_many
from factormodels.extraction.asking.table import RELATION, STATED_RELATION
from factormodels.extraction.prompts.replaced import OURS
from tests.experiments.conftest import invoke
from tests.experiments.evaluators.test_assess_model import (
    arguments,
    notes,
    provider,
    stage_of,
)
from tests.factormodels.extraction.provider_servers import anthropic
from tests.factormodels.extraction.questions import question_of
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply
from tests.factormodels.extraction.web_server import web_server

pytestmark = pytest.mark.service

__all__ = ["notes"]

CALLS = 17
"""Calls of the whole run: two responses, four claims in two stages, three pairs, and a fourth that
cannot be read: asked twice for a word, and twice for a confidence."""


def hypothesis_of(request: dict[str, Any]) -> str:
    """Hypothesis that a request asks about; empty where it asks about none."""
    _, tag, hypothesis = question_of(request).rpartition("<hypothesis>")
    return hypothesis if tag else ""


def test_answers_that_cannot_be_read_are_not_replayed_when_the_server_is_mended(
    notes: Path,
) -> None:
    def broken(request: dict[str, Any], number: int) -> Reply:
        if stage_of(request) == "atomizer":
            return Reply("Claims are hard to list.")
        return provider(request, number)

    (notes / "o").mkdir()
    (notes / "o/graphs.jsonl").write_text("what an earlier run wrote")
    with ScriptedServer(broken) as server:
        first = invoke(*arguments(server.url, "o"), code=1)
        # No result is no reason to lose one.
        assert (notes / "o/graphs.jsonl").read_text() == "what an earlier run wrote"
        assert len(server.requests) == 4  # two responses, each asked about twice
        assert "r0, r1 failed: no claims were extracted: the answer cannot be read" in first.stdout
        assert re.search(r"^atomizer +0 +0 +2 ", first.stdout, re.M)
        server.script = provider
        second = invoke(*arguments(server.url, "o"), code=1)  # a relation is missing
    assert re.search(r"^atomizer +2 +0 +0 ", second.stdout, re.M)
    assert [len(graph.atoms) for graph in read_many(notes / "o/graphs.jsonl")] == [2, 2]


def test_a_limit_of_calls_ends_a_run_and_the_next_goes_on(notes: Path) -> None:
    with ScriptedServer(provider) as server:
        stopped = invoke(*arguments(server.url, "o", "--max-calls", "6"), code=3)
        assert len(server.requests) == 6
        # What cannot be read is asked for again; which of two responses is ahead is open.
        again = sum("lost" in hypothesis_of(request) for request in server.requests)
        assert stopped.stderr.rstrip().endswith(
            "factormodels: the limit of 6 calls is reached; answered calls are kept; run the "
            "same command again to continue"
        )
        # What was asked is told even so.
        assert "atomizer" in stopped.stderr
        invoke(*arguments(server.url, "o"), code=1)
        assert len(server.requests) == CALLS + again
        invoke(*arguments(server.url, "calm", "--cache", "other.sqlite"), code=1)
    assert (notes / "o/graphs.jsonl").read_bytes() == (notes / "calm/graphs.jsonl").read_bytes()


@pytest.mark.usefixtures("notes")
def test_prices_of_the_user_are_counted_and_limited() -> None:
    prices = ["--price-in", "100", "--price-out", "1000"]
    with ScriptedServer(provider) as server:
        unknown = invoke(*arguments(server.url, "o", "--max-cost", "1"), code=2)
        assert "--max-cost: the price of 'openai/scripted' is unknown" in unknown.stderr
        # A call has 20 tokens of a hundred dollars a million, and 2 of a thousand: 0.4 cents.
        limited = invoke(*arguments(server.url, "o", *prices, "--max-cost", "0.03"), code=3)
        assert "the limit of 0.03 US dollars is reached, 0.028 are spent" in limited.stderr
        assert len(server.requests) == 7
        # Which of two responses is ahead is nobody's promise: the one with an answer that cannot be
        # read, or the other, which may even be finished. Another output takes none of it over.
        kept = sum("lost" not in hypothesis_of(request) for request in server.requests)
        done = invoke(*arguments(server.url, "again", *prices), code=1)
    # A table that is wider than the terminal is parted, with the names of its rows in every part.
    parts = re.findall(r"^all +(.*)$", done.stdout, re.M)
    numbers = [float(cell) for part in parts for cell in part.split()]
    assert len(numbers) == 9, done.output
    calls, cached, failed, asked, _, cost, cached_asked, _, cached_cost = numbers
    # What the first run kept, and the rest of this one; a pair failed in two ways, and each was
    # paid twice.
    assert (calls, cached, failed) == (CALLS - 4 - kept, kept, 2)
    assert (asked, cached_asked) == (20 * (CALLS - kept), 20 * kept)
    assert (cost, cached_cost) == pytest.approx((0.004 * (CALLS - kept), 0.004 * kept))


def test_a_provider_s_model_on_this_machine_needs_no_key(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with web_server(lambda asked, _: anthropic(asked)) as server:
        model = ("--model", "anthropic/claude-sonnet-4-5", "--api-base", server.url)
        options = ["assess", "batch.jsonl", "--documents", "notes", *model, "--out", "o"]
        result = invoke(*options)
    sentence = "anthropic/claude-sonnet-4-5 takes no log-probabilities or seed: not sent"
    assert result.stderr.count(sentence) == 1
    assert "probabilities of relations: 4 verbalized" in result.stdout
    graph = read_many(notes / "o/graphs.jsonl")[0]
    relations = graph.metadata["relations"]
    assert (relations["method"], relations["origins"]) == ("automatic", {"verbalized": 2})
    prompts = (RELATION.prompt, STATED_RELATION.prompt)
    assert relations["prompts"] == [OURS.identity_of(name) for name in prompts]
    assert graph.metadata["consumption"]["relations"]["not_sent"] == [
        "logprobs",
        "response_format",
        "seed",
    ]
    invoke(*options[:-1], "again", "--replay")
    assert (notes / "again/graphs.jsonl").read_bytes() == (notes / "o/graphs.jsonl").read_bytes()


def test_true_origin_of_probabilities_is_reported(notes: Path) -> None:
    def forgetful(request: dict[str, Any], number: int) -> Reply:
        reply = provider(request, number)
        if stage_of(request) != "relations":
            return reply
        if "confidence" in str(request["messages"]):
            return Reply('{"relation": "entailment", "confidence": 0.8}')
        # Of claims on cars log-probabilities are left out now and then.
        return Reply("contradiction") if "Cars" in question_of(request) else reply

    with ScriptedServer(forgetful) as server:
        result = invoke(*arguments(server.url, "o", "--method", "logprobs"))
    # What cannot be read is asked for in words, too.
    sentence = "- openai/scripted: probabilities of relations: 2 logprobs, 2 verbalized."
    assert sentence in result.stdout.splitlines()
    # Each that fell back has its own reason.
    rows = list(csv.reader((notes / "o" / "origins.csv").read_text("utf-8").splitlines()))
    assert rows[-3:] == [
        ["relations", "logprobs", "2", ""],
        ["relations", "verbalized", "1", "no log-probabilities were given"],
        ["relations", "verbalized", "1", "the answer could not be read"],
    ]


@pytest.mark.usefixtures("notes")
def test_a_dry_run_knows_what_a_model_takes() -> None:
    options = ["assess", "batch.jsonl", "--documents", "notes", "--dry-run"]
    stated = invoke(*options, "--model", "openai/gpt-5", "--price-in", "1", "--price-out", "2")
    by_tokens = invoke(*options, "--model", "openai/gpt-4o-mini")
    # Twenty tokens of a stated relation, three of a word.
    for result, tokens_of_an_answer in ((stated, 20), (by_tokens, 3)):
        row = re.search(r"^relations FR2 +(?:about )?(.*)$", result.stdout, re.M)
        assert row is not None, result.stdout
        calls, _, tokens, cost, *thoughts = (
            float(cell.replace(",", "")) for cell in row[1].split()
        )
        assert tokens == tokens_of_an_answer * calls
        assert cost > 0
        # Whoever reasons is given room for 25,000 tokens of it, here at two dollars a million.
        reasons = [25_000 * calls, 0.05 * calls] if result is stated else []
        assert thoughts == pytest.approx(reasons)
    (total,) = re.findall(r"^all +(.*)$", stated.stdout, re.M)
    stages = "probe|atomizer|reviser|relations FR2"
    rows = re.findall(rf"^(?:{stages}) +(?:about )?(.*)$", stated.stdout, re.M)
    # What is not chosen is not in the sum.
    columns = zip(*(row.replace(",", "").split()[1:] for row in rows), strict=True)
    sums = [sum(map(float, column)) for column in columns]
    totals = [float(cell) for cell in total.replace(",", "").split()]
    assert totals == pytest.approx(sums, abs=2e-4)


def test_a_dry_run_counts_the_windows_of_long_passages(notes: Path) -> None:
    words = " ".join(f"Only trains cross bridge {i}." for i in range(60))
    (notes / "notes" / "long.txt").write_text(words)
    options = ["assess", "batch.jsonl", "--documents", "notes", "--atoms", "sentences"]
    options += ["--model", "openai/gpt-4o-mini", "--window", "750"]
    dry = invoke(*options, "--dry-run")
    with ScriptedServer(lambda *_: label_reply("neutral", 0.97)) as server:
        invoke(*options, "--api-base", server.url, "--out", "o")
        asked = sum(stage_of(request) == "relations" for request in server.requests)
    pairs = sum(
        graph.metadata["relations"]["asked"] for graph in read_many(notes / "o/graphs.jsonl")
    )
    (predicted,) = re.findall(r"^relations FR2 +(\d+) ", dry.stdout, re.M)
    assert pairs < int(predicted) == asked
