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

from experiments import infer
from experiments.methods.infer import findings_of
from experiments.settings.inputs import LoadedModel
from factormodels.fact_graph import FactGraph
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
    """Facts on the only model, and its probabilities (or states) by variable."""
    document = json.loads(invoke("infer", *arguments, "--json").stdout)
    (model,) = document["tables"]["models"]
    return {**model, **by_variable(document["tables"])}


def by_variable(tables: dict[str, Any]) -> dict[str, Any]:
    """P(true) of claims, probabilities of other variables' states, or the state."""
    if "states" in tables:
        return {"assignment": {row["variable"]: row["state"] for row in tables["states"]}}
    marginals: dict[str, Any] = {}
    for row in tables["posteriors"]:
        if "state" in row:
            marginals.setdefault(row["variable"], []).append(row["p"])
        else:
            marginals[row["variable"]] = row["p"]
    return {"marginals": marginals}


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
    document = json.loads(invoke("infer", graph_file, "--json").stdout)
    assert list(document["tables"]) == ["posteriors", "models"]
    claim = {
        "response": "figure-1", "variable": "a1", "status": "contradicted", "label": False,
        "kind": "atom", "prior": 0.5, "text": "A claim.",
    }  # fmt: skip
    (first, *_) = document["tables"]["posteriors"]
    assert {**claim, "p": first["p"]} == first
    (model,) = document["tables"]["models"]
    assert (model["response"], model["status"]) == ("figure-1", "exact")
    assert (model["log_z_kind"], model["backend"]) == ("exact", "auto")
    assert model["marginals_by"] == "exact"
    assert model["seconds"] > 0


def test_the_posterior_is_the_papers(graph_file: Path) -> None:
    marginals = infer_json(graph_file)["marginals"]
    assert marginals["a1"] == pytest.approx(48 / 151, abs=ROUNDING)


def test_encoding_and_variant_are_applied(graph_file: Path) -> None:
    conditional = infer_json(graph_file, "--encoding", "conditional")["marginals"]
    # 10361/33097: the row of a false context is the atom's prior.
    assert conditional["a1"] == pytest.approx(10361 / 33097, abs=ROUNDING)
    answer = infer_json(graph_file, "--variant", "FR1")["marginals"]
    assert list(answer) == ["a1", "c1", "c2"]


def test_unnamed_variables_are_numbered(network_file: Path) -> None:
    document = infer_json(network_file)
    expected, z = chain_by_hand()
    marginals = document["marginals"]
    assert list(marginals) == ["0", "1", "2"]
    for name, vector in zip("012", expected, strict=True):
        assert marginals[name] == pytest.approx(vector, abs=ROUNDING)
    assert document["log_z"] == pytest.approx(math.log(z), abs=ROUNDING)


@pytest.mark.parametrize("evidence", ["1 1 2", "1\n1 1 2\n", '{"1": 2}'])
def test_evidence_is_distinguished_by_content(network_file: Path, evidence: str) -> None:
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
    assert marginals["c1"] == 1.0
    # Odds of a1 given c1: (0.8 / 0.2) * (0.01 * 0.9 + 0.99 * 0.1) / (0.01 * 0.9 + 0.99 * 0.9).
    odds = 4 * 0.108 / 0.9
    assert marginals["a1"] == pytest.approx(odds / (1 + odds), abs=ROUNDING)


@pytest.mark.parametrize("backend", ["exact", "lbp", "enumeration"])
def test_backends_and_settings(graph_file: Path, backend: str) -> None:
    settings = ["--damping", "0.5", "--tolerance", "1e-12"] if backend == "lbp" else []
    document = infer_json(graph_file, "--backend", backend, *settings)
    # A tree: belief propagation is exact up to its tolerance of 1e-12 in log messages.
    assert document["marginals"]["a1"] == pytest.approx(48 / 151, abs=1e-10)
    assert document["backend"] == backend
    if backend == "lbp":
        assert document["log_z_kind"] == "bethe"
        assert document["damping"] == 0.5


def test_the_limit_of_another_backend_is_given_to_it(graph_file: Path) -> None:
    assert infer_json(graph_file, "--backend", "cavi", "--seconds", "60")["backend"] == "cavi"
    twice = invoke("infer", graph_file, "--backend", "cavi,seconds=1", "--seconds", "1", code=2)
    assert "--seconds is given 2 times; keep one" in twice.stderr


def test_the_table_shows_claims(graph_file: Path) -> None:
    result = invoke("infer", graph_file)
    lines = result.stdout.splitlines()[1:]
    assert lines[0].split() == ["variable", "P(true)", "status", "label", "kind", "prior", "text"]
    row = ["a1", "0.3179", "contradicted", "false", "atom", "0.5", "A", "claim."]
    assert lines[2].split() == row
    assert lines[3].split()[:5] == ["c1", "0.9703", "supported", "context", "0.99"]
    assert "log Z -1.995836 (exact), status exact, backend auto (exact), " in result.stdout
    assert result.stderr == ""


def test_texts_alone_are_folded_in_a_narrow_table(
    graph_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    graph = json.loads(graph_file.read_text(encoding="utf-8"))
    graph["nodes"][0]["text"] = "A claim that goes on. " * 20
    graph_file.write_text(json.dumps(graph), encoding="utf-8")
    lines = invoke("infer", graph_file).stdout.splitlines()[1:]
    assert lines[0].split() == ["variable", "P(true)", "status", "label", "kind", "prior", "text"]
    assert lines[2].split()[:6] == ["a1", "0.3179", "contradicted", "false", "atom", "0.5"]
    assert max(map(len, lines[:5])) <= 80


def test_the_table_shows_states_and_what_was_observed(network_file: Path) -> None:
    Path("evidence").write_text("1 1 2", encoding="utf-8")
    lines = invoke("infer", network_file, "--evidence", "evidence").stdout.splitlines()[1:]
    assert lines[0].split() == ["variable", "status", "P(0)", "P(1)", "P(2)"]
    assert lines[2].split() == ["0", "0.651163", "0.348837", "--"]
    assert lines[3].split() == ["1", "observed", "0.000000", "0.000000", "1.000000"]


def test_variables_with_many_states_share_one_column(folder: Path) -> None:
    (folder / "wide.uai").write_text("MARKOV\n1\n8\n1\n1 0\n8 1 1 1 1 1 1 1 1\n")
    lines = invoke("infer", "wide.uai").stdout.splitlines()[1:]
    probabilities = ", ".join(f"{state} 0.125000" for state in range(8))
    assert lines[2].split(maxsplit=2) == ["0", "8", probabilities]


def test_out_is_a_folder_with_all_of_it(graph_file: Path) -> None:
    result = invoke("infer", graph_file, "--json", "--out", "out", "--report", "page.html")
    assert (Path("out") / "findings.json").read_text() == result.stdout
    assert (Path("out") / "posteriors.csv").read_text().startswith("response,variable,p,status,")
    assert "A claim." in Path("page.html").read_text()


def test_a_run_that_did_not_converge_says_so(folder: Path) -> None:
    # A frustrated triangle of strong repulsion and fields: one pass is not enough.
    table = "4 0.01 0.99 0.99 0.01"
    (folder / "loop.uai").write_text(
        f"MARKOV\n3\n2 2 2\n4\n1 0\n2 0 1\n2 1 2\n2 0 2\n2 0.3 0.7\n{table}\n{table}\n{table}\n"
    )
    arguments = ("infer", "loop.uai", "--backend", "lbp,max_iterations=1")
    result = invoke(*arguments)
    assert "status not_converged" in result.stdout
    assert "lbp did not converge: these numbers are its last iterate" in result.stdout
    assert infer_json(*arguments[1:])["status"] == "not_converged"
    # A bound is one at any iterate.
    for backend, words in (
        ("wmb,i_bound=1,iterations=1", "wmb did not converge: the bounds on log Z hold all the"),
        ("trw,max_iterations=1", "trw did not converge: the bound on log Z holds all the same"),
    ):
        bounded = " ".join(invoke("infer", "loop.uai", "--backend", backend).stdout.split())
        assert words in bounded
        assert "the marginals are approximations" in bounded
        assert "last iterate" not in bounded


@pytest.mark.usefixtures("folder")
def test_bounds_tighten_for_some_seconds(folder: Path) -> None:
    write(grid(14, 14, coupling=2.0, field=1.0, seed=0), folder / "wide.uai")
    limits = ("--backend", "auto,memory_limit=50000", "--seconds", "0.5")
    result = invoke("infer", folder / "wide.uai", *limits)
    for words in ("(upper)", "log Z at least", "upper by ", "lower by ", "marginals by "):
        assert words in result.stdout
    assert "Not exact: exact elimination, of induced width" in " ".join(result.stdout.split())
    stats = infer_json(folder / "wide.uai", *limits)
    assert stats["backend"] == "auto"
    assert stats["lower"] < stats["upper"]
    refused = invoke("infer", folder / "wide.uai", "--backend", "lbp", "--seconds", "1", code=2)
    assert "--seconds: the backend 'lbp' has no such setting" in refused.stderr
    refused = invoke("infer", folder / "wide.uai", "--backend", "exact", "--damping", "1", code=2)
    assert (
        "--damping: the backend 'exact' has no such setting; it is a setting of lbp"
        in refused.stderr
    )
    # A misspelled setting of a backend that is not named is known too.
    refused = invoke("infer", folder / "wide.uai", "--dampin", "1", code=2)
    assert "the option --dampin is unknown (did you mean '--damping'" in refused.stderr
    (folder / "own.yaml").write_text("damping: 1\n")
    refused = invoke("infer", folder / "wide.uai", "--config", folder / "own.yaml", code=2)
    assert "own.yaml: 'damping': the backend 'auto' has no such setting" in refused.stderr


@pytest.mark.usefixtures("folder")
def test_a_response_of_many_is_chosen_by_id() -> None:
    invoke("convert", "demonstration", "many.jsonl")
    first = json.loads(Path("many.jsonl").read_text().splitlines()[0])
    chosen = infer_json("many.jsonl", "--response", first["id"])
    assert list(chosen["marginals"]) == [node["id"] for node in first["nodes"]]
    Path("seen.json").write_text("{}", encoding="utf-8")
    for option, value in (("--evidence", "seen.json"), ("--seconds", "1")):
        refused = invoke("infer", "many.jsonl", option, value, code=2)
        assert f"{option} applies to a single response; choose it with --response" in refused.stderr
        assert first["id"] in refused.stderr


@pytest.mark.usefixtures("folder")
def test_all_responses_of_a_file_are_answered() -> None:
    invoke("convert", "demonstration", "many.jsonl")
    graphs = read_many("many.jsonl")
    tables = json.loads(invoke("infer", "many.jsonl", "--json").stdout)["tables"]
    assert [row["response"] for row in tables["models"]] == [graph.id for graph in graphs]
    for graph, model in zip(graphs, tables["models"], strict=True):
        alone = infer_json("many.jsonl", "--response", graph.id)
        rows = [row for row in tables["posteriors"] if row["response"] == graph.id]
        assert {row["variable"]: row["p"] for row in rows} == alone["marginals"]
        assert model["log_z"] == alone["log_z"]
    shown = invoke("infer", "many.jsonl").stdout.splitlines()
    assert graphs[0].id in shown
    assert any("more of 382 rows: --out DIR or --report FILE has them all" in x for x in shown)


@pytest.mark.usefixtures("folder")
def test_data_in_memory_are_treated_like_a_file(graph_file: Path) -> None:
    graph = read(graph_file)
    posterior = infer(
        graph,
        encoding="conditional",
        evidence={"c1": True},
        backend_settings={"memory_limit": None},
    )
    Path("seen.json").write_text('{"c1": true}', encoding="utf-8")
    printed = infer_json(graph_file, "--encoding", "conditional", "--evidence", "seen.json")
    assert (
        dict(zip(*(posterior["posteriors"][key] for key in ("variable", "p")), strict=True))
        == (printed["marginals"])
    )


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
    lines = invoke("infer", network_file, "--map", "--evidence", "seen.json").stdout.splitlines()[
        1:
    ]
    assert [line.split() for line in lines[2:5]] == [["0", "0"], ["1", "2", "observed"], ["2", "1"]]
    searched = infer_json(network_file, "--map", "--seconds", "5")
    assert searched["assignment"] == document["assignment"]
    claims = invoke("infer", graph_file, "--map").stdout.splitlines()[1:]
    assert claims[0].split()[:2] == ["variable", "state"]
    assert claims[2].split()[:2] == ["a1", "false"]
    refused = invoke("infer", network_file, "--map", "--backend", "lbp", code=2)
    assert "--map does not use backends" in refused.stderr


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
    lines = result.stdout.splitlines()[1:]
    assert lines[0].split()[:3] == ["variable", "P(true)", "factscore"]
    assert [line.split()[:3] for line in lines[2:4]] == [
        ["a0", "0.5000", "1.0000"],
        ["a1", "0.5000", "0.0000"],
    ]
    assert "no relations between claims and passages" in result.stdout
    tables = json.loads(invoke("infer", "factscore_output.json", "--json").stdout)["tables"]
    verdicts = [(row["factscore_label"], row["factscore"]) for row in tables["posteriors"]]
    assert verdicts == [("supported", 1.0), ("unsupported", 0.0), (None, None)]


def test_an_embedded_dataset_is_named_like_a_file(folder: Path) -> None:
    response = ("worked-examples", "--response", "factreasoner-example-1")
    assert infer_json(*response)["marginals"]["a1"] == pytest.approx(48 / 151, abs=ROUNDING)
    (folder / "worked-examples").write_text("not a model", encoding="utf-8")
    assert "worked-examples: it begins with" in invoke("infer", "worked-examples", code=2).stderr


def test_json_holds_no_nan_and_no_numpy(graph_file: Path) -> None:
    facts = read(graph_file)
    assert isinstance(facts, FactGraph)
    model = LoadedModel(facts.to_factor_graph(), facts)
    marginals = Marginals(("a1", "c1", "c2"), np.array([2] * 3), np.array([np.nan, 1.0] * 3))
    stats = {
        "trace": np.array([1.0, np.inf]),
        "width": np.int64(3),
        "flag": np.bool_(True),
        "ratio": np.float32(0.5),
        "nested": {"nan": float("nan"), "kind": LogZKind.BETHE},
    }
    for log_z in (None, math.inf, -math.inf, math.nan):
        posterior = Posterior(marginals, log_z, LogZKind.NONE, Status.CONVERGED, stats, "test")
        text = findings_of("x", [(model, posterior)]).as_json()
        assert text.count("\n") == 1
        assert "NaN" not in text
        assert "Infinity" not in text
        (row,) = json.loads(text)["tables"]["models"]
        assert row["log_z"] is None
        assert {name: row[name] for name in stats} == {
            "trace": [1.0, None],
            "width": 3,
            "flag": True,
            "ratio": 0.5,
            "nested": {"nan": None, "kind": "bethe"},
        }


def test_marginals_that_may_be_far_off_are_shown_with_the_reason_of_their_choice() -> None:
    graph = grid(2, 2, coupling=1.0, field=0.0, seed=0)
    marginals = Marginals.of(graph, np.full(8, 0.5))
    reason = "no two algorithms agree"
    for error, shown in ((0.02, False), (0.3, True), (None, True)):
        stats = {"marginals_by": "lbp", "marginals_error": error, "marginals_reason": reason}
        posterior = Posterior(marginals, 1.0, LogZKind.UPPER, Status.NOT_CONVERGED, stats, "auto")
        (sentence, *_) = findings_of("x", [(LoadedModel(graph, None), posterior)]).sentences
        assert "marginals by lbp" in sentence
        assert (reason in sentence) is shown


def test_bounds_are_shown_with_an_estimate_or_the_reason_why_there_is_none() -> None:
    graph = grid(2, 2, coupling=1.0, field=0.0, seed=0)
    marginals = Marginals.of(graph, np.full(8, 0.5))
    shared = {"upper_by": "wmb", "lower_by": "cavi", "reason": "it takes too long"}
    known = {"estimate": 0.75, "estimate_by": "ais", "estimate_standard_error": 0.25}
    unknown = {
        "estimate_standard_error": None,
        "missing": {"estimate_standard_error": "groups disagree"},
    }
    for stats, first, others in (
        (known, "estimate 0.75 ± 0.25 (ais)", []),
        (unknown, "lower by cavi", ["groups disagree"]),
    ):
        answer = Posterior(
            marginals, 1.0, LogZKind.UPPER, Status.NOT_CONVERGED, {**shared, **stats}, "auto"
        )
        sentences = findings_of("x", [(LoadedModel(graph, None), answer)]).sentences
        assert first in sentences[0]
        assert sentences[1] == "Not exact: it takes too long."
        why = "No estimate of log Z with a standard error: "
        assert list(sentences[2:]) == [f"{why}{reason}." for reason in others]


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
