"""A real language model behind a real server: its tokens, log-probabilities and nonsense."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from factormodels import read_many
from factormodels.extraction.asking.loop import request_of
from factormodels.extraction.asking.stage import Fault, Question
from factormodels.extraction.asking.table import ATOMIZER, STATED_RELATION
from factormodels.extraction.concurrency import run_until_done
from factormodels.extraction.language_model import Completion, Message, PromptIdentity, Request
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.language_model.log_probabilities import (
    Unusable,
    spelled_tokens,
    token_log_probabilities,
)
from factormodels.extraction.prompts import load_prompt
from factormodels.extraction.sentences import Chunk
from tests.commands import called
from tests.experiments.conftest import invoke
from tests.processes import ROOT
from tests.real_model.__main__ import COMMANDS, faults_of
from tests.real_model.inputs import QUESTION, write_inputs
from tests.real_model.serve import SMOLLM2
from tests.real_model.server import RealModel, is_installed, serving

pytestmark = [pytest.mark.service, pytest.mark.slow]


@pytest.fixture(scope="module")
def smollm2() -> Iterator[RealModel]:
    """SmolLM2 with 135 million parameters, which answers one question at a time."""
    if not is_installed() and not os.environ.get("CI"):
        pytest.skip("there is no .venv-model; `make model` installs it")
    with serving(SMOLLM2, "--context", "2048", "--slots", "1") as model:
        yield model


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with the inputs, as the current one."""
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_assess_reads_log_probabilities_of_a_real_model(smollm2: RealModel, folder: Path) -> None:
    invoke(
        *("assess", "answer.txt", "--query", QUESTION, "--atoms", "sentences"),
        *("--documents", "notes/curie.txt", "--out", "o", *smollm2.options),
    )
    (graph,) = read_many(folder / "o/graphs.jsonl")
    # One passage and three claims. What the model says of them is often wrong, but it says it with
    # log-probabilities that spell a label and list the others: no answer was asked for twice.
    assert len(graph.relations) == 3
    for relation in graph.relations:
        shares = relation.distribution
        assert shares is not None
        assert sum(shares) == pytest.approx(1.0, abs=1e-9)
        # A model this small is certain of nothing.
        assert all(0.001 < shares[kind] < 0.999 for kind in (0, 1, 3))
    findings = json.loads((folder / "o/findings.json").read_text())
    (asked,) = findings["tables"]["cost"]
    assert (asked["calls"], asked["failures"]) == (3, 0)
    # Instructions, examples and passage are read once: more than half of what three calls take.
    assert asked["prefix_tokens"] > asked["prompt_tokens"] / 2
    # A label of SmolLM2 is two to four tokens, and the end of the turn is one that it reports.
    assert 3 * 2 <= asked["completion_tokens"] <= 3 * 16
    assert all(0.0 < claim["p"] < 1.0 for claim in findings["tables"]["claims"])


@pytest.mark.parametrize("command", ["fastfact", "self-knowledge", "coherence", "select"])
def test_a_command_asks_a_real_model_and_counts_its_calls(
    command: str, smollm2: RealModel, folder: Path
) -> None:
    # Without files, figures are not drawn: they are not what the model is asked for.
    options = [*COMMANDS[command], "--json", *smollm2.options]
    if command == "self-knowledge":
        write_shortened_prompts(folder / "prompts")
        options += ["--prompts", "prompts"]
    if command == "select":
        # One bleached claim, with which every claim is compared; the embedded domain has twelve.
        (folder / "bleached.json").write_text('{"people": ["{topic} exists."]}')
        options += ["--templates", "bleached.json"]
    graph = json.loads((folder / "claims.jsonl").read_text())
    # Two claims, for commands that compare them.
    graph["nodes"] = graph["nodes"][: 1 if command == "self-knowledge" else 2]
    (folder / "claims.jsonl").write_text(json.dumps(graph) + "\n")
    (folder / "answer.txt").write_text("Marie Curie was born in Warsaw.")
    ended = called(command, *options)
    (folder / "findings.json").write_text(ended.stdout)
    assert [*faults_of(ended.exit_code, folder)] == [], ended.output


def write_shortened_prompts(folder: Path) -> None:
    """Write the prompts of `self-knowledge` with the first sentence of their instructions.

    The model spends its time on reading, and no other command asks these four. At night they are
    asked as they are, with their examples.
    """
    folder.mkdir()
    for name in ("question_answer_pair", "self_direct", "self_question", "self_question_none"):
        packaged = ROOT / "factormodels" / "extraction" / "prompts" / f"{name}.yaml"
        prompt = yaml.safe_load(packaged.read_text())
        prompt.pop("examples", None)
        prompt["system"] = prompt["system"].partition(".")[0] + "."
        (folder / packaged.name).write_text(yaml.safe_dump(prompt))


@pytest.mark.nightly
def test_every_command_of_the_guide_does_what_it_should() -> None:
    """Run `make real-model`: with the probe of the model, three claims, and embeddings."""
    done = subprocess.run([sys.executable, "-m", "tests.real_model"], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_a_real_model_is_held_to_a_schema_and_its_tokens_spell_the_answer(
    smollm2: RealModel,
) -> None:
    schema = STATED_RELATION.schema
    request = Request(
        (Message("user", "Write a limerick about the sea."),),
        PromptIdentity("relation_verbalized", 1, ""),
        "relations",
        max_tokens=64,
        top_logprobs=5,
        schema=json.dumps(schema),
    )
    model = LitellmModel(LitellmSettings(smollm2.name, smollm2.api_base))
    answer = run_until_done(model.complete(request))
    assert isinstance(answer, Completion), answer
    # Asked for something else entirely, it gives what the schema allows.
    jsonschema.validate(json.loads(answer.text), schema)
    assert "response_format" not in model.lacking
    # Log-probabilities are those of the model before the schema forbids tokens: the token that is
    # left may be unlikely, so that it is not among the listed ones, and has its own probability.
    tokens = spelled_tokens(answer)
    assert not isinstance(tokens, Unusable), tokens
    values = token_log_probabilities(tokens, 0, len(answer.text))
    assert not isinstance(values, Unusable), values
    assert all(math.isfinite(value) and value <= 0.0 for value in values)
    # Prose begins otherwise: the brace was forced on the model.
    assert values[0] < math.log(0.5)


def test_a_real_model_lists_claims_as_the_schema_has_them(smollm2: RealModel) -> None:
    chunk = Chunk(1, ("She was born in Warsaw.",))
    fields = {"question": QUESTION, "response": chunk.text, "sentences": chunk.numbered}
    question = Question(ATOMIZER, fields, about=chunk, parts=len(chunk.sentences))
    model = LitellmModel(LitellmSettings(smollm2.name, smollm2.api_base))
    # So small a model may repeat itself without an end: a short claim is an end.
    short: dict[str, Any] = deepcopy(dict(ATOMIZER.schema or {}))
    claims = short["properties"]["claims"]
    claims["maxItems"] = 1
    claims["items"]["properties"]["claim"] = {"type": "string", "maxLength": 40}
    asked = request_of(model, question)
    # Without the examples, which show the form of an answer: the schema alone gives it here.
    instructions, *_, last = asked.messages
    request = replace(asked, messages=(instructions, last), schema=json.dumps(short))
    answer = run_until_done(model.complete(request))
    assert isinstance(answer, Completion), answer
    jsonschema.validate(json.loads(answer.text), ATOMIZER.schema)
    assert "response_format" not in model.lacking
    # Nothing is repaired: the first answer has the form, whatever it says.
    assert not isinstance(ATOMIZER.read(answer, load_prompt(ATOMIZER.prompt), chunk), Fault)
