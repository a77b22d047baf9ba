"""Relations between claims: which pairs are asked, and what becomes of the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.extraction.language_model import Failure, Request
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.stages.claim_relations import (
    METADATA_KEY,
    claim_pairs,
    likeliest_related,
    n_claim_pairs,
    with_judged_claims,
    with_senses,
)
from factormodels.variants import between_claims, claims_alone, variant
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.stages.test_relations import DENIES, ENTAILS, NEUTRAL, Scripted
from tests.factormodels.graphs import in_words
from tests.refusals import refused


def graph(n: int = 4) -> FactGraph:
    return FactGraph(
        "g",
        tuple(Atom(f"a{i}", f"Claim {i}.") for i in range(1, n + 1)),
        (Context("c1", "A passage."),),
        (Relation("c1", "a1", RelationKind.ENTAILMENT, 0.9),),
        query="What?",
        response="Claim 1. Claim 2.",
        metadata={"kept": 1},
    )


def named(pairs: list[tuple[Atom, Atom]]) -> list[tuple[str, str]]:
    return [(a.id, b.id) for a, b in pairs]


def test_pairs_are_all_or_those_near_each_other() -> None:
    assert named(claim_pairs(graph(3))) == [("a1", "a2"), ("a1", "a3"), ("a2", "a3")]
    assert named(claim_pairs(graph(4), 1)) == [("a1", "a2"), ("a2", "a3"), ("a3", "a4")]
    for n in range(1, 6):
        for window in (None, 1, 2, 5, 9):
            assert n_claim_pairs(n, window) == len(claim_pairs(graph(n), window))
    silent = FactGraph("g", (Atom("a1", "Claim."), Atom("a2", " "), Atom("a3", "Other.")))
    assert named(claim_pairs(silent)) == [("a1", "a3")]
    refused("window is 0.*1 or more", claim_pairs, graph(), 0)


def test_pairs_that_share_words_are_asked_first() -> None:
    texts = ("The bridge opened in 1890.", "Cows eat grass.", "The bridge opened in May 1890.")
    atoms = tuple(Atom(f"a{i}", text) for i, text in enumerate(texts, 1))
    pairs = claim_pairs(FactGraph("g", atoms))
    assert named(likeliest_related(pairs, 1)) == [("a1", "a3")]
    assert likeliest_related(pairs, 3) == pairs


def test_both_orders_make_one_relation() -> None:
    answers: dict[tuple[str, str], Judgment | Missing] = {
        ("a1", "a2"): ENTAILS,
        ("a2", "a1"): Judgment(RelationKind.ENTAILMENT, 0.7, "samples"),
        ("a1", "a3"): NEUTRAL,
        ("a3", "a1"): DENIES,
        ("a2", "a3"): Missing("lost"),
        ("a3", "a2"): ENTAILS,
    }

    def answer(pair: TextPair) -> Judgment | Missing:
        return answers.get((pair.source, pair.target), Missing("the provider was down"))

    model = Scripted(answer)
    judged = with_judged_claims(graph(4), model, claim_pairs(graph(4), 2))
    assert in_words(between_claims(judged)) == (
        "a1 a2 equivalence 0.7, a3 a1 contradiction 0.8, a3 a2 entailment 0.9"
    )
    assert judged.metadata["kept"] == 1
    facts = judged.metadata[METADATA_KEY]
    assert (facts["model"], facts["asked"], facts["equivalence"]) == ("scripted", 5, 1)
    assert facts["missing"] == [[source, "a4", "the provider was down"] for source in ("a2", "a3")]
    # Relations with passages stay; asked again, those between claims are replaced.
    assert judged.relations[0] == graph().relations[0]
    again = with_judged_claims(judged, Scripted(lambda _: NEUTRAL), claim_pairs(judged, 1))
    assert {r.kind for r in between_claims(again)} == {RelationKind.NEUTRAL}
    assert all(pair.question == "What?" for pair in model.asked)


def test_weak_relations_of_claims_are_neutral() -> None:
    judged = with_judged_claims(
        graph(2), Scripted(lambda _: DENIES), claim_pairs(graph(2)), least=0.9
    )
    assert [r.kind for r in between_claims(judged)] == [RelationKind.NEUTRAL]


def test_senses_become_relations_and_an_order_none() -> None:
    answers: dict[tuple[str, str], dict[str, Any]] = {
        ("Claim 1.", "Claim 2."): {"relation": "alternative", "confidence": 0.9},
        ("Claim 1.", "Claim 3."): {"relation": "effect", "confidence": 1},
        ("Claim 2.", "Claim 3."): {"relation": "precedence", "confidence": 0.9},
        ("Claim 1.", "Claim 4."): {"relation": "None", "confidence": 0.8},
        ("Claim 2.", "Claim 4."): {"relation": "contrast", "confidence": 0.4},
        ("Claim 3.", "Claim 4."): {"relation": "likeness", "confidence": 0.4},
    }

    def answer(request: Request) -> str | Failure:
        text = request.messages[-1].content
        assert "Claim 1. Claim 2." in text
        pair = next(
            pair
            for pair in answers
            if f"<first>\n{pair[0]}\n</first>" in text and f"<second>\n{pair[1]}\n</second>" in text
        )
        return json.dumps(answers[pair])

    model = AnsweringModel(answer)
    expanded = with_senses(graph(4), model, claim_pairs(graph(4)))
    relations = between_claims(expanded)
    assert [(r.source, r.target, r.kind) for r in relations] == [
        ("a1", "a2", RelationKind.EXCLUSIVE),
        ("a3", "a1", RelationKind.ENTAILMENT),
    ]
    # What an answer says is certain may contradict another that does.
    assert 0.99 < relations[1].probability < 1.0
    facts = expanded.metadata[METADATA_KEY]
    assert facts["senses"] == {"alternative": 1, "effect": 1, "precedence": 1, "contrast": 1}
    assert [pair[:2] for pair in facts["missing"]] == [["a3", "a4"]]
    assert {request.prompt.name for request in model.asked} == {"claim_relation"}


@pytest.mark.parametrize(
    "answer",
    [
        *("contrast", '{"relation": "contrast"}', '["contrast", 0.5]'),
        *('{"relation": "contrast", "confidence": true}', '{"relation": 3, "confidence": 0.5}'),
        '{"relation": "contrast", "confidence": 2}',
    ],
)
def test_non_answers_are_missing(answer: str) -> None:
    expanded = with_senses(graph(2), AnsweringModel(lambda _: answer), claim_pairs(graph(2)))
    assert between_claims(expanded) == ()
    assert len(expanded.metadata[METADATA_KEY]["missing"]) == 1


def test_views_of_claims() -> None:
    whole = with_judged_claims(graph(3), Scripted(lambda _: DENIES), claim_pairs(graph(3)))
    alone = claims_alone(whole)
    assert alone.contexts == ()
    assert alone.relations == between_claims(whole)
    # The variants of the paper have no relation between claims.
    assert all(between_claims(variant(whole, name)) == () for name in ("FR1", "FR2", "FR3"))
