"""Sampled answers beside drawn passages: votes, draws and rival scores by hand, and all rows."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.samples import with_samples
from notebooks.questions.sample_evidence import (
    drawn_passages,
    logistic,
    read_samples,
    sample_evidence,
    unigram_scores,
    with_votes,
)
from tests.refusals import refused

pytestmark = pytest.mark.slow

KEPT = Path(__file__).resolve().parents[3] / "docs" / "results" / "sample-evidence"

TOWNS = ("Ulm", "Bonn", "Trier", "Jena", "Essen", "Kiel")


def record(number: int) -> dict[str, Any]:
    """A person of SelfCheckGPT's form, with a true and a false sentence."""
    sentences = [f"She lived in {TOWNS[number]} for years.", f"She painted {number + 3} doors."]
    return {
        "wiki_bio_test_idx": number,
        "main_passage": " ".join(sentences),
        "main_sentences": sentences,
        "annotation": ["accurate", "major_inaccurate"],
        "responses": {"prompt": [["Yes", "Yes"], ["No", "Yes"]]},
        "sample_passages": [f"She lived in {TOWNS[number]} for years.", "She wrote."],
        "scores": {name: [0.1, 0.9 - 0.05 * number] for name in ("prompt", "bert", "nli")},
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "selfcheck.jsonl"
    path.write_text("\n".join(json.dumps(record(number)) for number in range(len(TOWNS))))
    return path


def test_every_kind_of_evidence_and_every_rival_has_a_row(file: Path) -> None:
    made = sample_evidence(selfcheck=file, folds=2)
    scores = made.tables["scores"].frame
    lexical = scores[scores["relations"] == "lexical"]
    assert lexical["evidence"].tolist() == [*["passages"] * 2, *["samples"] * 2, *["both"] * 3]
    assert scores["evidence"].tolist()[-4:] == [
        f"SelfCheckGPT, {name}" for name in ("prompt", "bert", "nli", "unigram")
    ]
    assert scores["brier"].between(0, 1).all()
    for stem, table in made.tables.items():
        with (KEPT / f"{stem}.csv").open(encoding="utf-8") as kept:
            assert next(csv.reader(kept)) == [*map(str, table.frame.columns)], stem


def test_votes_are_samples_that_entail_or_contradict(file: Path) -> None:
    voted = with_votes(read_samples(file).graphs[0])
    kinds = {(r.source, r.target): r.kind for r in voted.relations}
    assert voted.sample_ids == {"s1", "s2"}
    assert kinds == {
        ("s1", "a1"): RelationKind.ENTAILMENT,
        ("s2", "a1"): RelationKind.ENTAILMENT,
        ("s1", "a2"): RelationKind.CONTRADICTION,
        ("s2", "a2"): RelationKind.ENTAILMENT,
    }


def test_drawn_passages_are_of_a_claim_with_the_same_label() -> None:
    def donor(number: int, label: bool | None) -> FactGraph:
        probability = {True: 0.9, False: 0.6, None: 0.7}[label]
        context = Context("c", retrieved_for=("a",))
        relation = Relation("c", "a", RelationKind.ENTAILMENT, probability)
        return FactGraph(f"d{number}", (Atom("a", label=label),), (context,), (relation,))

    donors = [donor(n, label) for n, label in enumerate([True, False, None, True, False])]
    graph = FactGraph("r", (Atom("a1", label=True), Atom("a2", label=False)))
    (drawn,) = drawn_passages([graph], donors, seed=0)
    assert [(r.target, r.probability) for r in drawn.relations] == [("a1", 0.9), ("a2", 0.6)]
    assert [context.retrieved_for for context in drawn.contexts] == [("a1",), ("a2",)]


def test_the_unigram_score_is_of_the_rarest_word() -> None:
    graph = FactGraph("r", (Atom("a1", "one two"), Atom("a2", "one")), response="one two")
    graph = with_samples(graph, ["One, one."])
    # Three times "one", once "two": with one added to each, 4 and 2 of 6.
    assert unigram_scores(graph) == pytest.approx([-math.log(2 / 6), -math.log(4 / 6)])


def test_logistic_regression_is_on_other_folds() -> None:
    column = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])[:, np.newaxis]
    labels = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    p = logistic(column, labels, np.array([0, 0, 1, 1, 2, 2]))
    # The two other folds of the second say that 1 is true, those of the others contradict.
    assert p[3] > 0.9 > 0.1 > p[2]
    assert p[[0, 1, 4, 5]] == pytest.approx([0.5] * 4, abs=1e-6)


def test_a_file_without_scores_is_refused(file: Path) -> None:
    lacking = record(0)
    del lacking["scores"]
    file.write_text(json.dumps(lacking))
    refused("line 1: sampled passages, votes or scores are missing", read_samples, file)
