"""`factormodels infer`: the numbers, the table, the JSON object."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.cli.commands.infer import as_json
from factormodels.factor_graph import FactorGraph
from factormodels.io import read, read_many, write
from factormodels.io.fact_graph_json import parse_fact_graph, write_fact_graphs
from factormodels.synthetic import grid
from inference.posterior import LogZKind, Marginals, Posterior, Status
from tests.experiments.conftest import invoke
from tests.oracle import oracle

ROUNDING = 1e-12
"""Three variables with potentials near 1: a handful of roundings of doubles."""


def infer_json(*arguments: object) -> dict[str, Any]:
    result = invoke("infer", *arguments, "--json")
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def read_network(path: Path) -> FactorGraph:
    graph = read(path)
    assert isinstance(graph, FactorGraph)
    return graph


def chain_by_hand() -> tuple[list[NDArray[np.float64]], float]:
    """Return marginals and Z of chain.uai by summing its 12 states."""
    first = np.array([0.4, 0.6])
    second = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    third = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    joint = first[:, None, None] * second[:, :, None] * third[None]
    z = joint.sum()
    return [joint.sum(axis=axes) / z for axes in ((1, 2), (0, 2), (0, 1))], float(z)


def test_json_is_one_object_with_the_documented_keys(graph_file: Path) -> None:
    document = infer_json(graph_file)
    assert set(document) == {"response", "marginals", "log_z", "log_z_kind", "status", "stats"}
    assert document["response"] == "figure-1"
    assert document["log_z_kind"] == "exact"
    assert document["status"] == "exact"
    assert list(document["marginals"]) == ["a1", "c1", "c2"]
    assert document["stats"]["backend"] == "auto"
    assert document["stats"]["marginals_by"] == "exact"
    assert document["stats"]["seconds"] > 0


def test_the_posterior_is_the_papers(graph_file: Path) -> None:
    marginals = infer_json(graph_file)["marginals"]
    expected = [103 / 151, 48 / 151]
    assert marginals["a1"] == pytest.approx(expected, abs=ROUNDING)


def test_encoding_and_variant_are_applied(graph_file: Path) -> None:
    conditional = infer_json(graph_file, "--encoding", "conditional")["marginals"]
    # 10361/33097: the row of a false context is the atom's prior.
    assert conditional["a1"][1] == pytest.approx(10361 / 33097, abs=ROUNDING)
    one = infer_json(graph_file, "--variant", "FR1")["marginals"]
    assert list(one) == ["a1", "c1", "c2"]


def test_unnamed_variables_are_numbered(network_file: Path) -> None:
    document = infer_json(network_file)
    expected, z = chain_by_hand()
    marginals = document["marginals"]
    assert list(marginals) == ["0", "1", "2"]
    for name, vector in zip("012", expected, strict=True):
        assert marginals[name] == pytest.approx(vector, abs=ROUNDING)
    assert document["log_z"] == pytest.approx(math.log(z), abs=ROUNDING)


@pytest.mark.parametrize("evidence", ["1 1 2", "1\n1 1 2\n", '{"1": 2}'])
def test_evidence_is_told_apart_by_content(network_file: Path, evidence: str) -> None:
    Path("evidence.txt").write_text(evidence, encoding="utf-8")
    document = infer_json(network_file, "--evidence", "evidence.txt")
    marginals = document["marginals"]
    assert marginals["1"] == [0.0, 0.0, 1.0]
    # Given variable 1 = 2: 0.4 * 0.7 to 0.6 * 0.25, and 0.2 to 0.8.
    assert marginals["0"] == pytest.approx([0.28 / 0.43, 0.15 / 0.43], abs=ROUNDING)
    assert marginals["2"] == pytest.approx([0.2, 0.8], abs=ROUNDING)
    assert document["log_z"] == pytest.approx(math.log(0.43), abs=ROUNDING)


def test_soft_and_boolean_evidence(graph_file: Path) -> None:
    Path("soft.json").write_text('{"a1": [0.5, 0.5], "c1": true}', encoding="utf-8")
    marginals = infer_json(graph_file, "--evidence", "soft.json")["marginals"]
    assert marginals["c1"] == [0.0, 1.0]
    # Odds of a1 given c1: (0.8 / 0.2) * (0.01 * 0.9 + 0.99 * 0.1) / (0.01 * 0.9 + 0.99 * 0.9).
    odds = 4 * 0.108 / 0.9
    assert marginals["a1"][1] == pytest.approx(odds / (1 + odds), abs=ROUNDING)


@pytest.mark.parametrize("backend", ["exact", "lbp", "enumeration"])
def test_backends_and_settings(graph_file: Path, backend: str) -> None:
    settings = ["--set", "damping=0.5", "--set", "tolerance=1e-12"] if backend == "lbp" else []
    document = infer_json(graph_file, "--backend", backend, *settings)
    # A tree: belief propagation is exact up to its tolerance of 1e-12 in log messages.
    assert document["marginals"]["a1"][1] == pytest.approx(48 / 151, abs=1e-10)
    assert document["stats"]["backend"] == backend
    if backend == "lbp":
        assert document["log_z_kind"] == "bethe"
        assert document["stats"]["damping"] == 0.5


def test_the_table_shows_claims(graph_file: Path) -> None:
    result = invoke("infer", graph_file)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["variable", "P(true)", "status", "label", "kind", "prior", "text"]
    row = ["a1", "0.3179", "contradicted", "false", "atom", "0.5", "A", "claim."]
    assert lines[2].split() == row
    assert lines[3].split()[:5] == ["c1", "0.9703", "supported", "context", "0.99"]
    assert "log Z -1.995836 (exact) · status exact · backend auto (exact) · " in result.stdout
    assert result.stderr == ""


def test_only_the_texts_shrink_in_a_narrow_table(
    graph_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    graph = json.loads(graph_file.read_text(encoding="utf-8"))
    graph["nodes"][0]["text"] = "A claim that goes on. " * 20
    graph_file.write_text(json.dumps(graph), encoding="utf-8")
    lines = invoke("infer", graph_file).stdout.splitlines()
    assert lines[0].split() == ["variable", "P(true)", "status", "label", "kind", "prior", "text"]
    assert lines[2].split()[:6] == ["a1", "0.3179", "contradicted", "false", "atom", "0.5"]
    assert lines[2].rstrip().endswith("…")
    assert max(map(len, lines[:5])) <= 80


def test_the_table_shows_states_and_what_was_observed(network_file: Path) -> None:
    Path("evidence").write_text("1 1 2", encoding="utf-8")
    lines = invoke("infer", network_file, "--evidence", "evidence").stdout.splitlines()
    assert lines[0].split() == ["variable", "status", "P(0)", "P(1)", "P(2)"]
    assert lines[2].split() == ["0", "0.651163", "0.348837"]
    assert lines[3].split() == ["1", "observed", "0.000000", "0.000000", "1.000000"]


def test_variables_with_many_states_share_one_column(folder: Path) -> None:
    (folder / "wide.uai").write_text("MARKOV\n1\n8\n1\n1 0\n8 1 1 1 1 1 1 1 1\n")
    lines = invoke("infer", "wide.uai").stdout.splitlines()
    assert lines[2].split() == ["0", "8", *["0.125000"] * 8]


def test_rows_limits_the_table(network_file: Path) -> None:
    assert "... and 2 more variables" in invoke("infer", network_file, "--rows", "1").stdout
    assert "more variables" not in invoke("infer", network_file, "--rows", "0").stdout


def test_out_writes_the_object_whole(graph_file: Path) -> None:
    result = invoke("infer", graph_file, "--json", "--out", "out.json")
    written, printed = json.loads(Path("out.json").read_text()), json.loads(result.stdout)
    assert written == printed
    assert sorted(path.name for path in Path().iterdir()) == ["graph.json", "out.json"]


def test_a_run_that_did_not_converge_says_so(folder: Path) -> None:
    # A frustrated triangle of strong repulsion and fields: one pass is not enough.
    table = "4 0.01 0.99 0.99 0.01"
    (folder / "loop.uai").write_text(
        f"MARKOV\n3\n2 2 2\n4\n1 0\n2 0 1\n2 1 2\n2 0 2\n2 0.3 0.7\n{table}\n{table}\n{table}\n"
    )
    arguments = ("infer", "loop.uai", "--backend", "lbp", "--set", "max_iterations=1")
    result = invoke(*arguments)
    assert "status not_converged" in result.stdout
    assert "did not converge" in result.stderr
    assert json.loads(invoke(*arguments, "--json").stdout)["status"] == "not_converged"


@pytest.mark.usefixtures("folder")
def test_bounds_tighten_for_some_seconds(folder: Path) -> None:
    write(grid(14, 14, coupling=2.0, field=1.0, seed=0), folder / "wide.uai")
    limits = ("--seconds", 0.5, "--set", "memory_limit=200000")
    result = invoke("infer", folder / "wide.uai", *limits)
    for words in ("(upper)", "log Z at least", "upper by ", "lower by ", "marginals by "):
        assert words in result.stdout
    stats = infer_json(folder / "wide.uai", *limits)["stats"]
    assert stats["backend"] == "auto"
    assert stats["lower"] < stats["upper"]
    refused = invoke("infer", folder / "wide.uai", "--seconds", 1, "--backend", "lbp", code=2)
    assert "--seconds is for the backend auto" in refused.stderr


@pytest.mark.usefixtures("folder")
def test_a_response_of_many_is_chosen_by_id() -> None:
    invoke("convert", "demonstration", "many.jsonl")
    first = json.loads(Path("many.jsonl").read_text().splitlines()[0])
    chosen = infer_json("many.jsonl", "--response", first["id"])
    assert list(chosen["marginals"]) == [node["id"] for node in first["nodes"]]
    Path("seen.json").write_text("{}", encoding="utf-8")
    for option, value in (("--evidence", "seen.json"), ("--seconds", 1)):
        refused = invoke("infer", "many.jsonl", option, value, code=2)
        assert f"{option} is for one; choose it with --response" in refused.stderr
        assert first["id"] in refused.stderr


@pytest.mark.usefixtures("folder")
def test_all_responses_of_a_file_are_answered() -> None:
    invoke("convert", "demonstration", "many.jsonl")
    graphs = read_many("many.jsonl")
    printed = invoke("infer", "many.jsonl", "--json", "--out", "all.jsonl").stdout
    assert Path("all.jsonl").read_text(encoding="utf-8") == printed
    answers = [json.loads(line) for line in printed.splitlines()]
    assert [answer["response"] for answer in answers] == [graph.id for graph in graphs]
    for graph, answer in zip(graphs, answers, strict=True):
        own = infer_json("many.jsonl", "--response", graph.id)
        assert answer["marginals"] == own["marginals"]
        assert answer["log_z"] == own["log_z"]
    shown = invoke("infer", "many.jsonl", "--rows", 0).stdout
    assert [line for line in shown.splitlines() if line in {g.id for g in graphs}] == [
        graph.id for graph in graphs
    ]
    part = invoke("infer", "many.jsonl", "--rows", 3).stdout
    assert f"... and {len(graphs) - 1} more responses" in part


def test_a_response_without_an_answer_is_named(folder: Path) -> None:
    graph = parse_fact_graph({"nodes": [], "edges": []}, "graph")
    ends = [
        {"id": "a", "type": "atom", "probability": 1.0},
        {"id": "b", "type": "context", "probability": 1.0},
    ]
    edge = {"source": "b", "target": "a", "relation": "contradiction", "probability": 1.0}
    bad = parse_fact_graph({"id": "impossible", "nodes": ends, "edges": [edge]}, "graph")
    write_fact_graphs([graph, bad, replace(graph, id="after")], folder / "two.jsonl")
    refused = invoke("infer", "two.jsonl", code=2)
    assert "response 'impossible'" in " ".join(refused.stderr.split())


def test_the_most_probable_states(network_file: Path, graph_file: Path) -> None:
    document = infer_json(network_file, "--map")
    best = max(
        oracle(read_network(network_file)).log_potentials,
    )
    assert document["log_potential"] == pytest.approx(best, abs=ROUNDING)
    assert document["upper"] == document["log_potential"]
    assert document["status"] == "exact"
    # 0.6 (0.5 0.9 = 0.45) against 0.4 (0.7 0.8 = 0.56): 0.27 beats 0.224.
    assert document["assignment"] == {"0": 1, "1": 0, "2": 0}
    Path("seen.json").write_text('{"1": 2}', encoding="utf-8")
    seen = infer_json(network_file, "--map", "--evidence", "seen.json")
    assert seen["assignment"] == {"0": 0, "1": 2, "2": 1}
    lines = invoke("infer", network_file, "--map", "--evidence", "seen.json").stdout.splitlines()
    assert [line.split() for line in lines[2:5]] == [["0", "0"], ["1", "2", "observed"], ["2", "1"]]
    searched = infer_json(network_file, "--map", "--seconds", 5)
    assert searched["assignment"] == document["assignment"]
    claims = invoke("infer", graph_file, "--map").stdout.splitlines()
    assert claims[0].split()[:2] == ["variable", "state"]
    assert claims[2].split()[:2] == ["a1", "false"]
    refused = invoke("infer", network_file, "--map", "--backend", "lbp", code=2)
    assert "--map has algorithms of its own" in refused.stderr


def test_recorded_verdicts_stand_beside_the_posterior(folder: Path) -> None:
    record = {
        "input": "What is basalt?",
        "output": "Basalt is a rock.",
        "atoms": [{"id": "a0", "text": "Basalt is a rock."}, {"id": "a1", "text": "It floats."}],
        "contexts": [{"id": "c0", "text": "Basalt is an igneous rock."}],
        "results": {"predictions": {"a0": "S", "a1": "NS"}},
    }
    (folder / "factscore_output.json").write_text(json.dumps(record), encoding="utf-8")
    result = invoke("infer", "factscore_output.json")
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["variable", "P(true)", "factscore"]
    assert [line.split()[:3] for line in lines[2:4]] == [
        ["a0", "0.5000", "1.0000"],
        ["a1", "0.5000", "0.0000"],
    ]
    assert "no relations between claims and passages" in result.stderr
    assert infer_json("factscore_output.json")["recorded"] == {
        "factscore": {
            "a0": {"label": "supported", "p": 1.0},
            "a1": {"label": "unsupported", "p": 0.0},
        }
    }


def test_an_embedded_dataset_is_named_like_a_file(folder: Path) -> None:
    response = ("worked-examples", "--response", "factreasoner-example-1")
    assert infer_json(*response)["marginals"]["a1"][1] == pytest.approx(48 / 151, abs=ROUNDING)
    (folder / "worked-examples").write_text("not a model", encoding="utf-8")
    assert "worked-examples: it begins with" in invoke("infer", "worked-examples", code=2).stderr


def test_json_holds_no_nan_and_no_numpy() -> None:
    marginals = Marginals(("x",), np.array([2]), np.array([np.nan, 1.0]))
    stats = {
        "trace": np.array([1.0, np.inf]),
        "width": np.int64(3),
        "flag": np.bool_(True),
        "ratio": np.float32(0.5),
        "nested": {"nan": float("nan"), "kind": LogZKind.BETHE},
    }
    for log_z in (None, math.inf, -math.inf, math.nan):
        posterior = Posterior(marginals, log_z, LogZKind.NONE, Status.CONVERGED, stats, "test")
        text = as_json(posterior)
        assert text.count("\n") == 1
        assert "NaN" not in text
        assert "Infinity" not in text
        document = json.loads(text)
        assert document["log_z"] is None
        assert document["marginals"] == {"x": [None, 1.0]}
        assert document["stats"] == {
            "backend": "test",
            "trace": [1.0, None],
            "width": 3,
            "flag": True,
            "ratio": 0.5,
            "nested": {"nan": None, "kind": "bethe"},
        }


def test_files_of_the_release_and_networks_with_evidence(shared_data: Path) -> None:
    graph = infer_json(shared_data / "factreasoner" / "fact_graph.json")
    assert list(graph["marginals"]) == ["a1", "c11", "c12"]
    cancer = shared_data / "merlin" / "cancer.uai"
    document = infer_json(cancer, "--evidence", cancer.with_suffix(".evid"))
    assert document["marginals"]["1"] == [1.0, 0.0]


def test_a_claim_is_undecided_where_the_scores_say_so() -> None:
    from calibration.scores.measures import DECISION_TOLERANCE
    from experiments.findings.text import UNDECIDED, verdict

    assert UNDECIDED == DECISION_TOLERANCE
    assert [verdict(0.5 + shift) for shift in (0, 2e-9, -2e-9)] == [
        "undecided",
        "supported",
        "contradicted",
    ]
