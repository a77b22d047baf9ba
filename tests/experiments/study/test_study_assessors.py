"""Assessors and prompted relations in a study: asked once, kept, replayed, never half told."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from experiments.study.rows import RowsFile, read_rows
from factormodels.datasets import load
from factormodels.extraction.asking.table import RELATION
from factormodels.extraction.language_model import Completion, Request
from factormodels.extraction.stages.assessors import assess, posteriors
from tests.commands import Called
from tests.experiments.conftest import KEY, begin, invoke
from tests.experiments.study.test_runner import assert_same_files
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.questions import question_of
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply

pytestmark = [pytest.mark.service, pytest.mark.kill, pytest.mark.slow]


STUDY = """
study: s
datasets: [{name: demonstration, limit: 2}]
variants: [FR1]
backends: [exact]
relation_models: [recorded, {model: prompted, label: asked}]
assessors:
  - factscore
  - {assessor: factverify, label: verify}
language_model: {model: openai/scripted, api_base: URL, concurrency: 8}
measures: [brier, accuracy]
significance: {pairs: [[factscore, exact], [exact, verify]], measures: [accuracy], resamples: 200}
outputs: [csv, latex, markdown]
"""

UNPROBED = STUDY + "probe: false\n"
"""The same without the 120 calls of the probe, which are more than those of the study."""


def word_of(question: str) -> str:
    """Return the answer to a claim: it depends on its letters, so that answers differ."""
    claim = question.rpartition("<claim>")[2]
    return ("true", "false", "true", "")[len(claim) % 4]


def provider(request: dict[str, Any], _: int) -> Reply:
    question = question_of(request)
    if "<premise>" in question:
        kind = "entailment" if len(question) % 3 else "contradiction"
        other = "contradiction" if kind == "entailment" else "entailment"
        return label_reply(kind, 0.8, {"neutral": 0.12, other: 0.08})
    word = word_of(question)
    if "verdict" in str(request["messages"]).lower() and request["max_tokens"] > 100:
        return Reply(f"I read it. Verdict: {'supported' if word == 'true' else 'undecided'}")
    return label_reply(word, 0.9) if word else Reply("I would rather not say.")


def as_model(name: str) -> AnsweringModel:
    """The scripted provider, called as a function."""

    def answer(request: Request) -> Completion:
        messages = [
            {"role": message.role, "content": message.content} for message in request.messages
        ]
        raw = {"messages": messages, "max_tokens": request.max_tokens}
        return Completion(str(provider(raw, 0).text))

    return AnsweringModel(answer, name)


def study(folder: Path, url: str, text: str = STUDY) -> Path:
    path = folder / "study.yaml"
    path.write_text(text.replace("URL", url))
    return path


class Asked(NamedTuple):
    """The outputs of two runs of `STUDY`: in `without`, without the probe; in `out`, with it.

    The second has figures in `drawn`.
    """

    folder: Path
    url: str
    planned: Called
    unprobed: Called
    probed: Called
    n_requests: tuple[int, int, int]
    """After the run without the probe, after the one with it, and after that was gone on with."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Runs of `STUDY` with one cache; not to be changed."""
    folder = tmp_path_factory.mktemp("asked")
    figures = "outputs=[csv, latex, markdown, reliability]"
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(provider) as server:
        patch.chdir(folder)
        patch.setenv("OPENAI_API_KEY", KEY)
        path = study(folder, server.url)
        planned = invoke("run", path, "--out", "out", "--dry-run")
        unprobed = invoke("run", path, "--out", "without", "probe=false", "--workers", "1")
        n_unprobed = len(server.requests)
        probed = invoke("run", path, "--out", "out", "--workers", "1")
        n_probed = len(server.requests)
        shutil.copytree(folder / "out", folder / "drawn")
        invoke("run", path, "--out", "drawn", "--resume", figures)
        counts = (n_unprobed, n_probed, len(server.requests))
        return Asked(folder, server.url, planned, unprobed, probed, counts)


def test_verdicts_are_those_of_the_assessors_themselves(asked: Asked) -> None:
    without = asked.folder / "without"
    graphs = load("demonstration").graphs[:2]
    rows = read_rows(without / "rows.parquet")
    missing = 0
    for name, label in (("factscore", "factscore"), ("factverify", "verify")):
        of_assessor = rows[rows["backend_label"] == label]
        assert set(of_assessor["backend"]) == {name}
        for column, value in (("variant", "none"), ("relation_model", "none"), ("encoding", "none"),
                              ("prior", "none"), ("strength", 1.0), ("seed", 0),
                              ("status", "judged"), ("log_z_kind", "none")):  # fmt: skip
            assert set(of_assessor[column]) == {value}
        assert of_assessor["seconds"].isna().all()
        for graph in graphs:
            expected = posteriors(assess(graph, name, as_model(name)))
            of_response = of_assessor[of_assessor["response"] == graph.id]
            assert list(of_response["atom"]) == list(graph.atom_ids)
            kept = of_response[of_response["p"].notna()]
            assert dict(zip(kept["atom"], kept["p"], strict=True)) == expected
            missing += len(graph.atoms) - len(expected)
    assert missing > 0
    assert 0 < rows["p"].isna().sum() == missing
    summary = (without / "table.md").read_text()
    assert "| -- | -- | -- | factscore |" in summary
    assert "missing |" in summary.splitlines()[6]
    assert f"factscore: {missing} of " in asked.unprobed.stdout
    manifest = json.loads((without / "manifest.json").read_text())
    facts = manifest["models"]["assessors"]["factscore"]
    assert (facts["language_model"], facts["missing"], facts["failed"]) == (
        "openai/scripted", missing, 0)  # fmt: skip
    assert facts["answers"] == facts["asked"] == sum(len(graph.atoms) for graph in graphs)
    # What could not be read was asked for twice.
    assert facts["prompt_tokens"] == 20 * (facts["answers"] + missing)
    assert [prompt["name"] for prompt in facts["prompts"]] == ["assess_factscore"]
    prompts = manifest["models"]["relation_models"]["asked"]["prompts"]
    assert [prompt["name"] for prompt in prompts] == [
        RELATION.prompt,
        "relation_verbalized",
    ]
    written = [path.read_bytes() for path in asked.folder.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in content for content in written)
    assert asked.url not in (without / "manifest.json").read_text()


def test_each_language_model_is_probed_once_before_its_answers(asked: Asked) -> None:
    n_unprobed, n_probed, n_resumed = asked.n_requests
    assert n_resumed == n_probed
    # 42 for the relations and 39 for each assessor, and what could not be read once more.
    assert "120 calls of the probe first" in asked.planned.stdout
    assert n_probed - n_unprobed >= 120
    manifest = models_of(asked.folder / "out")
    for kind, title, about in (
        ("relation_models", "asked", "relations"),
        ("assessors", "factscore", "verdicts of factscore"),
        ("assessors", "verify", "verdicts of factverify"),
    ):
        probe = manifest[kind][title]["probe"]
        # Answers that depend on the length of a claim are those of chance.
        assert probe["evidence"] is False
        assert 0 <= probe["correct"] < probe["asked"] <= 36
        remark = f"{title}: Probe: openai/scripted finds {probe['correct']} of {probe['asked']}"
        assert f"{remark} {about}" in " ".join(asked.probed.stdout.split())
    assert "Probe:" not in asked.unprobed.stdout
    # The probe changes no answer.
    p, other = (read_rows(asked.folder / name / "rows.parquet")["p"] for name in ("out", "without"))
    pd.testing.assert_series_equal(p, other)


def models_of(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The models in the manifest of a run."""
    models: dict[str, dict[str, dict[str, Any]]] = json.loads(
        (folder / "manifest.json").read_text()
    )["models"]
    return models


def test_assessors_stand_in_tests_and_figures(asked: Asked) -> None:
    out = asked.folder / "drawn"
    tests = (out / "significance.csv").read_text().splitlines()[1:]
    # One cell of each assessor, against both relation models' in either order.
    assert [line.split(",")[1:4] for line in tests] == [
        ["factscore", "exact", "FR1 implication data"],
        ["factscore", "exact", "FR1 asked implication data"],
        ["exact", "verify", "FR1 implication data"],
        ["exact", "verify", "FR1 asked implication data"],
    ]
    curves = (out / "reliability.csv").read_text()
    assert "verify" in curves
    cells = RowsFile(out / "rows.parquet").cells()
    assert [cell.key[6] for cell in cells] == ["exact", "exact", "factscore", "verify"]
    assert "4 cells of 4 unchanged" in invoke("diff", out, out).stdout


def test_a_replay_needs_neither_network_nor_key(
    asked: Asked, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    # The server is gone: what is no failure comes from the cache.
    shutil.copytree(asked.folder, folder, dirs_exist_ok=True)
    path = folder / "study.yaml"
    replay = ["language_model.replay=true", "--workers", "1"]
    invoke("run", path, "--out", "again", *replay)
    assert_same_files(folder / "out", folder / "again")
    assert models_of(folder / "out") == models_of(folder / "again")
    # Nor does it matter to what is said of an answer whether it came from the server.
    from_server = models_of(folder / "without")
    for kind, models in models_of(folder / "again").items():
        for title, facts in models.items():
            assert facts | {"probe": None} == from_server[kind][title] | {"probe": None}
    more = invoke(
        "run", path, "datasets=[{name: demonstration, limit: 3}]", "--out", "x", *replay, code=2
    )
    assert "the replay has no answer of 'openai/scripted'" in more.stderr
    invoke("run", path, "--out", "without", "--resume", *replay)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("", "needs OPENAI_API_KEY in the environment"),
        ("language_model.replay=true", "there is no such cache"),
        ("assessors=[] significance={}", "needs OPENAI_API_KEY in the environment"),
    ],
)
def test_missing_values_are_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str, message: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    # One call at a time: of calls that are canceled litellm leaves coroutines behind.
    # The provider's own server, to which nothing is sent without a key.
    path = study(folder, "", STUDY.replace("api_base: URL, concurrency: 8", "concurrency: 1"))
    result = invoke("run", path, *change.split(), "--out", "out", code=2)
    assert message in result.stderr.splitlines()[-1]
    assert not (folder / "out").exists()


def run_apart(path: Path, *options: str) -> subprocess.Popen[str]:
    """Begin a run in a process of its own."""
    return begin(path.parent, "run", str(path), "--workers", "1", *options, stdout=subprocess.PIPE)


# The smaller versions: a limit ends the same study below, the small hostile day kills an assessment
# that keeps its answers the same way, and test_killed_run.py kills a run.
@pytest.mark.nightly
def test_after_a_kill_nothing_is_asked_twice(asked: Asked, keyed: Path) -> None:
    text = UNPROBED.replace("concurrency: 8", "concurrency: 1")
    process: list[subprocess.Popen[str]] = []
    # Past what is asked of the relations.
    at = 60

    def killing(request: dict[str, Any], number: int) -> Reply:
        if number == at:
            os.kill(process[0].pid, signal.SIGKILL)
        return provider(request, number)

    with ScriptedServer(killing) as server:
        path = study(keyed, server.url, text)
        process.append(run_apart(path, "--out", "killed"))
        process[0].communicate(timeout=120)
        assert process[0].returncode == -signal.SIGKILL
        assert len(server.requests) == at + 1
        refused = invoke("run", path, "--out", "killed", code=2)
        assert "answers about its texts of this study; continue with --resume" in refused.stderr
        invoke("run", path, "--out", "killed", "--resume", "--workers", "1")
    questions = [json.dumps(request, sort_keys=True) for request in server.requests]
    # The one that was under way when the process died was never answered.
    assert Counter(questions).most_common(2)[0] == (questions[at], 2)
    assert len(questions) == len(set(questions)) + 1
    assert_same_files(asked.folder / "without", keyed / "killed")


def test_a_response_without_any_answer_fails_and_is_tried_again(asked: Asked, keyed: Path) -> None:
    graphs = load("demonstration").graphs[:2]
    first = {atom.text for atom in graphs[0].atoms}

    def refusing(request: dict[str, Any], number: int) -> Reply:
        if any(text in question_of(request) for text in first):
            return Reply("the server dislikes it", status=400)
        return provider(request, number)

    with ScriptedServer(refusing) as server:
        path = study(keyed, server.url, UNPROBED)
        result = invoke("run", path, "--out", "out", "outputs=[]", code=1)
    rows = read_rows(keyed / "out" / "rows.parquet")
    failed = rows[rows["status"] == "failed"]
    assert set(failed["response"]) == {graphs[0].id}
    assert set(failed["backend_label"] + " " + failed["relation_model"]) == {
        "exact asked", "factscore none", "verify none"}  # fmt: skip
    assert all("none of" in text and "dislikes it" in text for text in failed["error"])
    assert f"{KEY}" not in result.output
    with ScriptedServer(provider) as server:
        path = study(keyed, server.url, UNPROBED)
        invoke("run", path, "--out", "out", "--resume", "outputs=[]", code=1)
        assert server.requests == [], "what failed is a result, until it is tried again"
        invoke("run", path, "--out", "out", "--retry-failed")
        questions = [question_of(request) for request in server.requests]
        assert questions
        assert all(any(text in question for text in first) for question in questions)
    rows = read_rows(keyed / "out" / "rows.parquet")
    assert not (rows["status"] == "failed").any()
    assert_same_files(asked.folder / "without", keyed / "out")


def test_a_limit_ends_a_study_that_is_gone_on_with(asked: Asked, keyed: Path) -> None:
    with ScriptedServer(provider) as server:
        path = study(keyed, server.url)
        # Within the probe, and past it.
        for limit, more in ((20, ()), (130, ("--resume",))):
            before, calls = len(server.requests), f"language_model.max_calls={limit}"
            command = ("run", path, "--out", "out", "--workers", "1", *more)
            stopped = invoke(*command, calls, code=3)
            assert len(server.requests) - before == limit
            assert f"factormodels: the limit of {limit} calls is reached" in stopped.stderr
        refused = invoke("run", path, "--out", "out", code=2)
        assert "answers about its texts of this study; continue with --resume" in refused.stderr
        # The limit is no part of what the study asks: it may be another one, or none.
        invoke("run", path, "--out", "out", "--resume", "--workers", "1")
        questions = Counter(json.dumps(request, sort_keys=True) for request in server.requests)
    # What could not be read is not kept, and is the only thing that is asked for again.
    again = [json.loads(question) for question, count in questions.items() if count > 1]
    assert all(provider(request, 0).text == "I would rather not say." for request in again)
    assert_same_files(asked.folder / "out", keyed / "out")
    manifest = json.loads((keyed / "out" / "manifest.json").read_text())
    facts = manifest["models"]["relation_models"]["asked"]
    assert facts["not_sent"] == []
    assert facts["origins"] == {"logprobs": facts["asked"] - facts["missing"]}


def test_an_assessor_without_any_verdict_is_a_cell_without_a_number_and_with_a_reason(
    keyed: Path,
) -> None:
    def silent(request: dict[str, Any], number: int) -> Reply:
        if "verdict" in str(request["messages"]).lower() or "<premise>" in question_of(request):
            return provider(request, number)
        return Reply("I would rather not say.")

    text = UNPROBED.replace("limit: 2", "limit: 1")
    with ScriptedServer(silent) as server:
        path = study(keyed, server.url, text)
        result = invoke("run", path, "--out", "out", "--workers", "1", code=1)
    # The table has its row, and the reason stands below.
    (row,) = re.findall(r"^.* factscore +(--.*)$", result.stdout, re.M)
    assert row.split()[:2] == ["--", "--"]
    assert "factscore on demonstration: 1 unit failed, the first at " in result.stdout
    assert "none of 9 claims has a verdict: the answer cannot be read" in result.stdout
    tests = pd.read_csv(keyed / "out" / "significance.csv")
    of_silent = tests[tests["first"] == "factscore"]
    assert of_silent["n_claims"].tolist() == [0, 0]
    assert of_silent["difference"].isna().all()
    assert set(of_silent["reason"]) == {"no claim with a label was judged by both"}
    assert (tests[tests["second"] == "verify"]["n_claims"] > 0).all()
