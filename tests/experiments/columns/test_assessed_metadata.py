"""Metadata of assessed responses are checked before they are shown, key by key."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from experiments import report
from experiments.columns.assessed_metadata import check_assessment
from experiments.evaluators.display.assess_tables import stage_remarks
from experiments.evaluators.display.assessed_page import findings_of_graphs, listed_responses
from experiments.evaluators.response import judged
from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.io.fact_graph_json import write_fact_graphs
from tests.refusals import refused

METADATA: dict[str, Any] = {
    "atoms": {"failures": []},
    "retrieval": {
        "retriever": "bm25",
        "queries": 2,
        "passages": 3,
        "contexts": 1,
        "failures": [["a2", "no answer"]],
    },
    "summaries": {"model": "m", "passages": {"c1": "short"}, "dropped": [], "failures": []},
    "duplicates": {"a3": {"same_as": "a1", "label": None, "annotation": None, "sentence": 1}},
    "relations": {
        "model": "m",
        "asked": 2,
        "entailment": 1,
        "contradiction": 0,
        "neutral": 1,
        "made_neutral": 0,
        "least": 0.5,
        "missing": [["c1", "a2", "an outage"]],
        "origins": {"m": 2},
    },
    "assessors": {"j": {"model": "m", "verdicts": {"a1": {"p": 0.9}}, "missing": [["a2", "no"]]}},
    "consumption": {
        "relations": {
            "answers": 2,
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "cost": 0.5,
            "unpriced": 0,
        }
    },
    "core": {"kept": ["a1"]},
    "assessment": {
        "FR1": {
            "encoding": "implication",
            "backend": "exact",
            "status": "exact",
            "log_z": -0.5,
            "log_z_kind": "exact",
            "unanswered": ["a2"],
            "open": {"a2": [0.1, 0.9]},
            "atoms": {
                "a1": {
                    "p": 0.8,
                    "evidence": [
                        {
                            **{"context": "c1", "relation": "entailment", "probability": 0.9},
                            **{"change": 0.3, "change_error": 0.01},
                        }
                    ],
                },
                "a2": {"p": 0.5, "evidence": []},
            },
        },
        "FR2": {"encoding": "implication", "backend": "exact", "error": "too large"},
    },
}

OPTIONAL = {
    *("atoms.failures", "relations.origins", "assessors.j.model", "core.kept"),
    *("assessors.j.verdicts.a1", "consumption.relations"),
    *("duplicates.a3", "assessors.j", "assessment.FR1.open", "assessment.FR1.open.a2"),
    *("assessment.FR1", "assessment.FR2", "relations.origins.m", "summaries.passages.c1"),
}
"""Keys without which a response is shown: what they say is unknown, or was not done."""


def graph(metadata: dict[str, Any]) -> FactGraph:
    return FactGraph(
        "r1",
        atoms=(Atom("a1", "One."), Atom("a2", "Two.")),
        contexts=(Context("c1", "Both."),),
        relations=(Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),),
        metadata=metadata,
    )


def keys(value: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*before, key)
        yield from keys(inner, (*before, key))


KEYS = [path for path in keys(METADATA) if len(path) > 1]


def without(path: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A copy of the metadata, and the mapping in it that holds the last key of a path."""
    changed = copy.deepcopy(METADATA)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    return changed, parent


def shown(metadata: dict[str, Any]) -> None:
    response = graph(metadata)
    check_assessment(response, "t.jsonl")
    judged(response)
    stage_remarks(response)
    findings_of_graphs([response], "t.jsonl")
    assert listed_responses([response]).as_json()


@pytest.mark.parametrize("path", KEYS, ids=".".join)
def test_a_key_that_is_missing_is_named_or_not_needed(path: tuple[str, ...]) -> None:
    changed, parent = without(path)
    del parent[path[-1]]
    name = ".".join(path)
    if name in OPTIONAL:
        shown(changed)
    else:
        sentence = f"t.jsonl: the metadata of the response 'r1' lack {name}; assess it again"
        # What says that there was an error is what tells the two kinds of views apart.
        if name == "assessment.FR2.error":
            sentence = "lack assessment.FR2.status; assess it again"
        refused([sentence], shown, changed)


def refusal(metadata: dict[str, Any]) -> str | None:
    """The sentence with which metadata are refused; any other error is raised."""
    try:
        shown(metadata)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("path", KEYS, ids=".".join)
def test_a_value_of_another_kind_is_named_or_shown(path: tuple[str, ...]) -> None:
    for value in (None, "x", -3, 0.25, [], [[1]], {}, {"y": None}, True):
        changed, parent = without(path)
        parent[path[-1]] = value
        message = refusal(changed)
        if message is not None:
            fault = rf"(lack|garble|have an invalid) {path[0]}\b.+"
            sentence = rf"t\.jsonl: the metadata of the response 'r1' {fault}"
            assert re.fullmatch(f"{sentence}; assess (it|the response) again", message), (
                value,
                message,
            )


def test_a_report_checks_every_response(tmp_path: Any) -> None:
    whole, broken = graph(METADATA), copy.deepcopy(METADATA)
    del broken["relations"]["least"]
    both = [whole, replace(graph(broken), id="r2")]
    write_fact_graphs(both, tmp_path / "t.jsonl")
    refused("'r2' lack relations.least", report, tmp_path / "t.jsonl", out=tmp_path / "o.html")
    assert not (tmp_path / "o.html").exists()
