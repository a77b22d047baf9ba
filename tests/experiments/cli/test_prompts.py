"""`factormodels list prompts`, and a user's prompts in commands and studies that ask a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factormodels import read_many
from factormodels.extraction.prompts import load_prompt, prompt_names, prompt_text
from factormodels.extraction.prompts.replaced import OURS, read_prompts
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply

MINE = "question: 'In my words: {{passages}} / {{claim}}'"

STUDY = """
study: s
datasets: [{name: demonstration, limit: 1}]
variants: [FR1]
assessors: [factscore]
language_model: {model: openai/scripted, api_base: URL}
prompts: mine
measures: [brier]
outputs: []
"""


@pytest.fixture
def prepared(keyed: Path) -> Path:
    """A folder with one prompt of its own, a response, documents and a key."""
    (keyed / "mine").mkdir()
    (keyed / "mine" / "assess_factscore.yaml").write_text(MINE)
    (keyed / "answer.txt").write_text("The bridge opened in 1890. It carries cars.")
    (keyed / "notes.txt").write_text("The bridge opened on 4 March 1890.")
    return keyed


def provider(_: dict[str, Any], __: int) -> Reply:
    return label_reply("true", 0.9, {"false": 0.1})


def asked(server: ScriptedServer) -> list[str]:
    return [request["messages"][-1]["content"] for request in server.requests]


def test_the_prompts_are_listed_with_their_slots_and_hashes(prepared: Path) -> None:
    result = invoke("list", "prompts")
    for name in prompt_names():
        (line,) = [line for line in result.stdout.splitlines() if line.startswith(f"{name} ")]
        prompt = load_prompt(name)
        assert prompt.identity.digest[:12] in line
        assert all(slot in line for slot in prompt.slots)
    assert prompt_text("relation") in invoke("list", "prompts", "relation").stdout
    replaced = invoke("list", "prompts", "--prompts", "mine")
    assert "assess_factscore (yours)" in replaced.stdout
    assert read_prompts(prepared / "mine").digests()["assess_factscore"][:12] in replaced.stdout


def test_a_copy_is_a_start_and_overwrites_nothing(folder: Path) -> None:
    ours = ("list", "prompts", "--out", "ours")
    invoke(*ours)
    assert {path.stem for path in (folder / "ours").glob("*.yaml")} == set(prompt_names())
    assert read_prompts(folder / "ours").digests() == OURS.digests()
    invoke(*ours)
    (folder / "ours" / "relation.yaml").write_text(MINE)
    assert "this file exists and would be overwritten" in invoke(*ours, code=2).stderr


@pytest.mark.service
def test_assess_asks_with_a_users_prompts(prepared: Path) -> None:
    command = (
        *("assess", "answer.txt", "--documents", "notes.txt", "--atoms", "sentences"),
        *("--relations", "lexical", "--model", "openai/scripted", "--assessor", "factscore"),
    )
    with ScriptedServer(provider) as server:
        options = ("--api-base", server.url)
        invoke(*command, *options)
        ours = len(server.requests)
        invoke(*command, *options, "--prompts", "mine", "--out", "o")
        # Other words are another question to the cache.
        assert len(server.requests) == 2 * ours == 4
        assert all(text.startswith("In my words: ") for text in asked(server)[ours:])
    (graph,) = read_many(prepared / "o/graphs.jsonl")
    digest = read_prompts(prepared / "mine").digests()["assess_factscore"]
    assert graph.metadata["assessors"]["factscore"]["prompt"]["digest"] == digest


@pytest.mark.service
def test_a_batch_that_was_begun_with_other_prompts_is_not_gone_on_with(prepared: Path) -> None:
    command = (
        *("assess", "answer.txt", "--documents", "notes.txt", "--prompts", "mine"),
        *("--model", "openai/scripted", "--out", "o"),
    )
    with ScriptedServer(lambda *_: Reply("no", status=400)) as server:
        invoke(*command, "--api-base", server.url, code=1)
        (prepared / "mine" / "assess_factscore.yaml").write_text(MINE.replace("my", "other"))
        result = invoke(*command, "--api-base", server.url, code=2)
    assert "the batch was started with other settings" in result.stderr


@pytest.mark.service
def test_a_study_asks_with_a_users_prompts_and_says_so(prepared: Path) -> None:
    with ScriptedServer(provider) as server:
        (prepared / "study.yaml").write_text(STUDY.replace("URL", server.url))
        invoke("run", "study.yaml", "--out", "out", "--workers", "1")
        assert all(text.startswith("In my words: ") for text in asked(server))
    manifest = json.loads((prepared / "out" / "manifest.json").read_text())
    (facts,) = manifest["models"]["assessors"]["factscore"]["prompts"]
    assert facts["digest"] == read_prompts(prepared / "mine").digests()["assess_factscore"]
    assert manifest["config"]["prompts"] == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question: '{{claim}}'", "assess_factscore.yaml: the slot 'passages' is missing; write"),
        (
            "question: '{{claim}} {{passages}} {{x}}'",
            "the slot 'x' is unknown; use one of passages",
        ),
    ],
)
def test_a_wrong_slot_is_one_sentence(prepared: Path, text: str, message: str) -> None:
    (prepared / "mine" / "assess_factscore.yaml").write_text(text)
    (prepared / "study.yaml").write_text(STUDY.replace("URL", "http://127.0.0.1:9/v1"))
    for command in (
        ("assess", "answer.txt", "--documents", "notes.txt", "--prompts", "mine"),
        ("run", "study.yaml", "--out", "out"),
        ("list", "prompts", "--prompts", "mine"),
    ):
        assert message in invoke(*command, code=2).stderr
    assert (
        "study.yaml: prompts: mine/" in invoke("run", "study.yaml", "--out", "out", code=2).stderr
    )
