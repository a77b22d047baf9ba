"""The relation stage: which pairs are asked, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind, variant
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.stages.relations import (
    ask,
    only_asked,
    relation_pairs,
    with_relations,
)
from tests.refusals import refused

ENTAILS = Judgment(RelationKind.ENTAILMENT, 0.9, "samples")
DENIES = Judgment(RelationKind.CONTRADICTION, 0.8, "samples")
NEUTRAL = Judgment(RelationKind.NEUTRAL, 0.7, "samples")
LOST = Missing("the answer was cut off")


@dataclass
class Scripted:
    """A relation model that answers by a function and remembers what it was asked."""

    answer: Callable[[TextPair], Judgment | Missing]
    name: str = "scripted"
    asked: list[TextPair] = field(default_factory=list)

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        self.asked += pairs
        return [self.answer(pair) for pair in pairs]


def graph(
    n_atoms: int = 3, contexts: Sequence[tuple[str, ...]] = (("a1",), ("a1", "a2"))
) -> FactGraph:
    return FactGraph(
        "g",
        tuple(Atom(f"a{i}", f"Atom {i}.") for i in range(1, n_atoms + 1)),
        tuple(
            Context(f"c{i}", f"Context {i}.", retrieved_for=atoms)
            for i, atoms in enumerate(contexts, start=1)
        ),
        metadata={"kept": 1},
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FR1", {"c1 a1", "c2 a1", "c2 a2"}),
        ("FR2", {f"c{j} a{i}" for i in (1, 2, 3) for j in (1, 2)}),
        ("FR3", {f"c{j} a{i}" for i in (1, 2, 3) for j in (1, 2)} | {"c1 c2", "c2 c1"}),
    ],
)
def test_pairs_of_a_variant(name: str, expected: set[str]) -> None:
    pairs = relation_pairs(graph(), name)
    assert {f"{pair.source} {pair.target}" for pair in pairs} == expected
    assert len(pairs) == len(expected)
    assert pairs[0] == TextPair("Context 1.", "Atom 1.", "c1", "a1")


@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 0), (0, 2), (4, 5)])
def test_the_number_of_pairs_is_the_paper_s(n: int, m: int) -> None:
    whole = graph(n, [()] * m)
    assert len(relation_pairs(whole, "FR2")) == n * m
    assert len(relation_pairs(whole, "FR3")) == n * m + m * (m - 1)


def test_an_unknown_variant_is_named() -> None:
    refused("'given'", relation_pairs, graph(), "given")


def test_a_pair_is_asked_once_and_an_empty_one_never() -> None:
    model = Scripted(lambda _: ENTAILS)
    same, empty = TextPair("A.", "B."), TextPair(" ", "B.")
    first, second, third = ask(model, [same, same, empty])
    assert (first, second) == (ENTAILS, ENTAILS)
    assert isinstance(third, Missing)
    assert model.asked == [same]
    assert ask(model, []) == []


def test_answers_become_relations_and_the_missing_are_counted() -> None:
    answers: dict[str, Judgment | Missing] = {"a1": ENTAILS, "a2": LOST, "a3": NEUTRAL}
    related = with_relations(graph(), Scripted(lambda pair: answers[pair.target]), "FR2")
    assert set(related.relations) == {
        Relation(context, atom, RelationKind(kind), probability)
        for context in ("c1", "c2")
        for atom, kind, probability in (("a1", "entailment", 0.9), ("a3", "neutral", 0.7))
    }
    assert related.metadata == {
        "kept": 1,
        "relations": {
            "model": "scripted",
            "variant": "FR2",
            "asked": 6,
            "entailment": 2,
            "contradiction": 0,
            "neutral": 2,
            "origins": {"samples": 4},
            "least": 0.5,
            "made_neutral": 0,
            "missing": [["c1", "a2", LOST.reason], ["c2", "a2", LOST.reason]],
        },
    }


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (ENTAILS, Judgment(RelationKind.ENTAILMENT, 0.6, "nli"), ("equivalence", "c1", 0.6)),
        (ENTAILS, NEUTRAL, ("entailment", "c1", 0.9)),
        (NEUTRAL, ENTAILS, ("entailment", "c2", 0.9)),
        (DENIES, ENTAILS, ("entailment", "c2", 0.9)),
        (DENIES, DENIES, ("contradiction", "c1", 0.8)),
        (LOST, DENIES, ("contradiction", "c2", 0.8)),
        (NEUTRAL, NEUTRAL, ("neutral", "c1", 0.7)),
        (LOST, LOST, None),
    ],
)
def test_two_contexts_have_one_relation(
    forward: Judgment | Missing,
    backward: Judgment | Missing,
    expected: tuple[str, str, float] | None,
) -> None:
    answers = {"c1": forward, "c2": backward}
    model = Scripted(lambda pair: answers[pair.source] if pair.target[0] == "c" else LOST)
    related = with_relations(graph(), model, "FR3").relations
    assert [(r.kind, r.source, r.probability) for r in related] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("forward", "backward", "expected", "orders"),
    [
        (ENTAILS, ENTAILS, ("equivalence", "c1"), 2),
        (ENTAILS, NEUTRAL, ("entailment", "c1"), 2),
        (DENIES, ENTAILS, ("contradiction", "c1"), 1),
        (NEUTRAL, ENTAILS, ("neutral", "c1"), 1),
        (LOST, DENIES, ("contradiction", "c2"), 2),
    ],
)
def test_the_second_order_is_asked_only_where_it_is_needed(
    forward: Judgment | Missing,
    backward: Judgment | Missing,
    expected: tuple[str, str],
    orders: int,
) -> None:
    answers = {"c1": forward, "c2": backward}
    model = Scripted(lambda pair: answers[pair.source] if pair.target[0] == "c" else NEUTRAL)
    related = with_relations(graph(), model, "FR3", both_orders=False)
    (between,) = (r for r in related.relations if r.target[0] == "c")
    assert (between.kind, between.source) == expected
    asked = [pair for pair in model.asked if pair.target[0] == "c"]
    assert len(asked) == orders
    # All pairs of a passage and a claim are asked, and what was not needed is not missing.
    assert related.metadata["relations"]["asked"] == len(model.asked) == 6 + orders
    assert "unasked" not in related.metadata["relations"]


def test_an_improbable_relation_is_neutral_and_counted() -> None:
    spread = Judgment(RelationKind.ENTAILMENT, 0.4, "lexical", (0.4, 0.25, 0.35))
    alone = Judgment(RelationKind.CONTRADICTION, 0.45, "verbalized")
    answers = {"a1": spread, "a2": alone, "a3": Judgment(RelationKind.ENTAILMENT, 0.5, "nli")}
    model = Scripted(lambda pair: answers[pair.target])
    related = with_relations(graph(3, [()]), model, "FR2")
    assert related.relations == (
        Relation("c1", "a1", RelationKind.NEUTRAL, 0.35, (0.4, 0.25, 0.0, 0.35)),
        Relation("c1", "a2", RelationKind.NEUTRAL, 0.55),
        Relation("c1", "a3", RelationKind.ENTAILMENT, 0.5),
    )
    assert related.metadata["relations"]["made_neutral"] == 2
    kept = with_relations(graph(3, [()]), model, "FR2", least=0.0)
    assert [r.probability for r in kept.relations] == [0.4, 0.45, 0.5]
    refused("least", with_relations, graph(), model, "FR2", least=2)


def test_the_widest_variant_holds_what_the_others_ask() -> None:
    def answer(pair: TextPair) -> Judgment:
        return [ENTAILS, DENIES, NEUTRAL][(len(pair.source) + int(pair.target[1])) % 3]

    widest = with_relations(graph(), Scripted(answer), "FR3")
    for name in ("FR1", "FR2"):
        narrower = with_relations(graph(), Scripted(answer), name)
        seen = variant(widest, name)
        assert set(seen.relations) == set(variant(narrower, name).relations)


def test_a_context_is_read_with_its_title_and_snippet_and_the_question() -> None:
    whole = FactGraph(
        "g",
        (Atom("a1", "It is red."),),
        (
            Context("c1", title="Bridge", snippet="Painted red.", retrieved_for=("a1",)),
            Context("c2", "In full.", snippet="In short."),
        ),
        query="Which color?",
    )
    first, second, *_ = pairs = relation_pairs(whole, "FR3")
    assert {(pair.source, pair.title) for pair in pairs} == {("c1", "Bridge"), ("c2", "")}
    assert {pair.question for pair in pairs} == {"Which color?"}
    assert first == TextPair("Painted red.", "It is red.", "c1", "a1", "Bridge", "Which color?")
    assert first.titled_premise == "Bridge\nPainted red."
    assert second.titled_premise == second.premise == "In short.\n\nIn full."
    assert TextPair("Bridge of iron.", "x", title="Bridge").titled_premise == "Bridge of iron."
    related = with_relations(whole, Scripted(lambda _: NEUTRAL), "FR3")
    assert related.metadata["relations"]["missing"] == []


def test_fr1_sees_the_same_whatever_else_is_asked_for() -> None:
    question = Context("c9", "Found for the question.")
    whole = replace(graph(), contexts=(*graph().contexts, question))
    # Without any provenance as well: then FR1 asks nothing.
    nothing = replace(whole, contexts=tuple(replace(c, retrieved_for=()) for c in whole.contexts))
    for given in (whole, nothing):
        alone = with_relations(given, Scripted(lambda _: ENTAILS), "FR1")
        beside = with_relations(given, Scripted(lambda _: ENTAILS), "FR3")
        seen = variant(only_asked(beside, "FR1"), "FR1")
        assert set(seen.relations) == set(variant(alone, "FR1").relations)
        assert only_asked(beside, "FR3") is beside


def test_relations_missing_in_a_wider_variant_are_not_missing_in_fr1() -> None:
    graph = FactGraph(
        "r",
        (Atom("a1", "One."), Atom("a2", "Two.")),
        (Context("c1", "Uno.", retrieved_for=("a1",)),),
        (Relation("c1", "a2", RelationKind.ENTAILMENT, 0.9),),
        metadata={"relations": {"missing": [["c1", "a1", "down"], ["c1", "a2", "down"]]}},
    )
    seen = only_asked(graph, "FR1")
    assert seen.metadata["relations"]["missing"] == [["c1", "a1", "down"]]
    assert only_asked(graph, "FR2") is graph
