"""`factormodels assess --assessor`: prompt-based verdicts beside the graph's posteriors."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.evaluators.response import AssessmentView, assess_graph, judged, measured
from factormodels import read_many
from factormodels.datasets import load
from factormodels.extraction.asking.table import ASSESSORS
from factormodels.extraction.stages.assessors import assess, posteriors
from factormodels.io import write_many
from inference import get_backend
from tests.experiments.conftest import invoke
from tests.experiments.study.test_study_assessors import as_model, provider
from tests.factormodels.extraction.questions import question_of
from tests.factormodels.extraction.server import Reply, ScriptedServer

pytestmark = pytest.mark.service

OPTIONS = ("--relations", "lexical", "--variant", "FR1")
ASSESS = ("assess", "demonstration", *OPTIONS)
ASSESSED = ("--model", "openai/scripted", "--assessor", "factscore", "--assessor", "factverify")


def test_verdicts_stand_beside_the_posteriors(keyed: Path) -> None:
    originals = load("demonstration").graphs[:3]
    write_many(originals, keyed / "three.jsonl")
    command = ("assess", "three.jsonl", *OPTIONS, *ASSESSED, "--out", "o")
    with ScriptedServer(provider) as server:
        result = invoke(*command, "--api-base", server.url, code=1)
    written = read_many(keyed / "o/graphs.jsonl")
    claims, missing = [], 0
    for graph, original in zip(written, originals, strict=True):
        for name in ("factscore", "factverify"):
            verdicts = assess(original, name, as_model(name))
            facts = graph.metadata["assessors"][name]
            assert {a: v["p"] for a, v in facts["verdicts"].items() if v["p"] is not None} == (
                posteriors(verdicts))  # fmt: skip
            assert len(facts["missing"]) == sum(bool(verdict.missing) for verdict in verdicts)
            missing += len(facts["missing"])
            assert facts["prompt"]["name"] == ASSESSORS[name].prompt
        p = graph.metadata["assessors"]["factscore"]["verdicts"]
        claims += [(p[a.id]["p"], a.label, graph.id) for a in graph.atoms if a.id in p]
    assert missing > 0
    assert f"{missing} of 56 verdicts missing" in result.stdout
    summary = measured(*zip(*claims, strict=True))
    (row,) = re.findall(r"^factscore +-- .*$", result.stdout, re.M)
    assert f"{summary['brier']:.3f}" in row.split()
    assert f"{summary['precision']:.3f}" in row.split()
    assert re.search(r"^FR1 +implication +auto ", result.stdout, re.M)


def shy(request: dict[str, Any], number: int) -> Reply:
    """The provider, which as FactVerify says nothing on claims of odd length."""
    odd = len(question_of(request).rpartition("<claim>")[2]) % 2
    verifying = "verdict" in str(request["messages"]).lower() and request["max_tokens"] > 100
    return Reply("I would rather not say.") if odd and verifying else provider(request, number)


def test_every_row_is_over_the_claims_that_all_rows_have_a_verdict_on(keyed: Path) -> None:
    originals = load("demonstration").graphs[:3]
    write_many(originals, keyed / "three.jsonl")
    command = ("assess", "three.jsonl", *OPTIONS, *ASSESSED, "--out", "o")
    with ScriptedServer(shy) as server:
        result = invoke(*command, "--api-base", server.url, code=1)
    graphs = read_many(keyed / "o/graphs.jsonl")
    rows: dict[str, list[tuple[float, bool | None, str]]] = {}
    claims_judged: list[set[str]] = []
    for graph in graphs:
        verdicts_by = {
            name: facts["verdicts"] for name, facts in graph.metadata["assessors"].items()
        }
        judged_atoms = graph.metadata["assessment"]["FR1"]["atoms"]
        for atom in graph.atoms:
            p = {name: verdicts.get(atom.id, {}).get("p") for name, verdicts in verdicts_by.items()}
            claims_judged.append({name for name, value in p.items() if value is None})
            for name, value in {**p, "FR1": judged_atoms[atom.id]["p"]}.items():
                if not claims_judged[-1]:
                    rows.setdefault(name, []).append((value, atom.label, graph.id))
        # The same claims make up the measures of a response, which say how many there are not.
        measures = graph.metadata["assessment"]["FR1"]["measures"]
        kept = [
            judged_atoms[atom.id]["p"]
            for atom, lacking in zip(graph.atoms, claims_judged[-len(graph.atoms) :], strict=True)
            if not lacking
        ]
        assert measures["n_atoms"] == len(kept) == len(graph.atoms) - measures["left_out"]
        assert measures["precision"] == sum(p > 0.5 for p in kept) / len(kept)
        missing = sum(len(facts["missing"]) for facts in graph.metadata["assessors"].values())
        assert measures["missing_verdicts"] == missing
    # Claims on which one of the two alone has no verdict.
    assert {"factverify"} in claims_judged
    left_out = sum(map(bool, claims_judged))
    assert f"{left_out} claims without a verdict in some row are left out" in result.stdout
    for name, claims in rows.items():
        summary = measured(*zip(*claims, strict=True))
        (row,) = re.findall(rf"^{re.escape(name)} +(?:implication|--) .*$", result.stdout, re.M)
        assert f"{summary['brier']:.3f}" in row.split()


def test_claim_without_a_relation_is_not_undecided() -> None:
    graph = replace(
        load("demonstration").graphs[0],
        metadata={"relations": {"missing": [["c1", "a1", "down"], ["c2", "a2", "down"]]}},
    )
    graph = replace(graph, relations=tuple(r for r in graph.relations if r.target != "a1"))
    view = assess_graph(graph, [AssessmentView("FR2", "implication", get_backend("exact"))])["FR2"]
    # Other relations of the second claim were found.
    assert view["unanswered"] == ["a1"]
    assert view["measures"]["missing_atoms"] == 1
    assert view["measures"]["missing_relations"] == 2
    assert view["measures"]["n_atoms"] == len(graph.atoms) - 1
    assessed = replace(graph, metadata={**graph.metadata, "assessment": {"FR2": view}})
    p = judged(assessed).p["FR2"]
    assert [value is None for value in p] == [atom.id == "a1" for atom in graph.atoms]


@pytest.mark.usefixtures("keyed")
def test_one_response_shows_every_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    options = [*ASSESS, *ASSESSED, "--response", "demo-01-marie-curie"]
    with ScriptedServer(provider) as server:
        first = invoke(*options, "--api-base", server.url, code=1)
    assert re.search(r"^claim .* factscore +factverify +label ", first.stdout, re.M)
    assert re.search(r"factscore: \d+ verdicts of openai/scripted, \d+ missing", first.stdout)
    monkeypatch.delenv("OPENAI_API_KEY")
    replayed = invoke(*options, "--replay", code=1)
    table = first.stdout.partition("stage ")[0]
    assert replayed.stdout.startswith(table)


@pytest.mark.usefixtures("folder")
def test_a_dry_run_counts_the_verdicts() -> None:
    result = invoke(*ASSESS, *ASSESSED, "--dry-run")
    n_atoms = sum(len(graph.atoms) for graph in load("demonstration").graphs)
    assert re.search(rf"^factscore +{n_atoms} ", result.stdout, re.M)
    assert re.search(rf"^factverify +{n_atoms} .* {1024 * n_atoms:,} ", result.stdout, re.M)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--assessor", "factscore"], "--assessor needs a language model"),
        (["--assessor", "x", "--model", "openai/y"], "the assessor 'x' is unknown"),
        ([*ASSESSED, "--assessor", "factscore"], "one is given twice"),
    ],
)
def test_input_that_does_not_fit_is_one_sentence(options: list[str], message: str) -> None:
    more = ("--dry-run",) if "--model" in options else ("--replay",)
    assert message in invoke(*ASSESS, *options, *more, code=2).stderr
