"""`factormodels assess --assessor`: prompt-based verdicts beside the graph's posteriors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from calibration.scores.summary import summarise
from factormodels import read_many
from factormodels.datasets import load
from factormodels.extraction.assessors import ASSESSORS, assess, posteriors
from factormodels.io import write_many
from tests.experiments.conftest import Invoke
from tests.experiments.run.test_study_assessors import as_model, keyed, provider
from tests.factormodels.extraction.server import ScriptedServer

pytestmark = pytest.mark.service

__all__ = ["keyed"]

OPTIONS = ("--relations", "lexical", "--variant", "FR1")
ASSESS = ("assess", "demonstration", *OPTIONS)
ASSESSED = ("--model", "openai/scripted", "--assessor", "factscore", "--assessor", "factverify")


def test_verdicts_stand_beside_the_posteriors(keyed: Path, invoke: Invoke) -> None:
    originals = load("demonstration").graphs[:3]
    write_many(originals, keyed / "three.jsonl")
    command = ("assess", "three.jsonl", *OPTIONS, *ASSESSED, "--out", "o.jsonl")
    with ScriptedServer(provider) as server:
        result = invoke(*command, "--api-base", server.url)
    assert result.exit_code == 0, result.output
    written = read_many(keyed / "o.jsonl")
    judged, missing = [], 0
    for graph, original in zip(written, originals, strict=True):
        for name in ("factscore", "factverify"):
            verdicts = assess(original, name, as_model(name))
            facts = graph.metadata["assessors"][name]
            assert {a: v["p"] for a, v in facts["verdicts"].items() if v["p"] is not None} == (
                posteriors(verdicts))  # fmt: skip
            assert len(facts["missing"]) == sum(bool(one.missing) for one in verdicts)
            missing += len(facts["missing"])
            assert facts["prompt"]["name"] == ASSESSORS[name].prompt
        p = graph.metadata["assessors"]["factscore"]["verdicts"]
        judged += [(p[a.id]["p"], a.label, graph.id) for a in graph.atoms if a.id in p]
    assert missing > 0
    assert f"{missing} verdicts missing" in result.stderr
    summary = summarise(*zip(*judged, strict=True))
    (row,) = re.findall(r"^--.*\bfactscore\b.*$", result.stdout, re.M)
    assert f"{summary.brier:.3f}" in row.split()
    assert f"{summary.precision:.3f}" in row.split()
    assert re.search(r"^FR1 +implication +exact ", result.stdout, re.M)


@pytest.mark.usefixtures("keyed")
def test_one_response_shows_every_verdict(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    options = [*ASSESS, *ASSESSED, "--response", "demo-01-marie-curie"]
    with ScriptedServer(provider) as server:
        first = invoke(*options, "--api-base", server.url)
    assert first.exit_code == 0, first.output
    assert "demo-01-marie-curie: assessors" in first.stdout
    assert re.search(r"factscore: \d+ verdicts of openai/scripted, \d+ missing", first.stdout)
    monkeypatch.delenv("OPENAI_API_KEY")
    replayed = invoke(*options, "--replay")
    assert replayed.exit_code == 0, replayed.output
    table = first.stdout.partition("stage ")[0]
    assert replayed.stdout.startswith(table)


@pytest.mark.usefixtures("folder")
def test_a_dry_run_counts_the_verdicts(invoke: Invoke) -> None:
    result = invoke(*ASSESS, *ASSESSED, "--dry-run")
    assert result.exit_code == 0, result.output
    n_atoms = sum(len(graph.atoms) for graph in load("demonstration").graphs)
    assert re.search(rf"^factscore +{n_atoms} ", result.stdout, re.M)
    assert re.search(rf"^factverify +{n_atoms} .* {1024 * n_atoms:,} ", result.stdout, re.M)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--assessor", "factscore"], "--assessor needs a language model"),
        (["--assessor", "x", "--model", "openai/y"], "the assessor 'x' is unknown"),
        ([*ASSESSED, "--assessor", "factscore"], "one is given twice"),
    ],
)
def test_what_does_not_fit_is_one_sentence(invoke: Invoke, options: list[str], said: str) -> None:
    result = invoke(*ASSESS, *options, "--dry-run" if "--model" in options else "--replay")
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
