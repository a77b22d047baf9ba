"""`factormodels assess --samples`: answers asked for again, cached, counted, and as evidence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from experiments import assess
from factormodels import read_many
from factormodels.claims import SAMPLE_PRIOR
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.questions import question_of
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply

QUESTION = "What crosses the bridge?"
ANSWERS = ["Trains cross the bridge.", "Trains cross it.", "Cars and trains cross the bridge."]


def is_sampling(request: dict[str, Any]) -> bool:
    return bool(request["messages"][-1]["content"].strip() == QUESTION)


def provider(request: dict[str, Any], _: int) -> Reply:
    if is_sampling(request):
        return Reply(ANSWERS[request["seed"]])
    premise, claim = (
        question_of(request).rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0].split()
        for tag in ("premise", "hypothesis")
    )
    kind = "entailment" if set(claim) <= set(premise) else "contradiction"
    return label_reply(kind, 0.9, {"neutral": 0.1})


@pytest.fixture
def batch(keyed: Path) -> Path:
    rows = [
        {"id": "r1", "question": QUESTION, "response": "Trains cross the bridge. Cars cross it."},
        {"id": "r2", "question": "", "response": "Trains cross it."},
    ]
    (keyed / "batch.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return keyed


def arguments(url: str, out: str, *more: str) -> list[str]:
    model = ("--model", "openai/scripted", "--api-base", url, "--atoms", "sentences")
    return ["assess", "batch.jsonl", *model, "--samples", "3", "--out", out, *more]


@pytest.mark.service
def test_samples_are_asked_for_once_and_are_evidence(batch: Path) -> None:
    with ScriptedServer(provider) as server:
        dry = invoke(*arguments(server.url, "d", "--dry-run"))
        assert not server.requests
        result = invoke(*arguments(server.url, "o"))
    # Of the two responses one has a question, which alone is asked: three samples, six relations.
    assert re.search(r"^sampled answers +3 ", dry.stdout, re.M)
    assert re.search(r"^sampled answers +3 +0 +0 ", result.stdout, re.M)
    sampling = [request for request in server.requests if is_sampling(request)]
    assert [len(request["messages"]) for request in sampling] == [1, 1, 1]
    assert {request["seed"] for request in sampling} == {0, 1, 2}
    assert {request["temperature"] for request in sampling} == {1.0}
    assert "samples 3" in result.stdout  # the failures of the response without a question
    first, second = read_many(batch / "o/graphs.jsonl")
    assert [context.text for context in first.contexts] == ANSWERS
    assert first.sample_ids == {"s1", "s2", "s3"}
    assert [context.prior for context in first.contexts] == [SAMPLE_PRIOR] * 3
    p = {a: first.metadata["assessment"]["FR2"]["atoms"][a]["p"] for a in first.atom_ids}
    assert p["a1"] > p["a2"]
    assert second.contexts == ()
    reasons = {reason for _, reason in second.metadata["samples"]["failures"]}
    assert reasons == {"the response has no question to ask again"}
    again = invoke(*arguments("http://127.0.0.1:9/v1", "again", "--replay"))
    assert re.search(r"^sampled answers +0 +3 +0 ", again.stdout, re.M)
    assert (batch / "again/graphs.jsonl").read_bytes() == (batch / "o/graphs.jsonl").read_bytes()


@pytest.mark.service
def test_samples_of_the_input_count_and_a_limit_ends_the_asking(batch: Path) -> None:
    rows = [{"id": "r1", "question": QUESTION, "response": "Trains cross it.",
             "sampled_responses": ANSWERS[:2]}]  # fmt: skip
    (batch / "batch.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with ScriptedServer(provider) as server:
        stopped = invoke(*arguments(server.url, "o", "--max-calls", "1"), code=3)
        assert "max-calls" in stopped.output or "1 call" in stopped.output
        invoke(*arguments(server.url, "o"))
    assert [request["seed"] for request in server.requests if is_sampling(request)] == [2]
    (graph,) = read_many(batch / "o/graphs.jsonl")
    assert [context.text for context in graph.contexts] == ANSWERS


def test_samples_of_the_input_are_evidence_without_a_model() -> None:
    row = {"id": "r", "response": "Basalt sinks.", "sampled_responses": ["Basalt sinks."] * 3}
    p = {}
    for n_samples in (1, 3):
        given = {**row, "sampled_responses": row["sampled_responses"][:n_samples]}
        (graph,) = assess([given], variant=["FR1", "FR2"]).graphs
        assert len(graph.contexts) == n_samples
        p[n_samples] = graph.metadata["assessment"]["FR1"]["atoms"]["a1"]["p"]
    assert p[3] > p[1] > 0.5


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--samples", "3"], "--samples needs a language model"),
        (["--samples", "0"], "--samples 0: give 1 or more"),
    ],
)
@pytest.mark.usefixtures("batch")
def test_what_samples_need(more: list[str], message: str) -> None:
    result = invoke("assess", "batch.jsonl", *more, code=2)
    assert message in " ".join(result.stderr.split())


@pytest.mark.service
def test_without_any_question_nothing_is_asked(batch: Path) -> None:
    (batch / "batch.jsonl").write_text('{"id": "r", "response": "Trains cross it."}\n')
    result = invoke(*arguments("http://127.0.0.1:9/v1", "o"), code=2)
    assert "no response has one" in " ".join(result.stderr.split())
