"""`score --with` names the conventions that explain what two tools make of the same relations."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import score
from experiments.columns.assessed_metadata import METADATA_KEY
from experiments.evaluators.response import AssessmentView, assess_graph
from factormodels.conventions import PRESETS, Conventions
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import write_fact_graphs
from inference import get_backend
from tests.factormodels.test_conventions import drawn, expected_of_release

QUICK: dict[str, Any] = {"scores": "brier", "resamples": 10, "n_bootstrap": 10}


def labeled(seed: int) -> FactGraph:
    graph = drawn(seed)
    return replace(
        graph,
        id=f"r{seed}",
        query=f"Question {seed}?",
        atoms=tuple(
            replace(atom, text=f"Claim {number} of {seed}.", label=number != 1)
            for number, atom in enumerate(graph.atoms)
        ),
        contexts=tuple(replace(each, text=f"Passage {each.id}.") for each in graph.contexts),
    )


def assessed(graph: FactGraph, conventions: Conventions) -> FactGraph:
    view = AssessmentView("FR2", conventions.encoding, get_backend("exact"), conventions.graph)
    return replace(graph, metadata={METADATA_KEY: assess_graph(graph, [view])})


def release_output(graph: FactGraph, *, with_priors: bool) -> dict[str, Any]:
    """An output of the release, whose posteriors are those of an enumeration by its text."""
    p = expected_of_release(graph, "FR2", with_priors=with_priors)
    return {
        "input": graph.query,
        "output": graph.id,
        "atoms": [
            {"id": atom.id, "text": atom.text, "original": atom.text, "contexts": []}
            for atom in graph.atoms
        ],
        "contexts": [],
        "results": {
            "factuality_score": 0.5,
            "marginals": [
                {"variable": atom, "probabilities": [round(1 - p[atom], 6), round(p[atom], 6)]}
                for atom in graph.atom_ids
            ],
        },
    }


@pytest.mark.parametrize("with_priors", [True, False])
def test_the_releases_output_is_explained_by_its_conventions(
    tmp_path: Path, with_priors: bool
) -> None:
    graphs = [labeled(seed) for seed in range(4)]
    ours = [assessed(graph, Conventions()) for graph in graphs]
    write_fact_graphs(ours, tmp_path / "graphs.jsonl")
    outputs = [release_output(graph, with_priors=with_priors) for graph in graphs]
    output = tmp_path / "factreasoner_output.jsonl"
    output.write_text("\n".join(map(json.dumps, outputs)) + "\n", encoding="utf-8")
    findings = score(tmp_path / "graphs.jsonl", beside=[output], language="en", **QUICK)
    rows = findings["explained"].to_dict("records")
    assert len(rows) == 12
    assert "something else" not in {row["explained_by"] for row in rows}
    names = set(findings["conventions"]["convention"])
    assert names == {"prior of passages", "relations below 1/2", *(["encoding"] * with_priors)}
    assert any(each.startswith("factreasoner against FR2: the ") for each in findings.sentences)
    # One number changed is put down to no convention.
    outputs[0]["results"]["marginals"][0]["probabilities"] = [0.99, 0.01]
    output.write_text("\n".join(map(json.dumps, outputs)) + "\n", encoding="utf-8")
    changed = score(tmp_path / "graphs.jsonl", beside=[output], language="en", **QUICK)
    by_claim = changed["explained"].set_index(["response", "claim"])["explained_by"].to_dict()
    assert [key for key, by in by_claim.items() if by == "something else"] == [("r0", "a0")]


def test_two_assessments_have_names_and_conventions_of_their_own(tmp_path: Path) -> None:
    graphs = [labeled(seed) for seed in range(3)]
    for folder, name in (("mine", "paper"), ("theirs", "fact-reasoner-0.8")):
        (tmp_path / folder).mkdir()
        of_folder = [assessed(graph, PRESETS[name]) for graph in graphs]
        write_fact_graphs(of_folder, tmp_path / folder / "graphs.jsonl")
    plain = [replace(graph, contexts=(), relations=()) for graph in graphs]
    write_fact_graphs(plain, tmp_path / "labels.jsonl")
    files = [tmp_path / folder / "graphs.jsonl" for folder in ("mine", "theirs")]
    both = score(tmp_path / "labels.jsonl", beside=files, language="en", **QUICK)
    assert both["tools"]["model"].tolist() == [
        "FR2 (mine)",
        "FR2 (theirs)",
    ]
    # The relations are those of the first assessment, and the file of labels has none.
    assert set(both["conventions"]["tools"]) == {"FR2 (theirs) against FR2 (mine)"}
    scored = score(files[0], beside=files[1:], language="en", **QUICK)
    assert scored["tools"]["model"].tolist() == ["FR2", "FR2 (theirs)"]
    assert scored["tools"]["brier_difference"].isna().tolist() == [True, False]
    same = score(files[0], beside=[files[0]], language="en", **QUICK)
    assert "conventions" not in same.tables


def test_each_variant_is_explained_against_the_same_variant(tmp_path: Path) -> None:
    presets = {"mine": PRESETS["paper"], "theirs": replace(PRESETS["paper"], context_prior=0.9)}
    for folder, conventions in presets.items():
        (tmp_path / folder).mkdir()
        views = [
            AssessmentView(each, conventions.encoding, get_backend("exact"), conventions.graph)
            for each in ("FR1", "FR3")
        ]
        of_folder = [
            replace(graph, metadata={METADATA_KEY: assess_graph(graph, views)})
            for graph in map(labeled, range(3))
        ]
        write_fact_graphs(of_folder, tmp_path / folder / "graphs.jsonl")
    reference, other = (tmp_path / folder / "graphs.jsonl" for folder in presets)
    # A folder that `assess` wrote has other files too.
    (other.parent / "findings.json").write_text("{}", encoding="utf-8")
    findings = score(reference, beside=[other.parent], language="en", **QUICK)
    table = findings["conventions"].set_index("tools")
    assert table["convention"].to_dict() == {
        "FR1 (theirs) against FR1": "prior of passages",
        "FR3 (theirs) against FR3": "prior of passages",
    }
    # Of each pair every claim that differs is put down to the one convention that does.
    rows = findings["explained"].to_dict("records")
    assert {row["explained_by"] for row in rows} == {"prior of passages"}
    n_different = dict.fromkeys(table.index, 0)
    for variant in ("FR1", "FR3"):
        for graph in map(labeled, range(3)):
            p, its = (
                assess_graph(
                    graph,
                    [AssessmentView(variant, each.encoding, get_backend("exact"), each.graph)],
                )[variant]["atoms"]
                for each in presets.values()
            )
            n_different[f"{variant} (theirs) against {variant}"] += sum(
                abs(p[atom]["p"] - its[atom]["p"]) > 1e-6 for atom in p
            )
    assert table["n_explained"].to_dict() == n_different


def test_conventions_that_differ_between_responses_explain_nothing(tmp_path: Path) -> None:
    presets: list[Callable[[FactGraph], FactGraph]] = [
        lambda graph: assessed(graph, PRESETS["paper"]),
        lambda graph: assessed(graph, PRESETS["fact-reasoner-0.8"]),
    ]
    mixed = [make(labeled(seed)) for seed, make in enumerate(presets)]
    write_fact_graphs(mixed, tmp_path / "mixed.jsonl")
    alone = [assessed(labeled(seed), PRESETS["paper"]) for seed in range(2)]
    write_fact_graphs(alone, tmp_path / "one.jsonl")
    findings = score(
        tmp_path / "one.jsonl", beside=[tmp_path / "mixed.jsonl"], language="en", **QUICK
    )
    assert "conventions" not in findings.tables
