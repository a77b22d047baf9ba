"""Conventions of `assess` and `score`: measures by plain loops under each name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import assess, score
from factormodels.claims import RelationKind
from factormodels.extraction.relation_models.base import Judgment, TextPair
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import write_fact_graphs
from tests.experiments.study.test_study_conventions import by_hand, p_true, responses
from tests.refusals import refused

ENTAILMENT, NEUTRAL = RelationKind.ENTAILMENT, RelationKind.NEUTRAL

MEASURES = ("supported", "precision", "f1_at_k", "entropy", "brier")


def with_texts(graph: FactGraph) -> FactGraph:
    return replace(
        graph,
        atoms=tuple(replace(atom, text=f"Claim {graph.id} {atom.id}.") for atom in graph.atoms),
        contexts=tuple(
            replace(each, text=f"Passage {graph.id} {each.id}.") for each in graph.contexts
        ),
        relations=(),
    )


class Stated:
    """A relation model that says what the responses' own relations say, by the texts."""

    name = "stated"

    def __init__(self) -> None:
        self.known = {
            (f"Passage {graph.id} {each.source}.", f"Claim {graph.id} {each.target}."): each
            for graph in responses()
            for each in graph.relations
        }

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment]:
        relations = [self.known.get((pair.premise, pair.hypothesis)) for pair in pairs]
        return [
            Judgment(NEUTRAL, 1.0, "recorded")
            if each is None
            else Judgment(ENTAILMENT, each.probability, "recorded")
            for each in relations
        ]


def assessed(**options: Any) -> Any:
    graphs = [with_texts(graph) for graph in responses()]
    return assess(graphs, relations=Stated(), variant=["FR1"], **options)


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        ("paper", by_hand("left-out", 0.99, "median")),
        ("fact-reasoner-0.8", by_hand("false", 0.9, "half-down")),
    ],
)
def test_assess_takes_the_conventions_of_the_paper_and_of_the_release(
    like: str, expected: dict[str, float]
) -> None:
    findings = assessed(like=like, encoding="implication")
    (row,) = findings["summary"].to_dict("records")
    if like == "paper":
        expected = expected | {"entropy": expected["entropy"] / math.log(10)}
    # Sums of a dozen numbers.
    assert {name: row[name] for name in MEASURES} == pytest.approx(
        {name: expected[name] for name in MEASURES}, abs=1e-12
    )
    assert row["f1_by_response"] == pytest.approx(expected["f1_by_response"], abs=1e-12)
    assert "f1" not in row
    (graph, *_) = findings.graphs
    declared = graph.metadata["assessment"]["FR1"]["conventions"]
    assert declared["context_prior"] == (0.99 if like == "paper" else 0.9)
    for name in ("claims", "responses", "summary"):
        assert f"passages at {declared['context_prior']}" in findings.tables[name].notes
    assert "F1 as a mean over responses" in findings.tables["summary"].notes


def test_each_convention_can_be_declared_by_itself() -> None:
    plain = assessed()["summary"].to_dict("records")[0]
    expected = by_hand("counted", 0.99, "median")
    assert plain["precision"] == pytest.approx(expected["precision"], abs=1e-12)
    base = assessed(logarithm="e")["summary"].to_dict("records")[0]
    assert base["entropy"] == pytest.approx(plain["entropy"] * math.log(10), abs=1e-12)
    k = assessed(k="half-down")["summary"].to_dict("records")[0]
    of_release = by_hand("counted", 0.99, "half-down")
    assert k["f1_at_k"] == pytest.approx(of_release["f1_at_k"], abs=1e-12)
    recalls = [min(s / max(n // 2, 1), 1) for s, n in ((3, 4), (1, 3), (3, 5))]
    assert k["recall_at_k"] == pytest.approx(np.mean(recalls), abs=1e-12)
    # Nothing is stated of conventions that are as by default, so old stores are gone on with.
    assert "conventions" not in assessed().graphs[0].metadata["assessment"]["FR1"]
    refused("is unknown", assess, "demonstration", like="paperr")


def test_conventions_of_the_release_keep_weak_relations() -> None:
    class Weak(Stated):
        name = "weak"

        def judge(self, pairs: Sequence[TextPair]) -> list[Judgment]:
            return [
                replace(each, probability=0.4) if each.kind is ENTAILMENT else each
                for each in super().judge(pairs)
            ]

    graphs = [with_texts(graph) for graph in responses()]
    findings = assess(
        graphs, relations=Weak(), variant=["FR1"], like="fact-reasoner-0.8", encoding="implication"
    )
    p = findings["claims"].set_index(["response", "claim"])["p"]
    assert p["r1", "a0"] == pytest.approx(p_true(0.4, 0.9), abs=1e-12)


def test_score_has_the_brier_score_of_the_release(tmp_path: Path) -> None:
    findings = assessed(like="fact-reasoner-0.8", encoding="implication")
    graphs = [
        # A claim of each response without any label.
        replace(
            graph,
            atoms=(replace(graph.atoms[0], label=None, annotation=None), *graph.atoms[1:]),
        )
        for graph in findings.graphs
    ]
    write_fact_graphs(graphs, tmp_path / "g.jsonl")
    squares, n_claims, squares_labeled, n_labeled = 0.0, 0, 0.0, 0
    f1 = []
    for graph in graphs:
        view = graph.metadata["assessment"]["FR1"]["atoms"]
        right = judged = true = 0
        for atom in graph.atoms:
            p = view[atom.id]["p"]
            # The release's loop: whatever is not labeled S is false, and every claim counts.
            squares += (p - 1.0) ** 2 if atom.annotation == "S" else p**2
            right += p > 0.5 and atom.annotation == "S"
            judged, true = judged + (p > 0.5), true + (atom.annotation == "S")
            n_claims += 1
            if atom.label is not None:
                squares_labeled += (p - atom.label) ** 2
                n_labeled += 1
        f1.append(2 * right / (judged + true) if judged + true else 0.0)
    asked: dict[str, Any] = {"scores": "brier,f1,entropy", "resamples": 10, "n_bootstrap": 10}
    release = score(tmp_path / "g.jsonl", like="fact-reasoner-0.8", **asked)
    (row,) = release["scores"].to_dict("records")
    assert row["n_claims"] == n_claims
    assert row["brier"] == pytest.approx(squares / n_claims, abs=1e-12)
    assert row["f1_by_response"] == pytest.approx(np.mean(f1), abs=1e-12)
    for name in ("scores", "intervals"):
        assert "irrelevant claims false, unlabeled claims false" in release.tables[name].notes
    (plain,) = score(tmp_path / "g.jsonl", **asked)["scores"].to_dict("records")
    assert (plain["n_claims"], plain["brier"]) == (
        n_labeled,
        pytest.approx(squares_labeled / n_labeled),
    )
    assert row["entropy"] == pytest.approx(plain["entropy"] * math.log(10), abs=1e-12)
    left_out = score(tmp_path / "g.jsonl", irrelevant_claims="left-out", **asked)
    (of_labeled,) = left_out["scores"].to_dict("records")
    assert of_labeled["brier"] == pytest.approx(plain["brier"], abs=1e-12)
    assert of_labeled["entropy"] != pytest.approx(plain["entropy"], abs=1e-6)
