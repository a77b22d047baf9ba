"""`assess` and `infer` report informative relations without a factor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import assess, infer
from factormodels import Atom, Context, FactGraph, Relation
from factormodels.io import write

NEUTRAL = (0.1, 0.7, 0.0, 0.2)


def graph(*relations: Relation, prior: float = 0.5) -> FactGraph:
    atoms = tuple(Atom(f"a{i}", f"Claim {i}.", prior) for i in range(2))
    contexts = tuple(Context(f"c{i}", f"Passage {i}.", retrieved_for=(f"a{i}",)) for i in range(2))
    return FactGraph("r", atoms, contexts, relations)


def test_infer_says_what_is_improbable_and_what_was_made_neutral(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    relations = (
        Relation("c0", "a0", "neutral", 0.2, NEUTRAL),  # type: ignore[arg-type]
        Relation("c1", "a1", "entailment", 0.4),  # type: ignore[arg-type]
    )
    write(graph(*relations), path)
    sentences = " ".join(infer(path).sentences)
    assert "1 of 2 relations is less probable than 1/2 and neutral" in sentences
    assert "1 of 2 relations is neutral beside a likelier entailment or contradiction" in sentences
    assert "relations" not in " ".join(infer(path, encoding="mixture").sentences)


def test_infer_says_where_a_prior_does_not_overrule(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    relations = tuple(
        Relation(f"c{i}", f"a{i}", kind, 0.502)  # type: ignore[arg-type]
        for i, kind in enumerate(("entailment", "contradiction"))
    )
    write(graph(*relations, prior=0.2), path)
    sentences_of = [
        " ".join(infer(path, encoding=name).sentences) for name in ("conditional", "mixture")
    ]
    assert [
        "1 of 2 relations is weaker than the prior of the claim" in text for text in sentences_of
    ] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        ({"distribution": [0.4, 0.3, 0.3]}, "1 of 2 relations is less probable than 1/2"),
        ({}, "1 answer with probability below 0.5 is read as neutral"),
    ],
)
def test_assess_says_it_too(beside: dict[str, Any], message: str, tmp_path: Path) -> None:
    path, recorded = tmp_path / "graph.json", tmp_path / "recorded.jsonl"
    write(graph(), path)
    answers = [
        {"source": "c0", "target": "a0", "relation": "entailment", "probability": 0.4, **beside},
        {"source": "c1", "target": "a1", "relation": "contradiction", "probability": 0.9},
    ]
    recorded.write_text("\n".join(map(json.dumps, answers)))
    assessed = assess(
        path,
        relations=f"recorded:{recorded}",
        atoms="given",
        retriever="given",
        variant=["FR1"],
    )
    assert message in " ".join(assessed.sentences)
