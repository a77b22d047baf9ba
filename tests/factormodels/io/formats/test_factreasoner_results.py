"""FactReasoner's outputs: posteriors and verdicts are kept, whichever way they were written."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from factormodels.errors import InputError
from factormodels.extraction.pipeline import assessor_stage, sentences_stage
from factormodels.fact_graph import FactGraph
from factormodels.io import read_many, write
from factormodels.io.file_report import check_file
from factormodels.io.formats import factreasoner, factreasoner_results
from factormodels.metadata.recorded_verdicts import (
    ASSESSORS_KEY,
    RecordedVerdict,
    recorded_verdicts,
    verdicts_of,
)
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.io.formats.release_records import (
    FACTREASONER,
    RESULTS,
    lines_at,
    removed,
    replaced,
)
from tests.refusals import refused

# The labels of its first claim are those of its results.
OUTPUT = removed(FACTREASONER, "atoms", 0, "label")
EXPECTED = {
    "a0": RecordedVerdict("supported", 0.9),
    "a1": RecordedVerdict("unsupported", 0.25),
}


def results_without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in RESULTS.items() if key not in keys}


@pytest.mark.parametrize(
    "results",
    [
        RESULTS,
        results_without("factuality_score_per_atom"),
        results_without("marginals"),
        results_without("marginals", "predictions"),
        {**results_without("marginals"), "predictions": None},
    ],
    ids=["all", "marginals", "scores", "scores alone", "null"],
)
def test_posteriors_are_those_of_the_file(results: dict[str, Any]) -> None:
    graph = factreasoner.read({**OUTPUT, "results": results}, "factreasoner_output.json")
    assert recorded_verdicts(graph) == {"factreasoner": EXPECTED}


def test_an_older_version_writes_labels_in_words(tmp_path: Path) -> None:
    older: dict[str, Any] = {
        **results_without("query", "response", "topic"),
        "input": RESULTS["query"],
        "predictions": " a0: S a1: NS",
        "references": " a0: S a1: S",
    }
    # Without labels to compare them with it writes no predictions.
    lines = [older, {key: older[key] for key in older if key not in ("predictions", "references")}]
    path = lines_at(tmp_path / "eval_results_factreasoner2_google_bio_llama.jsonl", *lines)
    for graph in read_many(path):
        assert recorded_verdicts(graph) == {"factreasoner": EXPECTED}
        assert graph.query == RESULTS["query"]
    assert [[atom.label for atom in graph.atoms] for graph in read_many(path)] == [
        [True, True],
        [None, None],
    ]
    graph = factreasoner.read({**OUTPUT, "results": older}, "factreasoner_output.json")
    assert [atom.label for atom in graph.atoms] == [True, False, None]
    assert recorded_verdicts(graph) == {"factreasoner": EXPECTED}
    beside = {**results_without("query", "response", "topic"), **OUTPUT, "results": None}
    assert recorded_verdicts(factreasoner.read(beside, "x.json")) == {"factreasoner": EXPECTED}
    wordy = {**older, "predictions": "a0 is supported"}
    refused(
        "predictions: 'a0 is supported' is not a JSON object",
        factreasoner_results.read,
        wordy,
        "x",
    )


def test_a_label_of_its_own_goes_before_the_references() -> None:
    graph = factreasoner.read(OUTPUT, "factreasoner_output.json")
    assert [atom.label for atom in graph.atoms] == [True, False, None]
    assert [atom.label for atom in factreasoner_results.read(RESULTS, "x.json").atoms] == [
        True,
        True,
    ]
    without = replaced(OUTPUT, [], "results", "references")
    assert factreasoner.read(without, "x.json").atoms[0].label is None
    wrong = replaced(OUTPUT, 7, "results", "references", "a0")
    refused(r"atoms\[0\]\.label: 7 is not an annotation", factreasoner.read, wrong, "x")


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("factscore_output.json", "factscore"),
        ("data/veriscore_output.json", "veriscore"),
        ("eval_factverify_google_bio_llama.jsonl", "factverify"),
        ("mine.json", "recorded"),
    ],
)
def test_verdicts_of_the_baselines_have_the_name_of_the_file(name: str, whose: str) -> None:
    results = {"predictions": {"a0": "S", "a1": "C"}, "factuality_score": 0.5, "entropy": None}
    graph = factreasoner.read({**OUTPUT, "results": results}, name)
    assert recorded_verdicts(graph) == {
        whose: {"a0": RecordedVerdict("supported", 1.0), "a1": RecordedVerdict("contradicted", 0.0)}
    }
    undecided = {**results, "predictions": {"a0": "U", "a1": "NS"}}
    verdicts = verdicts_of(factreasoner_results.read(undecided, name))
    assert [verdicts[atom].p_true for atom in ("a0", "a1")] == [0.5, 0.0]


def test_results_alone_are_a_response_a_line(tmp_path: Path) -> None:
    lines = [{**RESULTS, "model_name": "llama"}, results_without("references")]
    path = lines_at(tmp_path / "eval_factreasoner-FR2_google_bio_llama.jsonl", *lines)
    first, second = read_many(path)
    assert (first.query, first.topic, first.response) == (
        RESULTS["query"],
        "basalt",
        RESULTS["response"],
    )
    assert first.metadata["model"] == "llama"
    assert first.id != second.id
    assert set(first.atom_ids) == {"a0", "a1"}
    assert [atom.label for atom in second.atoms] == [None] * 2
    assert recorded_verdicts(second)["factreasoner"]["a0"] == EXPECTED["a0"]


def test_recorded_verdicts_are_written_and_read_again(tmp_path: Path) -> None:
    graph = factreasoner.read(OUTPUT, "factreasoner_output.json")
    write(graph, tmp_path / "graph.json")
    (again,) = read_many(tmp_path / "graph.json")
    assert again == graph
    assert verdicts_of(again, "factreasoner") == EXPECTED


def test_a_check_counts_the_verdicts(tmp_path: Path) -> None:
    path = lines_at(tmp_path / "factreasoner_output.json", OUTPUT)
    assert check_file(path).counts["judged by factreasoner"] == 2


def test_verdicts_of_several_are_chosen_by_name() -> None:
    graph = factreasoner.read(OUTPUT, "factreasoner_output.json")
    facts = graph.metadata[ASSESSORS_KEY]
    both = FactGraph(
        "g", graph.atoms, metadata={ASSESSORS_KEY: {**facts, "me": facts["factreasoner"]}}
    )
    assert verdicts_of(both, "me") == EXPECTED
    refused("holds those of factreasoner, me", verdicts_of, both)
    refused("of 'you' can be taken", verdicts_of, both, "you")
    refused("holds none", verdicts_of, FactGraph("g", graph.atoms))


@pytest.mark.parametrize("damage", [5, {"x": 5}, {"x": {}}, {"x": {"verdicts": {"a0": {"p": 2}}}}])
def test_metadata_of_another_form_are_refused(damage: Any) -> None:
    graph = FactGraph("g", (), metadata={ASSESSORS_KEY: copy.deepcopy(damage)})
    with pytest.raises(InputError, match="response 'g': metadata 'assessors'"):
        recorded_verdicts(graph)


def test_the_output_of_the_release_keeps_its_posteriors(shared_data: Path) -> None:
    path = shared_data / "factreasoner" / "factreasoner_output.json"
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    (graph,) = read_many(path)
    verdicts = verdicts_of(graph, "factreasoner")
    assert {atom: verdict.p_true for atom, verdict in verdicts.items()} == {
        marginal["variable"]: marginal["probabilities"][1] for marginal in results["marginals"]
    }
    supported = {atom for atom, verdict in verdicts.items() if verdict.label == "supported"}
    assert supported == {
        atom for atom, prediction in results["predictions"].items() if prediction == "S"
    }
    assert list(verdicts) == list(graph.atom_ids)


def test_recorded_verdicts_stay_beside_new_ones() -> None:
    graph = factreasoner.read(OUTPUT, "factreasoner_output.json")
    judge = AnsweringModel(lambda _: "true", "scripted")
    asked = assessor_stage(["factscore"], judge)(graph)
    recorded = recorded_verdicts(asked)
    assert recorded["factreasoner"] == EXPECTED
    assert {
        atom: verdict.p_true for atom, verdict in recorded["factscore"].items()
    } == dict.fromkeys(asked.atom_ids, 1.0)
    # Verdicts on claims that other claims take the place of are of nothing.
    assert recorded_verdicts(sentences_stage()(asked)) == {}
