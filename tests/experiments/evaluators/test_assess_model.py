"""`factormodels assess` with a language model: the whole pipeline through a server on loopback."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from factormodels import RelationKind, read_many
from tests.experiments.conftest import KEY, invoke, write_batch
from tests.factormodels.extraction.questions import claim_of, question_of, sentences_of
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply
from tests.processes import run_python

pytestmark = pytest.mark.service

STAGES = {
    "sentences": "atomizer",
    "response": "reviser",
    "topic": "queries",
    "premise": "relations",
}


def stage_of(request: dict[str, Any]) -> str:
    question = question_of(request)
    return next(stage for tag, stage in STAGES.items() if f"<{tag}>" in question)


def provider(request: dict[str, Any], _: int) -> Reply:
    question = question_of(request)
    stage = stage_of(request)
    if stage == "atomizer":
        claims = [{"sentence": n, "claim": f"it: {text}"} for n, text in sentences_of(question)]
        return Reply(f"```json\n{json.dumps(claims)}\n```")
    if stage == "reviser":
        return Reply(json.dumps({"claim": claim_of(question).replace("it: ", "")}))
    if stage == "queries":
        return Reply('{"query": "bridge trains"}')
    if "lost" in question.rpartition("<hypothesis>")[2]:
        return Reply("I would rather not say.")
    kind = "contradiction" if "Cars" in question.rpartition("<hypothesis>")[2] else "entailment"
    other = "entailment" if kind == "contradiction" else "contradiction"
    return label_reply(kind, 0.9, {other: 0.06, "neutral": 0.04})


RESPONSES = ["Trains cross the bridge. Cars cross it.", "The key was lost. Trains cross it."]


@pytest.fixture
def notes(keyed: Path) -> Path:
    """A batch, one document, and a key in the environment."""
    write_batch(keyed, RESPONSES, {"a.txt": "Only trains cross the bridge."})
    return keyed


def arguments(url: str, out: str, *more: str) -> list[str]:
    options = ("--documents", "notes", "--revise", "--queries")
    model = ("--model", "openai/scripted", "--api-base", url)
    return ["assess", "batch.jsonl", *options, *model, "--out", out, *more]


def test_every_stage_asks_and_says_what_it_did(notes: Path) -> None:
    with ScriptedServer(provider) as server:
        result = invoke(*arguments(server.url, "o"), code=1)
    asked = Counter(map(stage_of, server.requests))
    assert asked == {"atomizer": 2, "reviser": 4, "queries": 4, "relations": 7}
    # The one that could not be read was asked for twice in each of two ways, and both failed.
    assert re.search(r"^relations +3 +0 +2 ", result.stdout, re.M)
    assert "1 of 4 relations missing" in result.stdout
    first, second = read_many(notes / "o/graphs.jsonl")
    assert [atom.text for atom in first.atoms] == ["Trains cross the bridge.", "Cars cross it."]
    assert [(r.kind, r.source, r.target) for r in first.relations] == [
        (RelationKind.ENTAILMENT, "c1", "a1"),
        (RelationKind.CONTRADICTION, "c1", "a2"),
    ]
    # The probability of a label among the labels, from its first token: they sum to one here.
    assert [r.probability for r in first.relations] == pytest.approx([0.9, 0.9], abs=1e-9)
    view = first.metadata["assessment"]["FR2"]["atoms"]
    assert view["a1"]["p"] > 0.5 > view["a2"]["p"]
    assert first.metadata["consumption"]["relations"]["answers"] == 2
    ((source, target, reason),) = second.metadata["relations"]["missing"]
    assert (source, target) == ("c1", "a1")
    assert "rather not" in reason
    assert second.metadata["assessment"]["FR2"]["atoms"]["a1"]["p"] == 0.5
    written = b"".join(path.read_bytes() for path in notes.rglob("*") if path.is_file())
    assert KEY.encode() not in written
    assert KEY not in result.output


def test_a_run_is_replayed_without_a_server_or_a_key(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(provider) as server:
        invoke(*arguments(server.url, "o"), code=1)
    monkeypatch.delenv("OPENAI_API_KEY")
    again = invoke(*arguments("http://127.0.0.1:9/v1", "again", "--replay"), code=1)
    assert re.search(r"^relations +0 +3 +2 ", again.stdout, re.M)
    assert (notes / "again/graphs.jsonl").read_bytes() == (notes / "o/graphs.jsonl").read_bytes()
    with (notes / "batch.jsonl").open("a") as file:
        file.write('\n{"id": "r2", "response": "Nobody asked this."}')
    missing = invoke(*arguments("http://127.0.0.1:9/v1", "third", "--replay"), code=2)
    assert "'atomizer'" in missing.stderr


def test_a_missing_key_is_reported_before_any_library_is_loaded(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    given = ["factormodels", "assess", "batch.jsonl", "--documents", ".", "--model", "openai/x"]
    code = (
        "import sys\nfrom experiments.cli.main import main\n"
        f"sys.argv = {given!r}\n"
        "try:\n    main()\nexcept SystemExit as end:\n"
        "    print(end.code, 'litellm' in sys.modules)"
    )
    output, errors = run_python(code, folder=notes)
    assert "the model 'openai/x' needs OPENAI_API_KEY in the environment" in errors
    assert output.split() == ["2", "False"]
    assert not list(notes.glob("*.sqlite"))


def test_a_response_that_no_model_takes_apart_fails_alone(notes: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        if "key was lost" in request["messages"][-1]["content"]:
            return Reply("the server dislikes it", status=400)
        return provider(request, number)

    with ScriptedServer(script) as server:
        result = invoke(*arguments(server.url, "o", "--stride", "all"), code=1)
    assert "r1 failed: no claims were extracted" in result.stdout
    assert [graph.id for graph in read_many(notes / "o/graphs.jsonl")] == ["r0"]
    with ScriptedServer(provider) as server:
        # Every response has a result, and the one pair that cannot be read is missing still.
        result = invoke(*arguments(server.url, "o", "--stride", "all"), code=1)
    assert "failed:" not in result.stdout
    assert [graph.id for graph in read_many(notes / "o/graphs.jsonl")] == ["r0", "r1"]
