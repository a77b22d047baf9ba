"""Conventions of a study: declared by a name or by themselves, and the numbers that follow."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import run
from experiments.study.config import as_plain, computed_part, config_hash
from experiments.study.reading import load_study, study_of_plain
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import write_fact_graphs
from tests.refusals import refused

ENTAILMENT = RelationKind.ENTAILMENT

STUDY: dict[str, Any] = {
    "study": "s",
    "datasets": [{"name": "d", "path": "d.jsonl"}],
    "variants": ["FR2"],
    "backends": ["exact"],
    "measures": ["supported", "precision", "f1", "f1_at_k", "entropy", "brier"],
    "outputs": ["csv"],
}

# By response: the annotation of each claim, and how probable its passage makes it.
CLAIMS = {
    "r1": [("S", 0.9), ("NS", 0.8), ("IR", 0.9), ("S", None)],
    "r2": [("NS", None), ("NS", None), ("IR", 0.7)],
    "r3": [("S", 0.95), ("S", 0.6), ("S", None), ("NS", 0.7), ("IR", None)],
}


def responses() -> list[FactGraph]:
    labels = {"S": True, "NS": False, "IR": None}
    graphs = []
    for name, claims in CLAIMS.items():
        atoms = tuple(
            Atom(f"a{at}", label=labels[word], annotation=word)
            for at, (word, _) in enumerate(claims)
        )
        related = [(at, p) for at, (_, p) in enumerate(claims) if p is not None]
        graphs.append(
            FactGraph(
                name,
                atoms,
                tuple(Context(f"c{at}", retrieved_for=(f"a{at}",)) for at, _ in related),
                tuple(
                    Relation(f"c{at}", f"a{at}", RelationKind.ENTAILMENT, p) for at, p in related
                ),
            )
        )
    return graphs


def p_true(probability: float | None, prior: float) -> float:
    """P(true) of a claim with one passage that entails it, by hand from table 1."""
    if probability is None:
        return 0.5
    true = probability
    false = prior * (1 - probability) + (1 - prior) * probability
    return true / (true + false)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_fact_graphs(responses(), tmp_path / "d.jsonl")
    return tmp_path


def summary(out: str, **more: Any) -> dict[str, Any]:
    findings = run(STUDY | more, out=out)
    (row,) = findings["summary"].to_dict("records")
    return {str(name): value for name, value in row.items()}


def by_hand(irrelevant: str, prior: float, k: str) -> dict[str, float]:
    """The measures by plain loops over the claims."""
    counted: list[list[tuple[float, float]]] = []
    for claims in CLAIMS.values():
        kept = [
            (p_true(p, prior), {"S": 1.0, "NS": 0.0, "IR": 0.0 if irrelevant == "false" else -1}[w])
            for w, p in claims
            if not (w == "IR" and irrelevant == "left-out")
        ]
        counted.append(kept)
    sizes = [len(kept) for kept in counted]
    ks = [float(np.median(sizes))] * 3 if k == "median" else [max(n // 2, 1) for n in sizes]
    supported = [sum(p > 0.5 for p, _ in kept) for kept in counted]
    precision = [s / n for s, n in zip(supported, sizes, strict=True)]
    recall = [min(s / k_, 1.0) for s, k_ in zip(supported, ks, strict=True)]
    f1 = []
    for kept in counted:
        labeled = [(p, y) for p, y in kept if y >= 0]
        right = sum(p > 0.5 and y == 1 for p, y in labeled)
        total = sum(p > 0.5 for p, _ in labeled) + sum(y == 1 for _, y in labeled)
        f1.append(2 * right / total if total else 0.0)
    losses = [(p - y) ** 2 for kept in counted for p, y in kept if y >= 0]
    return {
        "n_atoms": sum(sizes),
        "n_labeled": len(losses),
        "supported": float(np.mean(supported)),
        "precision": float(np.mean(precision)),
        "f1_by_response": float(np.mean(f1)),
        "f1_at_k": float(
            np.mean(
                [2 * a * b / (a + b) if a else 0.0 for a, b in zip(precision, recall, strict=True)]
            )
        ),
        "entropy": float(
            np.mean([np.mean([-p * math.log(p) for p, _ in kept]) for kept in counted])
        ),
        "brier": float(np.mean(losses)),
    }


def test_the_papers_conventions_leave_irrelevant_claims_out_of_every_measure(data: Path) -> None:
    row = summary("paper", conventions="paper")
    expected = by_hand("left-out", 0.99, "median")
    # The paper's E is to base 10.
    expected["entropy"] /= math.log(10)
    assert (row["n_atoms"], row["k"]) == (9, 3.0)
    # Sums of a dozen numbers.
    assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    means = (data / "paper" / "means.csv").read_text().splitlines()
    values = dict(zip(means[0].split(","), means[1].split(","), strict=True))
    precision = [2 / 3, 0.0, 0.75]
    assert float(values["precision"]) == pytest.approx(np.mean(precision), abs=1e-12)
    assert float(values["precision_sd"]) == pytest.approx(np.std(precision, ddof=1), abs=1e-12)


@pytest.mark.usefixtures("data")
def test_the_releases_conventions_count_irrelevant_claims_as_false() -> None:
    implication = {"like": "fact-reasoner-0.8"}
    row = summary("release", conventions=implication, encodings=["implication"])
    expected = by_hand("false", 0.9, "half-down")
    assert (row["k_policy"], row["n_labeled"]) == ("half-down", 12)
    assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    # A name fills in the encoding where the study has none.
    (cell,) = run(STUDY | {"conventions": implication}, out="tables")["summary"].to_dict("records")
    assert cell["encoding"] == "conditional"


def test_by_default_irrelevant_claims_count_where_no_label_is_needed(data: Path) -> None:
    row = summary("usual")
    assert (row["n_atoms"], row["n_labeled"]) == (12, 9)
    assert row["supported"] == pytest.approx(np.mean([3, 1, 3]), abs=1e-12)
    assert not (data / "usual" / "means.csv").exists()


def test_an_option_declares_what_a_key_does(data: Path) -> None:
    by_key = summary("key", conventions={"logarithm": "e", "context_prior": 0.9}, k="half-down")
    findings = run(STUDY, out="option", logarithm="e", context_prior=0.9, k="half-down")
    (by_option,) = findings["summary"].to_dict("records")
    for name in ("entropy", "precision", "brier", "f1_at_k"):
        assert by_option[name] == by_key[name]
    note = findings.tables["cells"].note
    assert "passages at 0.9" in note
    assert "natural logarithms" in note
    for folder in ("key", "option"):
        config = json.loads((data / folder / "manifest.json").read_text())["config"]
        assert config["conventions"] == {"context_prior": 0.9, "logarithm": "e"}
    refused("unknown", run, STUDY, out="bad", like="paperr")
    refused("there is no such key", run, STUDY | {"conventions": {"priors": 0.5}}, out="bad")


@pytest.mark.usefixtures("data")
def test_a_study_without_conventions_is_the_same_as_before() -> None:
    plain = as_plain(load_study(STUDY).study)
    assert "conventions" not in plain
    same = load_study(STUDY | {"conventions": {"f1": "pooled"}}).study
    assert config_hash(same) == config_hash(load_study(STUDY).study)
    named = load_study(STUDY | {"conventions": "paper"}).study
    assert study_of_plain(as_plain(named), "here").declared == named.declared
    # Conventions of measures may change between a run and its resumption, those of graphs not.
    measured = load_study(STUDY | {"conventions": {"logarithm": "e"}}).study
    assert computed_part(measured) == computed_part(load_study(STUDY).study)
    moved = load_study(STUDY | {"conventions": {"shared_passage": "one"}}).study
    assert computed_part(moved)["conventions"] == {"shared_passage": "one"}
