"""JSON Schemas: what our readers accept is valid, and what they refuse for its form is not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from experiments.analyses.schemas_by_name import SCHEMAS, schema
from experiments.analyses.study import load_analysis
from experiments.networks.config import load_networks
from experiments.settings.inputs import with_evidence
from experiments.study.reading import (
    embedded_studies,
    is_analysis,
    is_of_networks,
    read_raw,
    validated,
    written_out,
)
from factormodels import FactGraph, FactorGraph, InputError, datasets
from factormodels.io.fact_graph_json import fact_graph_object, parse_fact_graph
from factormodels.io.yaml import parse_yaml
from tests.experiments.conftest import EXAMPLE, invoke, study_file
from tests.factormodels.io.formats import release_records
from tests.factormodels.io.formats.release_records import places
from tests.factormodels.io.formats.test_damaged_records import DAMAGE, damaged
from tests.factormodels.io.test_fact_graph_json import FULL, plain_object
from tests.refusals import refused

BEYOND_A_SCHEMA = (
    "is given twice",
    "which is neither an atom nor a context",
    "refers to itself",
    "two relations join",
    "which is not an atom of this graph",
)
"""What the reader says of values that are wrong together and right each by itself."""


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


FACT_GRAPH = validator("fact-graph")
STUDY = validator("study")


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_one_and_says_what_it_is_of(name: str) -> None:
    document = schema(name)
    Draft202012Validator.check_schema(document)
    assert document["title"]
    assert document["description"].endswith(".")
    assert document["$id"].startswith(f"urn:factormodels:{name}:")


def refusal(value: Any) -> str | None:
    """Return what the reader of fact graphs says against a value, or None."""
    try:
        parse_fact_graph(value, "g.json")
    except InputError as error:
        return str(error)
    return None


def agree_on_fact_graph(value: Any) -> None:
    message = refusal(value)
    if FACT_GRAPH.is_valid(value):
        assert message is None or any(words in message for words in BEYOND_A_SCHEMA), message
    else:
        assert message is not None, value


def test_fact_graphs_of_all_kinds_are_valid() -> None:
    graphs: list[FactGraph] = [FULL, *datasets.load("demonstration").graphs]
    graphs += datasets.load("worked-examples").graphs
    for graph in graphs:
        FACT_GRAPH.validate(fact_graph_object(graph))
    empty: dict[str, Any] = {"nodes": [], "edges": []}
    facts = dict.fromkeys(("id", "query", "response", "topic"))
    atom = dict.fromkeys(("text", "label", "annotation", "sentence"))
    context = dict.fromkeys(("text", "title", "link", "snippet", "retrieved_for", "key", "note"))
    nodes = [
        {"id": "a1", "type": "atom", "probability": 0.5, **atom},
        {"id": "c1", "type": "context", "probability": 0.5, **context},
    ]
    for plain in (EXAMPLE, plain_object(), empty, {**facts, "nodes": nodes, "edges": []}):
        assert refusal(plain) is None
        FACT_GRAPH.validate(plain)


@pytest.mark.parametrize(("path", "value", "_"), DAMAGE["fact-graph", ""])
def test_the_schema_refuses_what_the_reader_refuses(path: str, value: Any, _: str) -> None:
    wrong = damaged(release_records.FACT_GRAPH, path, value)
    assert refusal(wrong) is not None
    agree_on_fact_graph(wrong)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


STUDIES = """
study: full.study-1
description: everything
datasets:
  - {name: factcheck-bench, options: {stances: {refute: null}}, limit: 3}
  - {path: data/graphs.jsonl, name: mine, subset: {labeled: true, sample: 3}}
  - {name: made, synthetic: {n_responses: 3}}
  - demonstration
variants: [given, FR1]
encodings: [conditional, implication]
backends:
  - {backend: lbp, label: damped, settings: {damping: 0.5, tolerance: 1e-6}}
  - {backend: wmb, grid: {i_bound: [1, 2]}}
  - {backend: exact, only: {datasets: [mine], variants: [FR1], strengths: [1.0]}}
priors: [{atom: [0.4], context: [null, 0.9]}, {atom: [0.5], name: even}]
strengths: [0.5, 1.0]
seed: 7
seeds: [1, 2]
unlabeled: "false"
k: 12
measures: [brier]
significance: {pairs: [[damped, exact], [{variant: given}, {variant: FR1}]], test: bootstrap}
reliability: {bins: 5, strategy: quantile}
outputs: [latex]
---
study: short
datasets: [demonstration]
variants: [FR1]
encodings: [conditional]
backends: [exact]
conventions: paper
priors: [{atom: [0.4]}]
strengths: [2]
seeds: [3]
unlabeled: false
k: median
measures: [brier]
outputs: [csv]
---
base: compare
study: mine
backends: [lbp]
---
study: texts
datasets: [demonstration]
priors: [{learned: {}}, {learned: {parameters: [atom_prior], folds: 3}, context: [0.9]}]
language_model: openai/NAME
relation_models: [recorded, lexical]
assessors: [factscore]
selections: [all, {selection: core, weights: uniform}]
---
study: learned
datasets: [demonstration]
priors: [{learned: {}}]
selections: [core]
---
study: sizes
analysis: dataset-statistics
settings:
  datasets: [demonstration, {path: mine.json, limit: 2}]
"""


def studies() -> list[Any]:
    written = [parse_yaml(text, "studies") for text in STUDIES.split("---")]
    return written + [parse_yaml(text, name) for name, text in embedded_studies().items()]


def study_refusal(value: Any, folder: Path) -> str | None:
    path = folder / "study.yaml"
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        raw = read_raw(str(path))
        if is_of_networks(raw):
            load_networks(raw)
        else:
            load_analysis(raw) if is_analysis(raw) else validated(raw)
    except InputError as error:
        return str(error)
    return None


def test_studies_of_all_kinds_are_valid(tmp_path: Path) -> None:
    for study in studies():
        assert study_refusal(study, tmp_path) is None
        STUDY.validate(study)
        if "analysis" not in study:
            STUDY.validate(written_out(study))


@pytest.mark.parametrize(
    "override",
    [
        {"nonsense": 1},
        {"variants": ["FR9"]},
        {"encodings": ["implied"]},
        {"encodings": "implication"},
        {"datasets": "demonstration"},
        {"backends": [{"backend": "exakt"}]},
        {"backends": [{"label": "no backend"}]},
        {"backends": [{"backend": "lbp", "damping": 0.5}]},
        {"datasets": []},
        {"datasets": [{"path": 3}]},
        {"priors": [{"atom": [1.5]}]},
        {"priors": [{"atom": ["half"]}]},
        {"priors": [{"atom": 0.5}]},
        {"priors": {"atom": [0.5]}},
        {"priors": ["learned"]},
        {"strengths": [0]},
        {"seed": -1},
        {"seed": "7"},
        {"unlabeled": "maybe"},
        {"measures": ["briar"]},
        {"reliability": {"bins": 0}},
        {"significance": {"pairs": [["exact"]]}},
        {"significance": {"test": "z"}},
        {"outputs": ["pdf"]},
        {"study": "a name"},
        {"analysis": "no-such-analysis"},
        {"analysis": "dataset-statistics"},
    ],
    ids=str,
)
def test_a_study_that_is_refused_for_its_form_is_not_valid(
    override: dict[str, Any], tmp_path: Path
) -> None:
    value = {"study": "small", "datasets": ["demonstration"]} | override
    assert study_refusal(value, tmp_path) is not None
    assert not STUDY.is_valid(value)


@pytest.mark.slow
def test_unknown_keys_are_refused_by_both_at_every_depth(tmp_path: Path) -> None:
    for study in studies():
        for path in places(study):
            # What algorithms, generators and loaders take is theirs, and names of files are the
            # user's.
            below = path[1:] if "analysis" in study else path
            open_keys = {"settings", "grid", "synthetic", "options", "thresholds", "grids"}
            if open_keys & set(below) or not isinstance(at(study, path), dict):
                continue
            value = copy.deepcopy(study)
            at(value, path)["zzz"] = 1
            assert study_refusal(value, tmp_path) is not None
            assert not STUDY.is_valid(value), path


def test_rows_and_manifests_of_runs_are_valid(folder: Path) -> None:
    from experiments.study.rows import read_rows

    (folder / "graph.json").write_text(json.dumps(EXAMPLE), encoding="utf-8")
    empty = {"id": "empty", "nodes": [], "edges": []}
    (folder / "empty.json").write_text(json.dumps(empty), encoding="utf-8")
    study_file(
        folder,
        "study: s\ndatasets: [{path: graph.json}, {path: empty.json}]\noutputs: [csv]\n"
        "backends: [exact, {backend: enumeration, settings: {max_states: 1}}]\n",
    )
    result = invoke("run", "study.yaml", code=1)
    assert (folder / "results" / "s" / "manifest.json").is_file(), result.output
    rows = read_rows(folder / "results" / "s" / "rows.parquet")
    plain = json.loads(rows.to_json(orient="records"))
    assert {row["status"] for row in plain} == {"exact", "failed"}
    for row in plain:
        validator("row").validate(row)
    assert not validator("row").is_valid(plain[0] | {"p": 1.5})
    assert not validator("row").is_valid(plain[0] | {"status": "done"})

    study_file(folder, STUDIES.split("---")[-1].replace(", {path: mine.json, limit: 2}", ""))
    invoke("run", "study.yaml")
    for name in ("s", "sizes"):
        manifest = json.loads((folder / "results" / name / "manifest.json").read_text())
        validator("manifest").validate(manifest)
        assert not validator("manifest").is_valid(manifest | {"user": "me"})
        assert not validator("manifest").is_valid(manifest | {"config_sha256": "?"})


@pytest.mark.parametrize(
    "evidence",
    [
        *({}, {"c1": 1}, {"c1": False}, {"c1": [0.2, 0.8]}, {"c1": -1}),
        *({"c1": 0.5}, {"c1": None}, {"c1": []}, {"c1": [-1, 1]}, {"c1": ["x", 1]}),
        *({"c1": {"x": 1}}, []),
    ],
    ids=json.dumps,
)
def test_evidence_is_valid_where_it_is_read(evidence: Any, tmp_path: Path) -> None:
    graph = parse_fact_graph(EXAMPLE, "g").to_factor_graph()
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(evidence), encoding="utf-8")
    try:
        with_evidence(graph, path)
        read = True
    except InputError:
        read = False
    assert validator("evidence").is_valid(evidence) == read


def test_evidence_may_name_a_state_where_states_have_names(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.write_text('{"c1": "yes"}', encoding="utf-8")
    named = FactorGraph.from_factors([2], [], names=["c1"], state_names=[["no", "yes"]])
    assert with_evidence(named, path).evidence.tolist() == [1]
    refused("'yes'", with_evidence, parse_fact_graph(EXAMPLE, "g").to_factor_graph(), path)
    assert validator("evidence").is_valid({"c1": "yes"})


def test_the_command_prints_a_schema_or_lists_them() -> None:
    listed = json.loads(invoke("list", "schemas", "--json").stdout)["tables"]
    (rows,) = listed.values()
    assert [row["schema"] for row in rows] == list(SCHEMAS)
    for name in SCHEMAS:
        assert json.loads(invoke("list", "schemas", name).stdout) == schema(name)
    assert "did you mean 'fact-graph'?" in invoke("list", "schemas", "fact-grap", code=2).stderr
